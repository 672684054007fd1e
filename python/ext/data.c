/* data.c - weir._weir.Data: a dataset and its single samples. */
#include "ext.h"

typedef struct {
    PyObject_HEAD weir_data *data;
    int holders; /* calls under way, loaders: the last one closes it */
    int closed;
} Data;

static PyObject *data_type;

static void close_if_free(Data *self)
{
    weir_data *data = self->data;
    if (!self->closed || self->holders)
        return;
    self->data = NULL;
    Py_BEGIN_ALLOW_THREADS
    weir_data_close(data);
    Py_END_ALLOW_THREADS
}

weir_data *ext_data_hold(PyObject *object)
{
    Data *self = (Data *)object;
    int is_data = PyObject_IsInstance(object, data_type);
    if (is_data <= 0) {
        if (!is_data)
            PyErr_SetString(PyExc_TypeError, "a dataset is wanted");
        return NULL;
    }
    if (self->closed || !self->data) {
        PyErr_SetString(PyExc_ValueError, "the dataset is closed");
        return NULL;
    }
    self->holders++;
    Py_INCREF(object);
    return self->data;
}

void ext_data_let_go(PyObject *object)
{
    ((Data *)object)->holders--;
    close_if_free((Data *)object);
    Py_DECREF(object);
}

/* Calls progress(more, total) on whichever thread; an exception stops. */
static int on_progress(void *progress, uint64_t more, uint64_t total)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *answer =
        PyObject_CallFunction(progress, "KK", (unsigned long long)more, (unsigned long long)total);
    int stop = !answer;
    if (stop)
        PyErr_Clear();
    Py_XDECREF(answer);
    PyGILState_Release(gil);
    return stop;
}

static int open_data(Data *self, const char *url, const weir_data_options *opts)
{
    weir_data *data = NULL;
    int code;
    if (self->data || self->closed) {
        PyErr_SetString(PyExc_ValueError, "the dataset is open already");
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    code = weir_data_open(&data, url, opts);
    Py_END_ALLOW_THREADS
    if (code) {
        ext_fail(code);
        return -1;
    }
    self->data = data;
    return 0;
}

static int data_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"url",   "format",           "options",  "cache",
                            "flags", "threads",          "progress", "verify_key",
                            "proof", "sample_bytes_max", NULL};
    Data *self = (Data *)object;
    PyObject *url = NULL, *cache = NULL, *proof = NULL, *progress = NULL;
    weir_data_options opts;
    weir_data_options_init(&opts);
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O&|zzO&O&O&OzO&O&", names, ext_url, &url, &opts.format, &opts.options,
            ext_url_or_none, &cache, ext_u32, &opts.flags, ext_u32, &opts.threads, &progress,
            &opts.verify_key, ext_url_or_none, &proof, ext_u64, &opts.sample_bytes_max))
        return -1;
    opts.cache = ext_url_text(cache);
    opts.proof = ext_url_text(proof);
    if (progress && !Py_IsNone(progress)) {
        opts.progress = on_progress;
        opts.progress_arg = progress;
    }
    int code = open_data(self, ext_url_text(url), &opts);
    Py_DECREF(url);
    Py_XDECREF(cache);
    Py_XDECREF(proof);
    return code;
}

static PyObject *data_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    ((Data *)object)->closed = 1;
    close_if_free((Data *)object);
    Py_RETURN_NONE;
}

static void data_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Data *self = (Data *)object;
    self->closed = 1;
    if (self->data)
        close_if_free(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *data_info(PyObject *object, PyObject *unused)
{
    weir_data *data = ext_data_hold(object);
    (void)unused;
    if (!data)
        return NULL;
    const weir_data_info *info = weir_data_info_get(data);
    PyObject *out = Py_BuildValue(
        "{s:N,s:s,s:s,s:s,s:N,s:K,s:K,s:K,s:K,s:K,s:K,s:i,s:K}", "url",
        PyUnicode_DecodeFSDefault(info->url), "format", info->format, "digest", info->digest,
        "schema", info->schema, "index", PyUnicode_DecodeFSDefault(info->index), "samples",
        (unsigned long long)info->samples, "shards", (unsigned long long)info->shards,
        "sample_bytes", (unsigned long long)info->sample_bytes, "sample_bytes_max",
        (unsigned long long)info->sample_bytes_max, "file_bytes",
        (unsigned long long)info->file_bytes, "index_bytes", (unsigned long long)info->index_bytes,
        "built", info->built, "scanned", (unsigned long long)info->scanned);
    ext_data_let_go(object);
    return out;
}

/* Arrays may be written to: they get a bytearray. */
static PyObject *field_data(const weir_field *field)
{
    const char *data = field->data ? (const char *)field->data : "";
    return field->kind == WEIR_FIELD_ARRAY
               ? PyByteArray_FromStringAndSize(data, (Py_ssize_t)field->size)
               : PyBytes_FromStringAndSize(data, (Py_ssize_t)field->size);
}

/* (name, kind, dtype, shape, data) */
static PyObject *field_tuple(const weir_field *field)
{
    return Py_BuildValue(
        "NisNN", PyUnicode_DecodeUTF8(field->name, (Py_ssize_t)field->name_size, "surrogateescape"),
        (int)field->kind, field->dtype, ext_shape(field->shape, field->ndim), field_data(field));
}

/* raw: all of it as one field. */
static PyObject *fields_list(weir_data_sample *sample, int raw)
{
    weir_field whole;
    const weir_field *fields = &whole;
    uint32_t count = 1;
    int code = raw ? weir_data_sample_raw(sample, &whole)
                   : weir_data_sample_fields(sample, &fields, &count);
    if (code)
        return ext_fail(code);
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *row = field_tuple(&fields[i]);
        if (!row || PyList_SetItem(list, i, row))
            Py_CLEAR(list);
    }
    return list;
}

/* sample(number, raw=False) -> [(name, kind, dtype, shape, data), …] */
static PyObject *data_sample(PyObject *object, PyObject *args)
{
    uint64_t number;
    weir_data_sample *sample = NULL;
    int code, raw = 0;
    if (!PyArg_ParseTuple(args, "O&|p", ext_u64, &number, &raw))
        return NULL;
    weir_data *data = ext_data_hold(object);
    if (!data)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = weir_data_sample_open(&sample, data, number);
    Py_END_ALLOW_THREADS
    PyObject *out = code ? ext_fail(code) : fields_list(sample, raw);
    weir_data_sample_close(sample);
    ext_data_let_go(object);
    return out;
}

static PyMethodDef methods[] = {
    {"info", data_info, METH_NOARGS, NULL},
    {"sample", data_sample, METH_VARARGS, NULL},
    {"close", data_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, data_init},
    {Py_tp_dealloc, data_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"weir._weir.Data", sizeof(Data), 0, Py_TPFLAGS_DEFAULT, slots};

int ext_add_data(PyObject *module)
{
    return ext_add_type(module, &spec, &data_type);
}
