/* store.c - weir._weir.Store: a store and its objects. */
#include "ext.h"

typedef struct {
    PyObject_HEAD weir_store *store;
    int holders; /* calls under way, checkpointers, restores: the last one closes it */
    int closed;
} Store;

static PyObject *store_type;

/* Closes it once nobody holds it any more. */
static void close_if_free(Store *self)
{
    weir_store *store = self->store;
    if (!self->closed || self->holders)
        return;
    self->store = NULL;
    Py_BEGIN_ALLOW_THREADS
    weir_store_close(store);
    Py_END_ALLOW_THREADS
}

weir_store *ext_store_hold(PyObject *object)
{
    Store *self = (Store *)object;
    int is_store = PyObject_IsInstance(object, store_type);
    if (is_store <= 0) {
        if (!is_store)
            PyErr_SetString(PyExc_TypeError, "a store is wanted: weir.open(url)");
        return NULL;
    }
    if (self->closed || !self->store) {
        PyErr_SetString(PyExc_ValueError, "the store is closed");
        return NULL;
    }
    self->holders++;
    Py_INCREF(object);
    return self->store;
}

void ext_store_let_go(PyObject *object)
{
    ((Store *)object)->holders--;
    close_if_free((Store *)object);
    Py_DECREF(object);
}

static int store_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"url", "create", "io", NULL};
    Store *self = (Store *)object;
    PyObject *url = NULL;
    const char *io = NULL;
    int create = 1, code;
    weir_store_options opts;
    weir_store *store = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|pz", names, ext_url, &url, &create, &io))
        return -1;
    if (self->store || self->closed) {
        PyErr_SetString(PyExc_ValueError, "the store is open already");
        Py_DECREF(url);
        return -1;
    }
    weir_store_options_init(&opts);
    opts.flags = create ? WEIR_STORE_CREATE : 0;
    opts.io = io;
    Py_BEGIN_ALLOW_THREADS
    code = weir_store_open(&store, ext_url_text(url), &opts);
    Py_END_ALLOW_THREADS
    Py_DECREF(url);
    if (code) {
        ext_fail(code);
        return -1;
    }
    self->store = store;
    return 0;
}

static PyObject *store_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    ((Store *)object)->closed = 1;
    close_if_free((Store *)object);
    Py_RETURN_NONE;
}

static void store_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Store *self = (Store *)object;
    self->closed = 1;
    if (self->store)
        close_if_free(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyObject *info_dict(const weir_store_info *info)
{
    return Py_BuildValue(
        "{s:N,s:s,s:s,s:s,s:s,s:K,s:K,s:K}", "url", PyUnicode_DecodeFSDefault(info->url), "uuid",
        info->uuid, "tier", info->tier, "io", info->io, "level", weir_level_name(info->level),
        "grace_s", (unsigned long long)info->grace_s, "free_bytes",
        (unsigned long long)info->free_bytes, "total_bytes", (unsigned long long)info->total_bytes);
}

static PyObject *store_info(PyObject *object, PyObject *unused)
{
    weir_store *store = ext_store_hold(object);
    weir_store_info info;
    PyObject *out;
    int code;
    (void)unused;
    if (!store)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = weir_store_info_get(store, &info);
    Py_END_ALLOW_THREADS
    out = code ? ext_fail(code) : info_dict(&info);
    ext_store_let_go(object);
    return out;
}

static int put_all(weir_store *store, const char *key, const Py_buffer *data, const Py_buffer *meta)
{
    weir_put *put = NULL;
    weir_put_options opts;
    weir_put_options_init(&opts);
    opts.size_bytes = (uint64_t)data->len;
    opts.meta = meta->buf;
    opts.meta_bytes = (size_t)meta->len;
    int code = weir_put_open(&put, store, key, &opts);
    if (!code)
        code = weir_put_write(put, data->buf, (size_t)data->len);
    if (!code)
        code = weir_put_commit(put, NULL);
    weir_put_close(put);
    return code;
}

/* put(key, data, meta=b"") */
static PyObject *store_put(PyObject *object, PyObject *args)
{
    const char *key;
    Py_buffer data, meta = {0};
    PyObject *out = NULL;
    int code = 0;
    if (!PyArg_ParseTuple(args, "sy*|y*", &key, &data, &meta))
        return NULL;
    weir_store *store = ext_store_hold(object);
    if (store) {
        Py_BEGIN_ALLOW_THREADS
        code = put_all(store, key, &data, &meta);
        Py_END_ALLOW_THREADS
        out = ext_none(code); /* before anything else fails */
        ext_store_let_go(object);
    }
    PyBuffer_Release(&data);
    if (meta.obj)
        PyBuffer_Release(&meta);
    return out;
}

static PyObject *read_range(weir_object *obj, uint64_t offset, Py_ssize_t size)
{
    uint64_t whole = weir_object_info(obj)->size_bytes;
    uint64_t left = offset < whole ? whole - offset : 0;
    size_t got;
    int code;
    if (size < 0 || (uint64_t)size > left)
        size = (Py_ssize_t)left;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, size);
    if (!bytes)
        return NULL;
    char *to = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS
    code = weir_object_read(obj, to, (size_t)size, offset, &got);
    Py_END_ALLOW_THREADS
    if (!code)
        return bytes;
    Py_DECREF(bytes);
    return ext_fail(code);
}

/* get(key, offset=0, size=-1) -> bytes */
static PyObject *store_get(PyObject *object, PyObject *args)
{
    const char *key;
    uint64_t offset = 0;
    Py_ssize_t size = -1;
    weir_object *obj = NULL;
    int code;
    if (!PyArg_ParseTuple(args, "s|O&n", &key, ext_u64, &offset, &size))
        return NULL;
    weir_store *store = ext_store_hold(object);
    if (!store)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = weir_object_open(&obj, store, key);
    Py_END_ALLOW_THREADS
    PyObject *bytes = code ? ext_fail(code) : read_range(obj, offset, size);
    Py_BEGIN_ALLOW_THREADS
    weir_object_close(obj);
    Py_END_ALLOW_THREADS
    ext_store_let_go(object);
    return bytes;
}

static PyObject *read_list(weir_list *list)
{
    PyObject *out = PyList_New(0);
    const weir_entry *entry;
    int more;
    while (out) {
        Py_BEGIN_ALLOW_THREADS
        more = weir_list_next(list, &entry);
        Py_END_ALLOW_THREADS
        if (!more)
            break;
        PyObject *row =
            more < 0 ? ext_fail(more)
                     : Py_BuildValue("sKN", entry->key, (unsigned long long)entry->size_bytes,
                                     PyBool_FromLong(entry->is_dir));
        if (!row || PyList_Append(out, row))
            Py_CLEAR(out);
        Py_XDECREF(row);
    }
    return out;
}

/* list(prefix="", recursive=False) -> [(key, size, is_dir)] */
static PyObject *store_list(PyObject *object, PyObject *args)
{
    const char *prefix = "";
    int recursive = 0;
    weir_list *list = NULL;
    int code;
    if (!PyArg_ParseTuple(args, "|sp", &prefix, &recursive))
        return NULL;
    weir_store *store = ext_store_hold(object);
    if (!store)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = weir_list_open(&list, store, prefix,
                          WEIR_LIST_DETAIL | (recursive ? WEIR_LIST_RECURSIVE : 0));
    Py_END_ALLOW_THREADS
    PyObject *out = code ? ext_fail(code) : read_list(list);
    Py_BEGIN_ALLOW_THREADS
    weir_list_close(list);
    Py_END_ALLOW_THREADS
    ext_store_let_go(object);
    return out;
}

static int verify(weir_store *store, const char *key)
{
    return weir_verify(store, key, NULL, NULL);
}

static PyObject *with_key(PyObject *object, PyObject *args, int (*act)(weir_store *, const char *))
{
    const char *key;
    int code;
    if (!PyArg_ParseTuple(args, "s", &key))
        return NULL;
    weir_store *store = ext_store_hold(object);
    if (!store)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = act(store, key);
    Py_END_ALLOW_THREADS
    PyObject *out = ext_none(code); /* before anything else fails */
    ext_store_let_go(object);
    return out;
}

static PyObject *store_remove(PyObject *object, PyObject *args)
{
    return with_key(object, args, weir_remove);
}

static PyObject *store_verify(PyObject *object, PyObject *args)
{
    return with_key(object, args, verify);
}

static PyMethodDef methods[] = {
    {"close", store_close, METH_NOARGS, NULL},    {"info", store_info, METH_NOARGS, NULL},
    {"put", store_put, METH_VARARGS, NULL},       {"get", store_get, METH_VARARGS, NULL},
    {"list", store_list, METH_VARARGS, NULL},     {"remove", store_remove, METH_VARARGS, NULL},
    {"verify", store_verify, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, store_init},
    {Py_tp_dealloc, store_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"weir._weir.Store", sizeof(Store), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

int ext_add_store(PyObject *module)
{
    return ext_add_type(module, &spec, &store_type);
}
