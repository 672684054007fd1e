/* rados_lib.h - librados, loaded when the first rados: store is opened: one binary runs with and
 * without it. The types are its header's, as it was when Weir was built; the functions are those
 * used here and no others, so that any librados.so.2 with them will do.
 */
#ifndef WEIR_TIER_RADOS_LIB_H
#define WEIR_TIER_RADOS_LIB_H

#include <rados/librados.h>

/* Every function used, without its "rados_". */
#define WEIR_RADOS_CALLS(call)                                                                     \
    call(create2) call(conf_read_file) call(conf_set) call(conf_get) call(connect) call(shutdown)  \
        call(mon_command) call(buffer_free) call(ioctx_create) call(ioctx_destroy)                 \
            call(ioctx_set_namespace) call(set_pool_full_try) call(aio_create_completion2)         \
                call(aio_release) call(aio_get_return_value) call(aio_get_version) call(           \
                    aio_wait_for_complete) call(aio_read) call(aio_write) call(aio_remove)         \
                    call(aio_read_op_operate) call(aio_write_op_operate) call(create_read_op)      \
                        call(release_read_op) call(read_op_assert_version) call(read_op_stat)      \
                            call(read_op_getxattrs) call(read_op_read) call(getxattrs_next)        \
                                call(getxattrs_end) call(create_write_op) call(release_write_op)   \
                                    call(write_op_create) call(write_op_assert_version)            \
                                        call(write_op_assert_exists) call(write_op_cmpxattr)       \
                                            call(write_op_setxattr) call(write_op_write)           \
                                                call(write_op_write_full) call(write_op_remove)    \
                                                    call(exec) call(nobjects_list_open)            \
                                                        call(nobjects_list_next)                   \
                                                            call(nobjects_list_close)

struct weir_rados_lib {
#define WEIR_RADOS_FIELD(name) __typeof__(rados_##name) *name;
    WEIR_RADOS_CALLS(WEIR_RADOS_FIELD)
#undef WEIR_RADOS_FIELD
};

/* Loads it once for the process; it stays. -ENOTSUP, with the package to install. */
int weir_rados_lib_load(const struct weir_rados_lib **out);

#endif
