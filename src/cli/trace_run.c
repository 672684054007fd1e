/* trace_run.c - see trace_run.h.
 *
 * strace rather than a tracer of our own: what it knows of threads that exec, of stops and signals
 * and of old kernels took years, its log is what people send each other, and with --seccomp-bpf a
 * call that is not watched costs nothing.
 */
#include "cli/trace_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/err.h"

/* A reader that waits in the pipe would be woken for every line, which costs the writer, and so the
 * command, more than the line: the pipe is drained now and then instead. It holds 1 MiB. */
enum { BUFFER_BYTES = 1 << 16, POLL_MS = 100, DRAIN_US = 4000 };

const char trace_run_calls[] =
    "?open,?openat,?openat2,?creat,?close,?close_range,?dup,?dup2,?dup3,?fcntl,?read,?pread64,"
    "?readv,?preadv,?preadv2,?write,?pwrite64,?writev,?pwritev,?pwritev2,?lseek,?mmap,?fsync,"
    "?fdatasync,?sync_file_range,?syncfs,?sync,?rename,?renameat,?renameat2,?unlink,?unlinkat,"
    "?stat,?lstat,?fstat,?newfstatat,?statx,?getdents,?getdents64,?ftruncate,?truncate,"
    "?fallocate,?sendfile,?copy_file_range,?splice,?fork,?vfork,?clone,?clone3,?execve,?execveat,"
    "?chdir,?fchdir,?io_uring_setup,?io_uring_enter,?io_submit";

/* ---- may it be done at all? ---- */

static bool is_dir(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* A directory, too, may be "executed": entered. */
static bool is_program(const char *path)
{
    return !access(path, X_OK) && !is_dir(path);
}

/* Whether there is such a program, as a shell would look for it. */
static bool is_command(const char *name)
{
    const char *path = getenv("PATH");
    char full[4096];
    if (strchr(name, '/'))
        return is_program(name);
    for (path = path ? path : "/usr/bin:/bin"; *path;) {
        size_t size = strcspn(path, ":");
        snprintf(full, sizeof full, "%.*s/%s", (int)size, path, name);
        if (is_program(full))
            return true;
        path += size + (path[size] == ':');
    }
    return false;
}

/* Containers may forbid it, and the kernel's settings. */
static int check_permission(void)
{
    pid_t pid = fork();
    int status;
    if (pid < 0)
        return weir_fail(errno, "cannot start a process: %s", weir_errno_text(errno));
    if (!pid)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? errno : 0);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && !WEXITSTATUS(status))
        return 0;
    return weir_fail(EPERM,
                     "processes may not be traced here: in a container add --cap-add=SYS_PTRACE "
                     "(and a seccomp profile that allows ptrace); on a host look at "
                     "/proc/sys/kernel/yama/ptrace_scope, which must not be 3");
}

static int check(const struct trace_run *run)
{
    if (strchr(run->argv[0], '/') && is_dir(run->argv[0]))
        return weir_fail(EISDIR, "cannot run '%s': it is a directory, and a program is wanted",
                         run->argv[0]);
    if (!is_command(run->argv[0]))
        return weir_fail(ENOENT, "cannot run '%s': there is no such program", run->argv[0]);
    if (!is_command("strace"))
        return weir_fail(ENOENT, "strace is missing, which watches the command: apt-get install "
                                 "strace");
    return check_permission();
}

/* ---- signals ---- */

static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { SIGNALS = sizeof handed_on / sizeof handed_on[0] };
static volatile sig_atomic_t command_pid, waiting_signal;

/* From a terminal, everybody in the foreground has it already. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code > 0)
        return;
    if (command_pid)
        kill((pid_t)command_pid, number);
    else
        waiting_signal = number;
}

static void catch_signals(struct sigaction old[SIGNALS])
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    command_pid = waiting_signal = 0;
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(handed_on[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN)
            sigaction(handed_on[i], &action, NULL);
    }
}

static void restore_signals(const struct sigaction old[SIGNALS])
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(handed_on[i], &old[i], NULL);
}

static void know_pid(const struct trace_run *run)
{
    if (command_pid)
        return;
    command_pid = (sig_atomic_t)run->pid(run->arg);
    if (command_pid && waiting_signal)
        kill((pid_t)command_pid, waiting_signal);
}

/* ---- the log ---- */

/* The command must not inherit the pipe, or its daemons would keep it open: strace opens it anew,
 * by our name for it. */
static void exec_strace(const struct trace_run *run, pid_t parent, int fd)
{
    char target[64], calls[sizeof trace_run_calls + 16];
    int count = 0;
    while (run->argv[count])
        count++;
    snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)parent, fd);
    snprintf(calls, sizeof calls, "trace=%s", trace_run_calls);
    const char *const own[] = {
        "strace", "-f",  "--seccomp-bpf", "-q", "-ttt", "-T", "-y", "-s", "0",
        "-e",     calls, "-esignal=none", "-o", target, "--"};
    const size_t own_count = sizeof own / sizeof own[0];
    const char **argv = calloc(own_count + (size_t)count + 1, sizeof *argv);
    if (!argv)
        _exit(127);
    memcpy(argv, own, sizeof own);
    memcpy(argv + own_count, run->argv, (size_t)count * sizeof *argv);
    execvp("strace", (char *const *)argv);
    _exit(127);
}

/* Reads until strace has closed its end. Ours is kept open until it has opened its own. */
static int read_log(const struct trace_run *run, pid_t pid, int in, int out, int *status)
{
    static char buffer[BUFFER_BYTES];
    bool ended = false;
    int code = 0;
    for (;;) {
        struct pollfd poll_in = {.fd = in, .events = POLLIN};
        int ready = poll(&poll_in, 1, out >= 0 ? POLL_MS : -1);
        if (ready < 0 && errno != EINTR)
            break;
        if (ready > 0) {
            ssize_t size = read(in, buffer, sizeof buffer);
            if (size <= 0)
                break;
            if (out >= 0)
                close(out);
            out = -1;
            if (!code)
                code = run->take(run->arg, buffer, (size_t)size);
            know_pid(run);
            if ((size_t)size < sizeof buffer)
                usleep(DRAIN_US);
        } else if (out >= 0) {
            if (ended)
                break; /* it left nothing */
            ended = waitpid(pid, status, WNOHANG) == pid;
        }
    }
    if (out >= 0)
        close(out);
    while (!ended && waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return code;
}

int trace_run(const struct trace_run *run, int *status)
{
    struct sigaction old[SIGNALS];
    int pipe_fd[2], wait_status = 0, code = check(run);
    if (code)
        return code;
    if (pipe2(pipe_fd, O_CLOEXEC))
        return weir_fail(errno, "cannot make a pipe: %s", weir_errno_text(errno));
    fcntl(pipe_fd[0], F_SETPIPE_SZ, 1 << 20); /* a burst of calls does not wait for us */
    fflush(NULL);
    catch_signals(old);
    pid_t parent = getpid(), pid = fork();
    if (!pid)
        exec_strace(run, parent, pipe_fd[1]);
    if (pid < 0) {
        code = weir_fail(errno, "cannot start strace: %s", weir_errno_text(errno));
        close(pipe_fd[1]);
    } else
        code = read_log(run, pid, pipe_fd[0], pipe_fd[1], &wait_status);
    close(pipe_fd[0]);
    restore_signals(old);
    *status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    return code;
}
