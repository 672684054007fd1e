/* batch.c - weir._weir.Batch: a batch as one buffer, which arrays are views of, and where in it
 * each column is. It is released when the last view is gone.
 */
#include <stdlib.h>

#include "ext.h"

typedef struct {
    PyObject_HEAD weir_batch *batch;
} Batch;

/* ---- memory that Python lends ---- */

struct lent {
    PyObject *owner; /* what batches say they are made in */
    Py_buffer memory;
};

/* With the GIL or without: by a batch that goes, or a loader that is closed. */
static void give_back(void *arg)
{
    struct lent *lent = arg;
    PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(&lent->memory);
    Py_DECREF(lent->owner);
    free(lent);
    PyGILState_Release(state);
}

int ext_lend(weir_loader *loader, PyObject *memory, PyObject *owner)
{
    struct lent *lent = calloc(1, sizeof *lent);
    if (!lent) {
        PyErr_NoMemory();
        return -1;
    }
    if (PyObject_GetBuffer(memory, &lent->memory, PyBUF_WRITABLE)) {
        free(lent);
        return -1;
    }
    lent->owner = Py_NewRef(owner);
    int code =
        weir_loader_lend(loader, lent->memory.buf, (uint64_t)lent->memory.len, give_back, lent);
    if (!code)
        return 0;
    ext_fail(code);
    give_back(lent);
    return -1;
}

/* owner() -> of the memory it is made in, if that was lent; or None */
static PyObject *batch_owner(PyObject *object, PyObject *unused)
{
    const struct lent *lent = weir_batch_get(((Batch *)object)->batch)->owner;
    (void)unused;
    return Py_NewRef(lent ? lent->owner : Py_None);
}

/* ---- what a batch is ---- */

static PyObject *batch_type;

PyObject *ext_batch_new(weir_batch *batch)
{
    PyTypeObject *type = (PyTypeObject *)batch_type;
    Batch *self = (Batch *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self)
        self->batch = batch;
    else
        weir_batch_release(batch);
    return (PyObject *)self;
}

static void batch_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    weir_batch_release(((Batch *)object)->batch);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static int batch_buffer(PyObject *object, Py_buffer *view, int flags)
{
    const weir_batch_info *info = weir_batch_get(((Batch *)object)->batch);
    return PyBuffer_FillInfo(view, object, info->data, (Py_ssize_t)info->size, 0, flags);
}

static Py_ssize_t where(const weir_batch_info *info, const void *at)
{
    return at ? (const char *)at - (const char *)info->data : -1;
}

static PyObject *name_of(const weir_column *column)
{
    return PyUnicode_DecodeUTF8(column->name, (Py_ssize_t)column->name_size, "surrogateescape");
}

/* (name, kind, dtype, shape or None if it is ragged, data, size, offsets or -1) */
static PyObject *column_tuple(const weir_batch_info *info, const weir_column *column)
{
    PyObject *shape = column->values ? Py_NewRef(Py_None) : ext_shape(column->shape, column->ndim);
    return Py_BuildValue("NisNnnn", name_of(column), (int)column->kind, column->dtype, shape,
                         where(info, column->data), (Py_ssize_t)column->size,
                         where(info, column->offsets));
}

/* layout() -> (position, samples, numbers, epochs, parts or -1, [column, …]): numbers and the like
 * are where in the buffer they are */
static PyObject *batch_layout(PyObject *object, PyObject *unused)
{
    const weir_batch_info *info = weir_batch_get(((Batch *)object)->batch);
    (void)unused;
    PyObject *list = PyList_New((Py_ssize_t)info->columns_count);
    for (size_t i = 0; list && i < info->columns_count; i++) {
        PyObject *row = column_tuple(info, &info->columns[i]);
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row))
            Py_CLEAR(list);
    }
    if (!list)
        return NULL;
    return Py_BuildValue("KnnnnN", (unsigned long long)info->position, (Py_ssize_t)info->samples,
                         where(info, info->numbers), where(info, info->epochs),
                         where(info, info->parts), list);
}

/* bytes, str, None; (dtype, shape, where in the buffer, bytes) of an array */
static PyObject *cell_value(const weir_batch_info *info, const weir_column *column,
                            const weir_cell *cell)
{
    const char *data = (const char *)column->data + cell->off;
    Py_ssize_t size = (Py_ssize_t)cell->size;
    switch (cell->kind) {
    case WEIR_FIELD_BYTES:
        return PyBytes_FromStringAndSize(data, size);
    case WEIR_FIELD_TEXT:
    case WEIR_FIELD_JSON:
        return PyUnicode_DecodeUTF8(data, size, "strict");
    case WEIR_FIELD_ARRAY:
        return Py_BuildValue("sNnn", cell->dtype, ext_shape(cell->shape, cell->ndim),
                             where(info, data), size);
    default:
        Py_RETURN_NONE;
    }
}

static const weir_column *column_at(PyObject *object, PyObject *args, Py_ssize_t *row)
{
    const weir_batch_info *info = weir_batch_get(((Batch *)object)->batch);
    Py_ssize_t i;
    *row = 0;
    if (!PyArg_ParseTuple(args, "n|n", &i, row))
        return NULL;
    if (i < 0 || (size_t)i >= info->columns_count || !info->columns[i].values || *row < 0 ||
        (uint64_t)*row > info->samples) {
        PyErr_SetString(PyExc_IndexError, "there is no such ragged column or row");
        return NULL;
    }
    return &info->columns[i];
}

/* values(column) -> one for each sample, of a ragged column */
static PyObject *batch_values(PyObject *object, PyObject *args)
{
    const weir_batch_info *info = weir_batch_get(((Batch *)object)->batch);
    Py_ssize_t unused;
    const weir_column *column = column_at(object, args, &unused);
    PyObject *list = column ? PyList_New((Py_ssize_t)info->samples) : NULL;
    for (uint64_t i = 0; list && i < info->samples; i++) {
        PyObject *value = cell_value(info, column, &column->values[i]);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value))
            Py_CLEAR(list);
    }
    return list;
}

/* value(column, row) -> (kind, where in the buffer, bytes, dtype, shape) */
static PyObject *batch_value(PyObject *object, PyObject *args)
{
    const weir_batch_info *info = weir_batch_get(((Batch *)object)->batch);
    Py_ssize_t row;
    const weir_column *column = column_at(object, args, &row);
    if (!column)
        return NULL;
    if ((uint64_t)row == info->samples) {
        PyErr_SetString(PyExc_IndexError, "there is no such row");
        return NULL;
    }
    const weir_cell *cell = &column->values[row];
    return Py_BuildValue("innsN", (int)cell->kind,
                         where(info, (const char *)column->data + cell->off),
                         (Py_ssize_t)cell->size, cell->dtype, ext_shape(cell->shape, cell->ndim));
}

static PyMethodDef methods[] = {
    {"layout", batch_layout, METH_NOARGS, NULL},
    {"values", batch_values, METH_VARARGS, NULL},
    {"value", batch_value, METH_VARARGS, NULL},
    {"owner", batch_owner, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_methods, methods},
    {Py_bf_getbuffer, batch_buffer},
    {0, NULL},
};

static PyType_Spec spec = {"weir._weir.Batch", sizeof(Batch), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

int ext_add_batch(PyObject *module)
{
    return ext_add_type(module, &spec, &batch_type);
}
