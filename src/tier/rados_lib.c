/* rados_lib.c - see rados_lib.h. */
#include "tier/rados_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "util/err.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_rados_lib lib; /* written once, under the lock */
static void *loaded;

static const struct {
    const char *name;
    size_t at;
} calls[] = {
#define ROW(name) {"rados_" #name, offsetof(struct weir_rados_lib, name)},
    WEIR_RADOS_CALLS(ROW)
#undef ROW
};

static int load(void)
{
    void *handle = dlopen("librados.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return weir_fail(ENOTSUP,
                         "a rados: store needs librados, which cannot be loaded (%s): install the "
                         "package librados2",
                         dlerror());
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *function = dlsym(handle, calls[i].name);
        if (!function) {
            dlclose(handle);
            return weir_fail(ENOTSUP,
                             "librados.so.2 has no %s(): it is older than Ceph 15, "
                             "install a newer package librados2",
                             calls[i].name);
        }
        *(void **)((char *)&lib + calls[i].at) = function;
    }
    loaded = handle;
    return 0;
}

int weir_rados_lib_load(const struct weir_rados_lib **out)
{
    pthread_mutex_lock(&lock);
    int code = loaded ? 0 : load();
    pthread_mutex_unlock(&lock);
    if (!code)
        *out = &lib;
    return code;
}
