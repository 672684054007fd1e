/* loader.c - weir._weir.Loader: batches of one rank, from one dataset or several. */
#include <stddef.h>
#include <stdlib.h>

#include "ext.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD weir_loader *loader;
    PyObject *parts; /* a list of Data, each held */
    char busy;
    unsigned long long reached; /* batches that begin before this have been handed on */
} Loader;

/* ---- opening ---- */

/* What a Python list is in C; NULL: none. */
struct lists {
    weir_data **parts;
    uint64_t *weights;
    const char **fields;
    size_t held;
};

static void free_lists(struct lists *lists)
{
    free(lists->parts);
    free(lists->weights);
    free(lists->fields);
}

static void let_go(PyObject *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ext_data_let_go(PyList_GetItem(parts, (Py_ssize_t)i));
}

static int read_parts(struct lists *lists, PyObject *parts)
{
    size_t count = (size_t)PyList_Size(parts);
    lists->parts = calloc(count + 1, sizeof *lists->parts);
    if (!lists->parts) {
        PyErr_NoMemory();
        return -1;
    }
    for (; lists->held < count; lists->held++) {
        PyObject *part = PyList_GetItem(parts, (Py_ssize_t)lists->held);
        if (!(lists->parts[lists->held] = ext_data_hold(part)))
            return -1;
    }
    return 0;
}

static int read_weights(struct lists *lists, PyObject *weights)
{
    if (Py_IsNone(weights))
        return 0;
    if (!PyList_Check(weights) || (size_t)PyList_Size(weights) != lists->held) {
        PyErr_SetString(PyExc_TypeError, "the weights are a list, one for each dataset");
        return -1;
    }
    lists->weights = calloc(lists->held + 1, sizeof *lists->weights);
    if (!lists->weights) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < lists->held; i++)
        if (!ext_u64(PyList_GetItem(weights, (Py_ssize_t)i), &lists->weights[i]))
            return -1;
    return 0;
}

static int read_fields(struct lists *lists, PyObject *fields, weir_loader_options *opts)
{
    if (Py_IsNone(fields))
        return 0;
    if (!PyList_Check(fields)) {
        PyErr_SetString(PyExc_TypeError, "the fields are a list of bytes");
        return -1;
    }
    opts->fields_count = (size_t)PyList_Size(fields);
    lists->fields = calloc(opts->fields_count + 1, sizeof *lists->fields);
    if (!lists->fields) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < opts->fields_count; i++) {
        lists->fields[i] = PyBytes_AsString(PyList_GetItem(fields, (Py_ssize_t)i));
        if (!lists->fields[i])
            return -1;
    }
    opts->fields = lists->fields;
    return 0;
}

static int parse(PyObject *args, PyObject *kwargs, PyObject *lists[3], weir_loader_options *opts)
{
    static char *names[] = {"parts",      "weights", "fields", "shuffle", "seed",
                            "batch_size", "rank",    "ranks",  "worker",  "workers",
                            "position",   "end",     "lanes",  "window",  "threads",
                            "prefetch",   "memory",  "flags",  NULL};
    int shuffle = 0;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!OO|$pO&O&O&O&O&O&O&O&O&O&O&O&O&O&", names, &PyList_Type, &lists[0],
            &lists[1], &lists[2], &shuffle, ext_u64, &opts->seed, ext_u64, &opts->batch_size,
            ext_u32, &opts->rank, ext_u32, &opts->ranks, ext_u32, &opts->worker, ext_u32,
            &opts->workers, ext_u64, &opts->position, ext_u64, &opts->end, ext_u32, &opts->lanes,
            ext_u64, &opts->window, ext_u32, &opts->threads, ext_u32, &opts->prefetch, ext_u64,
            &opts->memory_bytes_max, ext_u32, &opts->flags))
        return -1;
    opts->flags |= WEIR_LOADER_HELD | (shuffle ? WEIR_LOADER_SHUFFLE : 0);
    return 0;
}

static int open_loader(weir_loader **out, const struct lists *lists,
                       const weir_loader_options *opts)
{
    return lists->weights ? weir_loader_open_mix(out, lists->parts, lists->weights,
                                                 (uint32_t)lists->held, opts)
                          : weir_loader_open(out, lists->parts[0], opts);
}

static int loader_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    Loader *self = (Loader *)object;
    PyObject *given[3];
    struct lists lists = {0};
    weir_loader_options opts;
    weir_loader *loader = NULL;
    int code;
    weir_loader_options_init(&opts);
    if (parse(args, kwargs, given, &opts))
        return -1;
    if (self->loader || !PyList_Size(given[0])) {
        PyErr_SetString(PyExc_ValueError, "a loader is opened once, of one dataset or more");
        return -1;
    }
    if (read_parts(&lists, given[0]) || read_weights(&lists, given[1]) ||
        read_fields(&lists, given[2], &opts)) {
        let_go(given[0], lists.held);
        free_lists(&lists);
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    code = open_loader(&loader, &lists, &opts);
    Py_END_ALLOW_THREADS
    if (code) {
        ext_fail(code);
        let_go(given[0], lists.held);
    } else {
        self->loader = loader;
        self->parts = Py_NewRef(given[0]);
    }
    free_lists(&lists);
    return code ? -1 : 0;
}

static void release(Loader *self)
{
    weir_loader *loader = self->loader;
    self->loader = NULL;
    if (!loader)
        return;
    Py_BEGIN_ALLOW_THREADS
    weir_loader_close(loader);
    Py_END_ALLOW_THREADS
    let_go(self->parts, (size_t)PyList_Size(self->parts));
    Py_CLEAR(self->parts);
}

/* To be asked where it is, by whomever: also while a thread waits for the next batch, whose signal
 * handlers run meanwhile. */
static weir_loader *loader_there(PyObject *object)
{
    Loader *self = (Loader *)object;
    if (self->loader)
        weir_loader_reached(self->loader, self->reached);
    else
        PyErr_SetString(PyExc_ValueError, "the loader is closed");
    return self->loader;
}

static weir_loader *loader_of(PyObject *object)
{
    if (loader_there(object) && ((Loader *)object)->busy) {
        PyErr_SetString(PyExc_ValueError,
                        "the loader is in use: a thread waits for its next batch");
        return NULL;
    }
    return ((Loader *)object)->loader;
}

static PyObject *loader_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (((Loader *)object)->loader && !loader_of(object))
        return NULL;
    release((Loader *)object);
    Py_RETURN_NONE;
}

static void loader_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    release((Loader *)object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* ---- batches ---- */

struct waiting {
    weir_loader *loader;
    weir_batch *batch;
};

static int step(void *arg, uint64_t timeout_ns)
{
    struct waiting *waiting = arg;
    return weir_loader_next(waiting->loader, &waiting->batch, timeout_ns);
}

/* next() -> a Batch, or None at the end */
static PyObject *loader_next(PyObject *object, PyObject *unused)
{
    Loader *self = (Loader *)object;
    struct waiting waiting = {.loader = loader_of(object)};
    (void)unused;
    if (!waiting.loader)
        return NULL;
    self->busy = 1;
    int code = ext_wait(step, &waiting, UINT64_MAX);
    self->busy = 0;
    if (code == 1)
        return ext_batch_new(waiting.batch);
    if (PyErr_Occurred())
        return NULL;
    return ext_none(code);
}

/* wants() -> how large the next memory should be that is lent; 0: there is enough */
static PyObject *loader_wants(PyObject *object, PyObject *unused)
{
    weir_loader *loader = loader_of(object);
    (void)unused;
    return loader ? PyLong_FromUnsignedLongLong(weir_loader_wants(loader)) : NULL;
}

/* lend(memory, owner): a writable buffer, for one batch, whose owner() that is */
static PyObject *loader_lend(PyObject *object, PyObject *args)
{
    weir_loader *loader = loader_of(object);
    PyObject *memory, *owner;
    if (!loader || !PyArg_ParseTuple(args, "OO", &memory, &owner) ||
        ext_lend(loader, memory, owner))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- where it is ---- */

/* The loader, with its state; NULL: raised. */
static weir_loader *loader_with(PyObject *object, weir_loader_state *state)
{
    weir_loader *loader = loader_there(object);
    if (loader)
        weir_loader_state_get(loader, state);
    return loader;
}

/* position(): that of state(), which each step of a loop asks for */
static PyObject *loader_position(PyObject *object, PyObject *unused)
{
    weir_loader_state state;
    (void)unused;
    return loader_with(object, &state) ? PyLong_FromUnsignedLongLong(state.position) : NULL;
}

static PyObject *tallies_list(const weir_loader_part *part)
{
    PyObject *list = PyList_New(part->tallies_count);
    for (uint32_t i = 0; list && i < part->tallies_count; i++) {
        const weir_tally *tally = &part->tallies[i];
        PyObject *row = Py_BuildValue("KKy#", (unsigned long long)tally->epoch,
                                      (unsigned long long)tally->samples,
                                      (const char *)tally->digest, (Py_ssize_t)16);
        if (!row || PyList_SetItem(list, i, row))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *part_dict(const weir_loader *loader, uint32_t i)
{
    weir_loader_part part;
    int code = weir_loader_part_get(loader, i, &part);
    if (code)
        return ext_fail(code);
    return Py_BuildValue(
        "{s:s,s:K,s:K,s:K,s:I,s:N}", "digest", part.digest, "samples",
        (unsigned long long)part.samples, "window", (unsigned long long)part.window, "position",
        (unsigned long long)part.position, "lanes", part.lanes, "tallies", tallies_list(&part));
}

/* state() -> {"seed", "position", "shuffle", "parts": [{…, "tallies": [(epoch, samples, digest)]}]}
 */
static PyObject *loader_state(PyObject *object, PyObject *unused)
{
    weir_loader_state state;
    weir_loader *loader = loader_with(object, &state);
    (void)unused;
    if (!loader)
        return NULL;
    PyObject *parts = PyList_New(state.parts);
    for (uint32_t i = 0; parts && i < state.parts; i++) {
        PyObject *part = part_dict(loader, i);
        if (!part || PyList_SetItem(parts, i, part))
            Py_CLEAR(parts);
    }
    if (!parts)
        return NULL;
    return Py_BuildValue("{s:K,s:K,s:O,s:N}", "seed", (unsigned long long)state.seed, "position",
                         (unsigned long long)state.position, "shuffle",
                         state.flags & WEIR_LOADER_SHUFFLE ? Py_True : Py_False, "parts", parts);
}

static PyObject *sizes_list(const weir_loader_stats *stats)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < WEIR_READ_SIZES; i++) {
        if (!stats->read_sizes[i])
            continue;
        PyObject *row =
            Py_BuildValue("KK", 1ull << (i + 9), (unsigned long long)stats->read_sizes[i]);
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *loader_stats(PyObject *object, PyObject *unused)
{
    weir_loader *loader = loader_there(object);
    weir_loader_stats s;
    (void)unused;
    if (!loader)
        return NULL;
    weir_loader_stats_get(loader, &s);
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:d,s:d,s:d,s:K,s:K,s:K,s:N,s:d,s:d,s:d,s:d,s:K,s:K,s:I,s:I,s:K,s:K,s:K,s:K}",
        "batches", (unsigned long long)s.batches, "samples", (unsigned long long)s.samples,
        "sample_bytes", (unsigned long long)s.sample_bytes, "stall_read_s",
        (double)s.stall_ns[WEIR_STALL_READ] / 1e9, "stall_decode_s",
        (double)s.stall_ns[WEIR_STALL_DECODE] / 1e9, "stall_queue_s",
        (double)s.stall_ns[WEIR_STALL_QUEUE] / 1e9, "stalls", (unsigned long long)s.stalls, "reads",
        (unsigned long long)s.reads, "read_bytes", (unsigned long long)s.read_bytes, "read_sizes",
        sizes_list(&s), "read_s", (double)s.read_ns / 1e9, "decompress_s",
        (double)s.decompress_ns / 1e9, "decode_s", (double)s.decode_ns / 1e9, "plan_s",
        (double)s.plan_ns / 1e9, "memory_bytes", (unsigned long long)s.memory_bytes,
        "memory_bytes_peak", (unsigned long long)s.memory_bytes_peak, "threads", s.threads,
        "prefetch", s.prefetch, "cached_bytes", (unsigned long long)s.cached_bytes,
        "buffered_bytes", (unsigned long long)s.buffered_bytes, "direct_bytes",
        (unsigned long long)s.direct_bytes, "mapped_bytes", (unsigned long long)s.mapped_bytes);
}

static PyMethodDef methods[] = {
    {"next", loader_next, METH_NOARGS, NULL},
    {"wants", loader_wants, METH_NOARGS, NULL},
    {"lend", loader_lend, METH_VARARGS, NULL},
    {"position", loader_position, METH_NOARGS, NULL},
    {"state", loader_state, METH_NOARGS, NULL},
    {"stats", loader_stats, METH_NOARGS, NULL},
    {"close", loader_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* reached is set by an assignment: between that and what follows no signal's handler runs. */
static PyMemberDef members[] = {
    {"busy", T_BOOL, offsetof(Loader, busy), READONLY, NULL},
    {"reached", T_ULONGLONG, offsetof(Loader, reached), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_members, members},
    {Py_tp_init, loader_init},
    {Py_tp_dealloc, loader_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"weir._weir.Loader", sizeof(Loader), 0, Py_TPFLAGS_DEFAULT, slots};

int ext_add_loader(PyObject *module)
{
    return ext_add_type(module, &spec, NULL);
}
