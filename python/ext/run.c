/* run.c - the checkpoints of a run: listing and naming them. */
#include "ext.h"

struct listing {
    PyObject *list;
    PyThreadState *thread;
};

static PyObject *names_tuple(const weir_ckpt_info *info)
{
    PyObject *names = PyTuple_New(info->name_count);
    for (uint32_t i = 0; names && i < info->name_count; i++) {
        PyObject *name = PyUnicode_FromString(info->names[i]);
        if (!name || PyTuple_SetItem(names, i, name))
            Py_CLEAR(names);
    }
    return names;
}

static int add_row(void *arg, const weir_ckpt_info *info)
{
    struct listing *listing = arg;
    PyEval_RestoreThread(listing->thread);
    PyObject *row =
        Py_BuildValue("{s:K,s:K,s:K,s:d,s:I,s:s,s:N}", "step", (unsigned long long)info->step,
                      "attempt", (unsigned long long)info->attempt, "save",
                      (unsigned long long)info->save, "time", (double)info->time_ns / 1e9, "ranks",
                      info->ranks, "prefix", info->prefix, "names", names_tuple(info));
    int failed = !row || PyList_Append(listing->list, row);
    Py_XDECREF(row);
    listing->thread = PyEval_SaveThread();
    return failed ? -ECANCELED : 0;
}

/* checkpoints(store, run) -> [dict], oldest first; empty if there is no such run */
static PyObject *checkpoints(PyObject *module, PyObject *args)
{
    PyObject *store;
    const char *run;
    (void)module;
    if (!PyArg_ParseTuple(args, "Os", &store, &run))
        return NULL;
    weir_store *held = ext_store_hold(store);
    if (!held)
        return NULL;
    struct listing listing = {.list = PyList_New(0)};
    if (listing.list) {
        listing.thread = PyEval_SaveThread();
        int code = weir_ckpt_each(held, run, 0, add_row, &listing);
        PyEval_RestoreThread(listing.thread);
        if (code && code != -ENOENT) {
            Py_CLEAR(listing.list);
            if (!PyErr_Occurred())
                ext_fail(code);
        }
    }
    ext_store_let_go(store);
    return listing.list;
}

/* name(store, run, step, name): step None takes the name off */
static PyObject *name(PyObject *module, PyObject *args)
{
    PyObject *store, *step;
    const char *run, *text;
    uint64_t number = 0;
    int code;
    (void)module;
    if (!PyArg_ParseTuple(args, "OsOs", &store, &run, &step, &text))
        return NULL;
    if (!Py_IsNone(step) && !ext_u64(step, &number))
        return NULL;
    weir_store *held = ext_store_hold(store);
    if (!held)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = Py_IsNone(step) ? weir_ckpt_unname(held, run, text, NULL)
                           : weir_ckpt_name(held, run, number, text, NULL);
    Py_END_ALLOW_THREADS
    PyObject *out = ext_none(code); /* before anything else fails */
    ext_store_let_go(store);
    return out;
}

static PyMethodDef functions[] = {
    {"checkpoints", checkpoints, METH_VARARGS, NULL},
    {"name", name, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int ext_add_run(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
