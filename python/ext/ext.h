/* ext.h - what the files of the extension share. The extension knows handles, bytes and addresses,
 * nothing of tensors: that is what the Python files beside it are for. Stable ABI, Python 3.11+.
 *
 * The GIL is released around every call that may wait. Where a wait can be long it is cut into
 * slices of 100 ms, between which Python's signal handlers run: Ctrl-C works. Failures are OSErrors
 * with the library's text: OSError's own subclasses (FileNotFoundError, PermissionError, …), and
 * DamagedError and StaleError.
 */
#ifndef WEIR_PYTHON_EXT_H
#define WEIR_PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "weir.h"

#define EXT_SLICE_NS 100000000ull

/* Raises what the code and the library's text say. Returns NULL. */
PyObject *ext_fail(int code);
PyObject *ext_fail_text(int code, const char *text);
PyObject *ext_none(int code); /* None, or the failure */

/* Waits by calling step with slices of the time until it no longer answers -ETIMEDOUT, the time is
 * over, or a signal handler raised: then -1, with the exception set. Otherwise what step answered.
 */
typedef int (*ext_step)(void *handle, uint64_t timeout_ns);
int ext_wait(ext_step step, void *handle, uint64_t timeout_ns);
/* Seconds as a number, or None for ever; -1 with an exception if it is neither. */
int ext_timeout(PyObject *seconds, uint64_t *out);

/* A tuple of sizes, or None (then *out is NULL), as numbers at *at, which moves on. -1 with an
 * exception if it is none, or has not ndim of them (ndim < 0: any number). Returns the number. */
Py_ssize_t ext_sizes(PyObject *tuple, Py_ssize_t ndim, uint64_t **at, const uint64_t **out);
PyObject *ext_shape(const uint64_t *shape, uint32_t ndim);

/* A list of tuples as an array: room for what they point to is found first, then each is read. */
struct ext_list {
    const char *what; /* "the tensors": for the error of something that is no list */
    size_t item_bytes;
    /* How many sizes a tuple has at most; -1 with an exception. */
    Py_ssize_t (*count)(PyObject *tuple);
    /* Reads one; -1 with an exception. */
    int (*read)(void *arg, PyObject *tuple, void *item, uint64_t **sizes);
    void *arg;
    void *items; /* the array, and */
    size_t items_count;
    uint64_t *sizes; /* what it points to; ext_list_free() */
};
int ext_list_read(struct ext_list *list, PyObject *object);
void ext_list_free(struct ext_list *list);

/* The store behind a Store object, counted: it stays open until each holder has let go. NULL with
 * an exception if it is closed. */
weir_store *ext_store_hold(PyObject *store);
void ext_store_let_go(PyObject *store);

/* The same of the dataset behind a Data object. */
weir_data *ext_data_hold(PyObject *data);
void ext_data_let_go(PyObject *data);
/* Takes the batch over, also when it fails. */
PyObject *ext_batch_new(weir_batch *batch);
/* Lends the loader a buffer for a batch, which will say that it is the owner's. -1 with an
 * exception. */
int ext_lend(weir_loader *loader, PyObject *memory, PyObject *owner);

/* Converters for "O&" of paths and URLs, which may hold any bytes: bytes, or NULL for None; the
 * caller clears it. ext_url: not None. */
int ext_url(PyObject *url, void *out);
int ext_url_or_none(PyObject *url, void *out);
/* Borrowed; NULL for NULL. */
const char *ext_url_text(PyObject *url);

/* Converters for "O&" of whole numbers that fit: uint64_t, uint32_t. */
int ext_u64(PyObject *number, void *out);
int ext_u32(PyObject *number, void *out);

/* Adds the types to the module. */
int ext_add_store(PyObject *module);
int ext_add_ckpt(PyObject *module);
int ext_add_restore(PyObject *module);
int ext_add_run(PyObject *module);
int ext_add_data(PyObject *module);
int ext_add_batch(PyObject *module);
int ext_add_loader(PyObject *module);
int ext_add_type(PyObject *module, PyType_Spec *spec, PyObject **out);

#endif
