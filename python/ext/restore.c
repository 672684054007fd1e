/* restore.c - weir._weir.Restore: loading a checkpoint. */
#include <stdlib.h>

#include "ext.h"

typedef struct {
    PyObject_HEAD weir_restore *restore;
    PyObject *store; /* held */
    int busy;
} Restore;

/* Which checkpoint: a step, just one save of it, one with a name, or the newest. */
struct which {
    const char *run, *name;
    uint64_t step, attempt, save;
};

static int open_which(weir_restore **out, weir_store *store, const struct which *which)
{
    weir_ckpt_info info = {.step = which->step, .attempt = which->attempt, .save = which->save};
    if (which->name)
        return weir_restore_open_named(out, store, which->run, which->name);
    if (which->attempt)
        return weir_restore_open_this(out, store, which->run, &info);
    return weir_restore_open(out, store, which->run, which->step);
}

static int restore_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"store", "run", "step", "attempt", "save", "name", NULL};
    Restore *self = (Restore *)object;
    PyObject *store, *step = NULL;
    struct which which = {.step = WEIR_STEP_NEWEST};
    weir_restore *restore = NULL;
    int code;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os|OO&O&z", names, &store, &which.run, &step,
                                     ext_u64, &which.attempt, ext_u64, &which.save, &which.name))
        return -1;
    if (step && !Py_IsNone(step) && !ext_u64(step, &which.step))
        return -1;
    if (self->restore) {
        PyErr_SetString(PyExc_ValueError, "the restore is open already");
        return -1;
    }
    weir_store *held = ext_store_hold(store);
    if (!held)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    code = open_which(&restore, held, &which);
    Py_END_ALLOW_THREADS
    if (code) {
        ext_fail(code);
        ext_store_let_go(store);
        return -1;
    }
    self->restore = restore;
    self->store = store;
    return 0;
}

static void release(Restore *self)
{
    weir_restore *restore = self->restore;
    self->restore = NULL;
    if (!restore)
        return;
    Py_BEGIN_ALLOW_THREADS
    weir_restore_close(restore);
    Py_END_ALLOW_THREADS
    ext_store_let_go(self->store);
}

static weir_restore *restore_of(PyObject *object)
{
    Restore *self = (Restore *)object;
    if (!self->restore || self->busy) {
        PyErr_SetString(PyExc_ValueError, self->restore ? "the restore is in use by another thread"
                                                        : "the restore is closed");
        return NULL;
    }
    return self->restore;
}

static PyObject *restore_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (((Restore *)object)->restore && !restore_of(object))
        return NULL;
    release((Restore *)object);
    Py_RETURN_NONE;
}

static void restore_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    release((Restore *)object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *restore_info(PyObject *object, PyObject *unused)
{
    weir_restore *restore = restore_of(object);
    (void)unused;
    if (!restore)
        return NULL;
    const weir_restore_info *info = weir_restore_info_get(restore);
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:d,s:K,s:I,s:K,s:s,s:z}", "step", (unsigned long long)info->step, "attempt",
        (unsigned long long)info->attempt, "save", (unsigned long long)info->save, "time",
        (double)info->time_ns / 1e9, "bytes", (unsigned long long)info->size_bytes, "ranks",
        info->ranks, "tensors", (unsigned long long)info->tensors, "prefix", info->prefix, "meta",
        info->meta);
}

/* tensors() -> [(name, dtype, shape, bytes, pieces)], sorted by name */
static PyObject *restore_tensors(PyObject *object, PyObject *unused)
{
    weir_restore *restore = restore_of(object);
    weir_tensor_info info;
    (void)unused;
    if (!restore)
        return NULL;
    size_t count = weir_restore_info_get(restore)->tensors;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        int code = weir_restore_tensor(restore, i, &info);
        PyObject *row =
            code ? ext_fail(code)
                 : Py_BuildValue("ssNKI", info.name, info.dtype, ext_shape(info.shape, info.ndim),
                                 (unsigned long long)info.size_bytes, info.pieces);
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row))
            Py_CLEAR(list);
    }
    return list;
}

/* find(name) -> its number, or -1 */
static PyObject *restore_find(PyObject *object, PyObject *args)
{
    const char *name;
    weir_restore *restore = restore_of(object);
    if (!restore || !PyArg_ParseTuple(args, "s", &name))
        return NULL;
    int64_t i = weir_restore_find(restore, name);
    return PyLong_FromLongLong(i < 0 ? -1 : i);
}

/* state(rank) -> the rank's JSON, or None */
static PyObject *restore_state(PyObject *object, PyObject *args)
{
    Restore *self = (Restore *)object;
    uint32_t rank;
    char *text = NULL;
    int code;
    weir_restore *restore = restore_of(object);
    if (!restore || !PyArg_ParseTuple(args, "O&", ext_u32, &rank))
        return NULL;
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    code = weir_restore_state(restore, rank, &text);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    if (code == -ENOENT)
        Py_RETURN_NONE;
    if (code)
        return ext_fail(code);
    PyObject *out = PyUnicode_FromString(text);
    free(text);
    return out;
}

/* Every few MiB signal handlers run, and the caller's own function. */
enum { WATCH_BYTES = 16 << 20 }; /* taking the GIL may cost as much as reading one */

struct watch {
    PyObject *progress; /* or NULL */
    uint64_t bytes, told;
};

/* With the GIL held. */
static int tell(struct watch *w)
{
    if (PyErr_CheckSignals())
        return -1;
    w->told = w->bytes;
    if (!w->progress)
        return 0;
    PyObject *answer = PyObject_CallFunction(w->progress, "K", (unsigned long long)w->bytes);
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}

static int watch(void *arg, uint64_t more)
{
    struct watch *w = arg;
    w->bytes += more;
    if (w->bytes - w->told < WATCH_BYTES)
        return 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    int stop = tell(w);
    PyGILState_Release(gil);
    return stop;
}

/* (number, offset or None, shape or None, address) */
static int read_slice(void *restore, PyObject *tuple, void *item, uint64_t **sizes)
{
    PyObject *offset, *shape;
    unsigned long long number, address;
    weir_tensor_info info;
    weir_slice *slice = item;
    if (!PyArg_ParseTuple(tuple, "KOOK", &number, &offset, &shape, &address))
        return -1;
    int code = weir_restore_tensor(restore, (size_t)number, &info);
    if (code) {
        ext_fail(code);
        return -1;
    }
    slice->tensor = (size_t)number;
    slice->data = (void *)(uintptr_t)address;
    return ext_sizes(offset, info.ndim, sizes, &slice->offset) < 0 ||
                   ext_sizes(shape, info.ndim, sizes, &slice->shape) < 0
               ? -1
               : 0;
}

static Py_ssize_t count_sizes(PyObject *tuple)
{
    Py_ssize_t count = 0;
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 4) {
        PyErr_SetString(PyExc_TypeError, "a slice is a tuple of four");
        return -1;
    }
    for (int k = 1; k < 3; k++) {
        PyObject *sizes = PyTuple_GetItem(tuple, k);
        count += PyTuple_Check(sizes) ? PyTuple_Size(sizes) : 0;
    }
    return count;
}

static PyObject *read_slices(Restore *self, const weir_slice *slices, size_t count,
                             PyObject *progress)
{
    struct watch w = {.progress = progress};
    int code;
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    code = weir_restore_read(self->restore, slices, count, watch, &w);
    Py_END_ALLOW_THREADS
    PyObject *out = PyErr_Occurred() ? NULL : ext_none(code);
    if (out && w.bytes != w.told && tell(&w))
        Py_CLEAR(out);
    self->busy = 0;
    return out;
}

/* read([slice, …], progress=None): progress is called with the bytes read so far */
static PyObject *restore_read(PyObject *object, PyObject *args)
{
    PyObject *list, *progress = NULL, *out = NULL;
    weir_restore *restore = restore_of(object);
    if (!restore || !PyArg_ParseTuple(args, "O|O", &list, &progress))
        return NULL;
    struct ext_list slices = {.what = "the slices",
                              .item_bytes = sizeof(weir_slice),
                              .count = count_sizes,
                              .read = read_slice,
                              .arg = restore};
    if (!ext_list_read(&slices, list))
        out = read_slices((Restore *)object, slices.items, slices.items_count,
                          progress && !Py_IsNone(progress) ? progress : NULL);
    ext_list_free(&slices);
    return out;
}

static PyMethodDef methods[] = {
    {"info", restore_info, METH_NOARGS, NULL},
    {"tensors", restore_tensors, METH_NOARGS, NULL},
    {"find", restore_find, METH_VARARGS, NULL},
    {"state", restore_state, METH_VARARGS, NULL},
    {"read", restore_read, METH_VARARGS, NULL},
    {"close", restore_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, restore_init},
    {Py_tp_dealloc, restore_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"weir._weir.Restore", sizeof(Restore), 0, Py_TPFLAGS_DEFAULT, slots};

int ext_add_restore(PyObject *module)
{
    return ext_add_type(module, &spec, NULL);
}
