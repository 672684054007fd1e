/* proc.c - see proc.h. */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { NOBODY = 65534, STARTED_MAX = 256 /* of which more than this never run at once */ };

static pid_t started[STARTED_MAX];
static unsigned started_count;

pid_t proc_start(proc_fn fn, void *arg)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid) {
        started[started_count++ % STARTED_MAX] = pid;
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    exit(fn(arg));
}

static int answer_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int proc_wait(pid_t pid)
{
    int status;
    pid_t got;
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    CHECK_EQ(got, pid);
    return answer_of(status);
}

int proc_wait_ms(pid_t pid, unsigned ms)
{
    uint64_t end = now_ns() + ms * 1000000ull;
    for (;;) {
        int status;
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return answer_of(status);
        if (now_ns() > end)
            return -1;
        sleep_ms(1);
    }
}

void proc_all_ok(const pid_t *pids, unsigned count)
{
    for (unsigned left = count; left; left--) {
        int status;
        pid_t got;
        while ((got = waitpid(0, &status, 0)) < 0 && errno == EINTR)
            ;
        unsigned at = 0;
        while (at < count && pids[at] != got)
            at++;
        CHECK(at < count);
        if (!answer_of(status))
            continue;
        printf("process %u of %u ended with %d\n", at, count, answer_of(status));
        proc_end_all(); /* before what they work on is cleaned up */
        exit(1);
    }
}

int proc_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    return proc_wait(pid);
}

bool proc_stop(pid_t pid, bool *stopped)
{
    if (!pid || *stopped)
        return false;
    kill(pid, SIGSTOP);
    *stopped = true;
    return true;
}

bool proc_wake(pid_t pid, bool *stopped)
{
    if (!pid || !*stopped)
        return false;
    kill(pid, SIGCONT);
    *stopped = false;
    return true;
}

void proc_end_all(void)
{
    for (unsigned i = 0; i < STARTED_MAX; i++) {
        int status;
        if (started[i] && waitpid(started[i], &status, WNOHANG) == 0) /* it runs, and is ours */
            proc_kill(started[i]);
        started[i] = 0;
    }
}

int proc_run(proc_fn fn, void *arg)
{
    return proc_wait(proc_start(fn, arg));
}

int proc_run_ms(proc_fn fn, void *arg, unsigned ms)
{
    pid_t pid = proc_start(fn, arg);
    int answer = proc_wait_ms(pid, ms);
    if (answer < 0) {
        printf("process %d still runs after %u ms: killed\n", (int)pid, ms);
        proc_kill(pid);
    }
    return answer;
}

static int tool_main(void *arg)
{
    char *const *argv = arg;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
    }
    execvp(argv[0], argv);
    _exit(127);
}

int tool_run(const char *const argv[])
{
    return proc_run(tool_main, (void *)argv);
}

bool tool_exists(const char *name)
{
    const char *path = getenv("PATH");
    char copy[4096];
    snprintf(copy, sizeof copy, "%s:/usr/sbin:/sbin", path ? path : "/usr/bin:/bin");
    for (char *save, *dir = strtok_r(copy, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
        char full[4352];
        snprintf(full, sizeof full, "%s/%s", dir, name);
        if (access(full, X_OK) == 0)
            return true;
    }
    return false;
}

bool proc_drop_root(void)
{
    if (geteuid())
        return true;
    return !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
           !setresuid(NOBODY, NOBODY, NOBODY) && !prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void *shared_alloc(size_t size)
{
    void *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    return all;
}

uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void sleep_us(unsigned us)
{
    struct timespec ts = {us / 1000000, (long)(us % 1000000) * 1000};
    while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
        ;
}

void sleep_ms(unsigned ms)
{
    sleep_us(ms * 1000);
}
