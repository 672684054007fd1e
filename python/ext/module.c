/* module.c - the module, its errors, and the helpers of ext.h. */
#include "ext.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PyObject *damaged_error, *stale_error;

PyObject *ext_fail_text(int code, const char *text)
{
    PyObject *type = code == -EBADMSG  ? damaged_error
                     : code == -ESTALE ? stale_error
                                       : PyExc_OSError;
    /* A text names paths, which may hold any bytes; OSError itself picks FileNotFoundError and the
     * like. */
    PyObject *shown = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    PyObject *error = shown ? PyObject_CallFunction(type, "iN", -code, shown) : NULL;
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject *ext_fail(int code)
{
    return ext_fail_text(code, weir_error_text());
}

PyObject *ext_none(int code)
{
    if (code)
        return ext_fail(code);
    Py_RETURN_NONE;
}

int ext_wait(ext_step step, void *handle, uint64_t timeout_ns)
{
    for (;;) {
        uint64_t slice_ns = timeout_ns < EXT_SLICE_NS ? timeout_ns : EXT_SLICE_NS;
        int code;
        Py_BEGIN_ALLOW_THREADS
        code = step(handle, slice_ns);
        Py_END_ALLOW_THREADS
        if (timeout_ns != UINT64_MAX)
            timeout_ns -= slice_ns;
        if (code != -ETIMEDOUT || !timeout_ns)
            return code;
        if (PyErr_CheckSignals())
            return -1;
    }
}

int ext_timeout(PyObject *seconds, uint64_t *out)
{
    if (!seconds || Py_IsNone(seconds)) {
        *out = UINT64_MAX;
        return 0;
    }
    double value = PyFloat_AsDouble(seconds);
    if (value == -1 && PyErr_Occurred())
        return -1;
    if (isnan(value) || value < 0) {
        PyErr_SetString(PyExc_ValueError, "a timeout is a number of seconds, or None");
        return -1;
    }
    *out = value < 1e9 ? (uint64_t)(value * 1e9) : UINT64_MAX;
    return 0;
}

int ext_u64(PyObject *number, void *out)
{
    PyObject *index = PyNumber_Index(number);
    unsigned long long value = index ? PyLong_AsUnsignedLongLong(index) : 0;
    Py_XDECREF(index);
    if (PyErr_Occurred())
        return 0;
    *(uint64_t *)out = value;
    return 1;
}

int ext_url(PyObject *url, void *out)
{
    return PyUnicode_FSConverter(url, out);
}

int ext_url_or_none(PyObject *url, void *out)
{
    return url && Py_IsNone(url) ? 1 : PyUnicode_FSConverter(url, out);
}

const char *ext_url_text(PyObject *url)
{
    return url ? PyBytes_AsString(url) : NULL;
}

int ext_u32(PyObject *number, void *out)
{
    uint64_t value;
    if (!ext_u64(number, &value))
        return 0;
    if (value > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "%R is too large", number);
        return 0;
    }
    *(uint32_t *)out = (uint32_t)value;
    return 1;
}

Py_ssize_t ext_sizes(PyObject *tuple, Py_ssize_t ndim, uint64_t **at, const uint64_t **out)
{
    *out = NULL;
    if (Py_IsNone(tuple))
        return 0;
    Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    if (count < 0 || (ndim >= 0 && count != ndim)) {
        PyErr_SetString(PyExc_TypeError, "a shape or an offset is a tuple of as many numbers as "
                                         "the tensor has dimensions");
        return -1;
    }
    *out = *at;
    for (Py_ssize_t i = 0; i < count; i++) {
        *(*at)++ = PyLong_AsUnsignedLongLong(PyTuple_GetItem(tuple, i));
        if (PyErr_Occurred())
            return -1;
    }
    return count;
}

PyObject *ext_shape(const uint64_t *shape, uint32_t ndim)
{
    PyObject *tuple = PyTuple_New(ndim);
    for (uint32_t i = 0; tuple && i < ndim; i++) {
        PyObject *size = PyLong_FromUnsignedLongLong(shape[i]);
        if (!size || PyTuple_SetItem(tuple, i, size)) /* which takes it in any case */
            Py_CLEAR(tuple);
    }
    return tuple;
}

int ext_list_read(struct ext_list *list, PyObject *object)
{
    if (!PyList_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s are a list", list->what);
        return -1;
    }
    Py_ssize_t count = PyList_Size(object), sizes = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t more = list->count(PyList_GetItem(object, i));
        if (more < 0)
            return -1;
        sizes += more;
    }
    list->items_count = (size_t)count;
    list->items = calloc((size_t)count + 1, list->item_bytes);
    list->sizes = calloc((size_t)sizes + 1, sizeof *list->sizes);
    if (!list->items || !list->sizes) {
        PyErr_NoMemory();
        return -1;
    }
    uint64_t *at = list->sizes;
    for (Py_ssize_t i = 0; i < count; i++)
        if (list->read(list->arg, PyList_GetItem(object, i),
                       (char *)list->items + (size_t)i * list->item_bytes, &at))
            return -1;
    return 0;
}

void ext_list_free(struct ext_list *list)
{
    free(list->items);
    free(list->sizes);
}

int ext_add_type(PyObject *module, PyType_Spec *spec, PyObject **out)
{
    PyObject *type = PyType_FromSpec(spec);
    if (!type || PyModule_AddType(module, (PyTypeObject *)type))
        return -1;
    if (out)
        *out = type; /* for as long as the process lives */
    else
        Py_DECREF(type);
    return 0;
}

/* count_nonfinite(dtype, address, size) */
static PyObject *count_nonfinite(PyObject *module, PyObject *args)
{
    const char *dtype;
    unsigned long long address, size;
    int64_t found;
    (void)module;
    if (!PyArg_ParseTuple(args, "sKK", &dtype, &address, &size))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = weir_count_nonfinite(dtype, (const void *)(uintptr_t)address, size);
    Py_END_ALLOW_THREADS
    return found < 0 ? ext_fail((int)found) : PyLong_FromLongLong(found);
}

static PyMethodDef functions[] = {
    {"count_nonfinite", count_nonfinite, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *add_error(PyObject *module, const char *name, const char *doc)
{
    char full[64];
    snprintf(full, sizeof full, "weir.%s", name);
    PyObject *error = PyErr_NewExceptionWithDoc(full, doc, PyExc_OSError, NULL);
    if (error && PyModule_AddObjectRef(module, name, error))
        Py_CLEAR(error);
    return error; /* for as long as the process lives */
}

static int exec_module(PyObject *module)
{
    damaged_error = add_error(module, "DamagedError",
                              "Bytes are not what was stored. Says which object and which range.");
    stale_error = add_error(module, "StaleError",
                            "A newer life of the run has begun, or what was read is gone.");
    if (!damaged_error || !stale_error || ext_add_store(module) || ext_add_ckpt(module) ||
        ext_add_restore(module) || ext_add_run(module) || ext_add_data(module) ||
        ext_add_batch(module) || ext_add_loader(module))
        return -1;
    return PyModule_AddStringConstant(module, "version", weir_version());
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
    {0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "weir._weir",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__weir(void);
PyMODINIT_FUNC PyInit__weir(void)
{
    return PyModuleDef_Init(&module);
}
