/* thread.c - see thread.h. */
#include "util/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "util/err.h"

static unsigned generation;

static void in_child(void)
{
    generation++;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

unsigned weir_fork_generation(void)
{
    return generation;
}

unsigned weir_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
    long online = count > 0 ? count : sysconf(_SC_NPROCESSORS_ONLN); /* more than a set holds */
    return online > 0 ? (unsigned)online : 1;
}

int weir_thread_start(pthread_t *out, const char *name, void *(*fn)(void *), void *arg)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(out, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code)
        return weir_fail(code, "cannot start thread '%s': %s", name, weir_errno_text(code));
    pthread_setname_np(*out, name);
    return 0;
}
