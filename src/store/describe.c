/* describe.c - how this build and this machine do I/O, for people. */
#include <stdio.h>
#include <sys/utsname.h>

#include "store/store.h"
#include "util/sys.h"

int weir_describe(int (*line)(void *arg, const char *name, const char *value), void *arg)
{
    struct utsname host;
    char text[256];
    const char *fault = weir_io_uring_fault();
    int code = line(arg, "version", weir_version());
    if (!code) {
        snprintf(text, sizeof text, "%s %s", uname(&host) ? "Linux" : host.sysname, host.release);
        code = line(arg, "kernel", text);
    }
    if (!code) {
        snprintf(text, sizeof text, "%s%s", fault ? "threads; io_uring is refused: " : "io_uring",
                 fault ? fault : "");
        code = line(arg, "io", text);
    }
    if (!code)
        code = line(arg, "tiers", "file mem null");
    if (!code)
        code = line(arg, "fingerprints", weir_algorithm_name(WEIR_ALGORITHM_XXH3_128));
    return code;
}
