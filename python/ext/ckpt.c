/* ckpt.c - weir._weir.Ckpt and Saving: saving checkpoints.
 *
 * A Saving outlives its Ckpt's close(): what is known of it by then is kept. Closing waits for
 * calls under way in other threads; their waits end within a slice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ext.h"

typedef struct Saving Saving;

typedef struct {
    PyObject_HEAD weir_ckpt *ckpt; /* NULL when closed */
    PyObject *store;               /* held */
    Saving *savings;               /* those alive */
    pid_t pid;                     /* that opened it */
    int busy;                      /* calls under way */
    int saving;                    /* one of them is save() */
    int closing;
} Ckpt;

struct Saving {
    PyObject_HEAD Ckpt *owner;
    weir_saving *saving; /* NULL when the owner is closed: then what was known by then is below */
    Saving *next;
    weir_level level;
    int code;
    char text[512];
};

static PyObject *saving_type;

static weir_ckpt *ckpt_of(Ckpt *self)
{
    if (!self->ckpt || self->closing) {
        PyErr_SetString(PyExc_ValueError, "the checkpointer is closed");
        return NULL;
    }
    return self->ckpt;
}

/* ---- opening and closing ---- */

static int ckpt_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"store",     "run",        "rank",          "ranks",
                            "token",     "queue_max",  "staging_bytes", "rate",
                            "keep_last", "keep_every", "retired_grace", NULL};
    Ckpt *self = (Ckpt *)object;
    PyObject *store;
    const char *run, *token = NULL;
    Py_ssize_t token_size = 0;
    weir_ckpt_options opts;
    weir_ckpt *ckpt = NULL;
    int code;
    weir_ckpt_options_init(&opts);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os|O&O&z#O&O&O&O&O&O&", names, &store, &run,
                                     ext_u32, &opts.rank, ext_u32, &opts.ranks, &token, &token_size,
                                     ext_u32, &opts.queue_max, ext_u64, &opts.staging_bytes_max,
                                     ext_u64, &opts.rate_bytes_per_s, ext_u32, &opts.keep_last,
                                     ext_u32, &opts.keep_every, ext_u64, &opts.retired_grace_s))
        return -1;
    const char *wrong = self->ckpt || self->closing ? "the checkpointer is open already"
                        : token && token_size != 16 ? "the token has 16 bytes"
                                                    : NULL;
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, wrong);
        return -1;
    }
    opts.token = (const uint8_t *)token;
    weir_store *held = ext_store_hold(store);
    if (!held)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    code = weir_ckpt_open(&ckpt, held, run, &opts);
    Py_END_ALLOW_THREADS
    if (code) {
        ext_fail(code);
        ext_store_let_go(store);
        return -1;
    }
    self->ckpt = ckpt;
    self->store = store;
    self->pid = getpid();
    return 0;
}

/* What is known of a save when its checkpointer closes. It will never be home if that is a verdict;
 * any other failure to find out is not the save's. */
static int how_it_went(weir_saving *saving, weir_level *level)
{
    *level = WEIR_LEVEL_HOME;
    int code = weir_saving_wait(saving, WEIR_LEVEL_HOME, 0);
    if (!code || code == -EBADMSG || code == -ESTALE)
        return code;
    *level = WEIR_LEVEL_NODE;
    return weir_saving_wait(saving, WEIR_LEVEL_NODE, 0);
}

/* While the GIL is not held, others see that the checkpointer is closing, and leave it alone. */
static void settle(Saving *s)
{
    weir_saving *saving = s->saving;
    weir_level level;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = how_it_went(saving, &level);
    Py_END_ALLOW_THREADS
    s->code = code;
    s->level = level;
    if (code)
        snprintf(s->text, sizeof s->text, "%s", weir_error_text());
    s->saving = NULL;
    weir_saving_close(saving);
}

static void sleep_a_little(void)
{
    struct timespec time = {0, 1000000};
    nanosleep(&time, NULL);
}

/* After the queue is empty. In a forked child nobody is left who could end a call under way. */
static void close_now(Ckpt *self)
{
    weir_ckpt *ckpt = self->ckpt;
    self->closing = 1;
    while (self->busy && self->pid == getpid()) {
        Py_BEGIN_ALLOW_THREADS
        sleep_a_little();
        Py_END_ALLOW_THREADS
    }
    if (!self->ckpt)
        return; /* another thread was faster */
    self->ckpt = NULL;
    while (self->savings) {
        Saving *s = self->savings;
        self->savings = s->next;
        Py_INCREF((PyObject *)s);
        settle(s);
        Py_DECREF((PyObject *)s);
    }
    Py_BEGIN_ALLOW_THREADS
    weir_ckpt_close(ckpt);
    Py_END_ALLOW_THREADS
    ext_store_let_go(self->store);
    self->store = NULL;
}

static int step_idle(void *handle, uint64_t timeout_ns)
{
    return weir_ckpt_wait(handle, 0, timeout_ns);
}

/* Waits for the saves under way: 0, the failure of one that nobody asked about, or -1 with an
 * exception (Ctrl-C). */
static int wait_idle(Ckpt *self)
{
    self->busy++;
    int code = ext_wait(step_idle, self->ckpt, UINT64_MAX);
    if (!code)
        code = weir_ckpt_failure(self->ckpt);
    self->busy--;
    return code;
}

static PyObject *ckpt_flush(PyObject *object, PyObject *unused)
{
    Ckpt *self = (Ckpt *)object;
    (void)unused;
    if (!ckpt_of(self))
        return NULL;
    int code = wait_idle(self);
    return code == -1 && PyErr_Occurred() ? NULL : ext_none(code);
}

/* close(): flushes. On Ctrl-C it stays open. */
static PyObject *ckpt_close(PyObject *object, PyObject *unused)
{
    Ckpt *self = (Ckpt *)object;
    PyObject *type, *value, *trace;
    (void)unused;
    if (!self->ckpt || self->closing)
        Py_RETURN_NONE;
    int code = wait_idle(self);
    if (code == -1 && PyErr_Occurred())
        return NULL;
    if (code)
        ext_fail(code); /* after it is closed */
    PyErr_Fetch(&type, &value, &trace);
    close_now(self);
    PyErr_Restore(type, value, trace);
    if (code)
        return NULL;
    Py_RETURN_NONE;
}

static void ckpt_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (((Ckpt *)object)->ckpt)
        close_now((Ckpt *)object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* ---- saving ---- */

/* (name, dtype, shape, address, global_shape or None, offset or None, replica, replicas) */
static int read_tensor(void *unused, PyObject *tuple, void *item, uint64_t **sizes)
{
    PyObject *shape, *global_shape, *offset;
    unsigned long long address;
    weir_tensor *t = item;
    (void)unused;
    if (!PyArg_ParseTuple(tuple, "ssOKOOO&O&", &t->name, &t->dtype, &shape, &address, &global_shape,
                          &offset, ext_u32, &t->replica, ext_u32, &t->replicas))
        return -1;
    Py_ssize_t ndim = ext_sizes(shape, -1, sizes, &t->shape);
    if (ndim < 0 || ext_sizes(global_shape, ndim, sizes, &t->global_shape) < 0 ||
        ext_sizes(offset, ndim, sizes, &t->offset) < 0)
        return -1;
    t->ndim = (uint32_t)ndim;
    t->data = (const void *)(uintptr_t)address;
    return 0;
}

static Py_ssize_t count_sizes(PyObject *tuple)
{
    PyObject *shape =
        PyTuple_Check(tuple) && PyTuple_Size(tuple) > 2 ? PyTuple_GetItem(tuple, 2) : NULL;
    if (!shape || !PyTuple_Check(shape)) {
        PyErr_SetString(PyExc_TypeError, "a tensor is a tuple with its shape as the third");
        return -1;
    }
    return 3 * PyTuple_Size(shape);
}

static int step_room(void *handle, uint64_t timeout_ns)
{
    return weir_ckpt_room(handle, timeout_ns);
}

static PyObject *saving_new(Ckpt *owner, weir_saving *saving)
{
    PyTypeObject *type = (PyTypeObject *)saving_type;
    Saving *s = (Saving *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!s) {
        weir_saving_close(saving);
        return NULL;
    }
    s->owner = owner;
    Py_INCREF((PyObject *)owner);
    s->saving = saving;
    s->next = owner->savings;
    owner->savings = s;
    return (PyObject *)s;
}

static PyObject *save_tensors(Ckpt *self, uint64_t step, const weir_tensor *tensors, size_t count,
                              const weir_save_options *opts)
{
    weir_saving *saving = NULL;
    if (self->saving) {
        PyErr_SetString(PyExc_ValueError, "the checkpointer is in use by another thread");
        return NULL;
    }
    self->busy++;
    self->saving = 1;
    int code = ext_wait(step_room, self->ckpt, UINT64_MAX);
    int raised = code == -1 && PyErr_Occurred();
    if (!code) {
        Py_BEGIN_ALLOW_THREADS
        code = weir_ckpt_save(self->ckpt, step, tensors, count, opts, &saving);
        Py_END_ALLOW_THREADS
    }
    PyObject *out = raised ? NULL : code ? ext_fail(code) : saving_new(self, saving);
    self->saving = 0;
    self->busy--; /* from here on another thread may close it */
    return out;
}

/* save(step, [tensor, …], meta or None, state or None, number=0, name=None, is_waited_for=False) ->
 * Saving */
static PyObject *ckpt_save(PyObject *object, PyObject *args)
{
    Ckpt *self = (Ckpt *)object;
    uint64_t step;
    PyObject *list, *out = NULL;
    weir_save_options opts;
    weir_save_options_init(&opts);
    if (!PyArg_ParseTuple(args, "O&Ozz|O&zp", ext_u64, &step, &list, &opts.meta, &opts.state,
                          ext_u64, &opts.number, &opts.name, &opts.is_waited_for) ||
        !ckpt_of(self))
        return NULL;
    struct ext_list tensors = {.what = "the tensors",
                               .item_bytes = sizeof(weir_tensor),
                               .count = count_sizes,
                               .read = read_tensor};
    if (!ext_list_read(&tensors, list))
        out = save_tensors(self, step, tensors.items, tensors.items_count, &opts);
    ext_list_free(&tensors);
    return out;
}

static PyObject *ckpt_stats(PyObject *object, PyObject *unused)
{
    Ckpt *self = (Ckpt *)object;
    weir_ckpt_stats stats;
    (void)unused;
    if (!ckpt_of(self))
        return NULL;
    weir_ckpt_stats_get(self->ckpt, &stats);
    return Py_BuildValue("{s:K,s:K,s:d,s:d,s:d}", "saves", (unsigned long long)stats.saves, "bytes",
                         (unsigned long long)stats.bytes, "stall_queue_s",
                         (double)stats.stall_queue_ns / 1e9, "stall_stage_s",
                         (double)stats.stall_stage_ns / 1e9, "copy_s", (double)stats.copy_ns / 1e9);
}

static PyObject *ckpt_attempt(PyObject *object, PyObject *unused)
{
    Ckpt *self = (Ckpt *)object;
    (void)unused;
    return ckpt_of(self) ? PyLong_FromUnsignedLongLong(weir_ckpt_attempt(self->ckpt)) : NULL;
}

static PyMethodDef ckpt_methods[] = {
    {"save", ckpt_save, METH_VARARGS, NULL},      {"stats", ckpt_stats, METH_NOARGS, NULL},
    {"attempt", ckpt_attempt, METH_NOARGS, NULL}, {"flush", ckpt_flush, METH_NOARGS, NULL},
    {"close", ckpt_close, METH_NOARGS, NULL},     {NULL, NULL, 0, NULL},
};

static PyType_Slot ckpt_slots[] = {
    {Py_tp_init, ckpt_init},
    {Py_tp_dealloc, ckpt_dealloc},
    {Py_tp_methods, ckpt_methods},
    {0, NULL},
};

static PyType_Spec ckpt_spec = {"weir._weir.Ckpt", sizeof(Ckpt), 0, Py_TPFLAGS_DEFAULT, ckpt_slots};

/* ---- Saving ---- */

struct wait {
    Saving *s;
    weir_level level;
};

static int step_level(void *handle, uint64_t timeout_ns)
{
    struct wait *wait = handle;
    if (wait->s->owner->closing)
        return -ECANCELED;
    return weir_saving_wait(wait->s->saving, wait->level, timeout_ns);
}

/* What a closed checkpointer left behind. */
static PyObject *known(Saving *s, weir_level level)
{
    if (s->code)
        return ext_fail_text(s->code, s->text);
    if (level <= s->level)
        Py_RETURN_NONE;
    PyErr_SetString(PyExc_ValueError, "the checkpointer is closed, and this save was not yet "
                                      "complete: some other rank's part was missing");
    return NULL;
}

/* wait(level, timeout=None): raises its failure, or TimeoutError, which says what is missing */
static PyObject *saving_wait(PyObject *object, PyObject *args)
{
    Saving *s = (Saving *)object;
    int level;
    PyObject *seconds = NULL;
    uint64_t timeout_ns;
    if (!PyArg_ParseTuple(args, "i|O", &level, &seconds) || ext_timeout(seconds, &timeout_ns))
        return NULL;
    if (!s->saving)
        return known(s, (weir_level)level);
    struct wait wait = {s, (weir_level)level};
    s->owner->busy++;
    int code = ext_wait(step_level, &wait, timeout_ns);
    s->owner->busy--;
    if (code == -1 && PyErr_Occurred())
        return NULL;
    if (code == -ECANCELED && s->owner->closing) {
        PyErr_SetString(PyExc_ValueError, "the checkpointer was closed meanwhile");
        return NULL;
    }
    return ext_none(code);
}

static PyObject *saving_cancel(PyObject *object, PyObject *unused)
{
    Saving *s = (Saving *)object;
    (void)unused;
    if (s->saving)
        weir_saving_cancel(s->saving);
    Py_RETURN_NONE;
}

static void saving_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Saving *s = (Saving *)object;
    if (s->owner) {
        Saving **at = &s->owner->savings;
        while (*at && *at != s)
            at = &(*at)->next;
        if (*at)
            *at = s->next;
        weir_saving_close(s->saving);
        Py_DECREF((PyObject *)s->owner);
    }
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMethodDef saving_methods[] = {
    {"wait", saving_wait, METH_VARARGS, NULL},
    {"cancel", saving_cancel, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot saving_slots[] = {
    {Py_tp_dealloc, saving_dealloc},
    {Py_tp_methods, saving_methods},
    {0, NULL},
};

static PyType_Spec saving_spec = {"weir._weir.Saving", sizeof(Saving), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  saving_slots};

int ext_add_ckpt(PyObject *module)
{
    return ext_add_type(module, &ckpt_spec, NULL) ||
                   ext_add_type(module, &saving_spec, &saving_type)
               ? -1
               : 0;
}
