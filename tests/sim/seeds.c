/* seeds.c - see seeds.h. */
#include "seeds.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static char scene[512];
static uint64_t only;

static void tell(void)
{
    /* A signal handler may call this: no stdio. */
    ssize_t n = write(STDERR_FILENO, scene, strlen(scene));
    (void)n;
}

static void at_exit(int status, void *arg)
{
    (void)arg;
    if (!status)
        return;
    fflush(stdout);
    tell();
    /* Half-finished threads and handles are no leaks worth a report. */
    _exit(status);
}

static void at_signal(int number)
{
    tell();
    signal(number, SIG_DFL);
    raise(number);
}

void sim_seeds_init(void)
{
    const char *text = getenv("WEIR_SEED");
    only = text ? strtoull(text, NULL, 10) : 0;
    on_exit(at_exit, NULL);
    signal(SIGABRT, at_signal);
#if !defined(__SANITIZE_ADDRESS__)
    signal(SIGSEGV, at_signal);
#endif
    /* Pools of transfer buffers are opened by the thousand here, and large values come and go:
     * most of the time would go into fresh pages. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

uint64_t sim_seeds(void)
{
    const char *text = getenv("WEIR_SIM_SEEDS");
    if (only)
        return only;
    if (text && *text)
        return strtoull(text, NULL, 10);
    return getenv("WEIR_TEST_LONG") ? 10000 : 500;
}

bool sim_case_wanted(uint64_t number, unsigned stride)
{
    const char *text = getenv("WEIR_SIM_STRIDE");
    uint64_t all = text && *text ? strtoull(text, NULL, 10) : 1;
    if (only)
        return only == number;
    return number % all == 0 && (getenv("WEIR_TEST_LONG") || number / all % stride == 0);
}

void sim_each_seed(const char *what, void (*play)(uint64_t seed))
{
    for (uint64_t seed = 1; seed <= sim_seeds(); seed++) {
        if (only && only != seed)
            continue;
        sim_scene(seed, "%s", what);
        play(seed);
    }
}

bool sim_is_asked_for(const char *scenario, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], scenario))
            return true;
    return argc < 2;
}

void sim_scene(uint64_t seed, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int used = snprintf(scene, sizeof scene, "failed: ");
    used += vsnprintf(scene + used, sizeof scene - (size_t)used, fmt, args);
    va_end(args);
    if (used < (int)sizeof scene)
        snprintf(scene + used, sizeof scene - (size_t)used, "\nreplay: WEIR_SEED=%llu %s\n",
                 (unsigned long long)seed, program_invocation_name);
}
