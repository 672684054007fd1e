/* s3_process.c - credentials that a program prints (credential_process). It is run by the shell, as
 * the user wrote it, in a process group of its own, so that all of it can be ended; what it says on
 * its standard error goes where ours does. See s3_place.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tier/s3_place.h"
#include "util/err.h"
#include "util/sys.h"

enum { LOOK_MS = 50 }; /* how often `stop` is looked at */

extern char **environ;

/* Threads of the library have all signals blocked: a child must not inherit that. */
static int spawn(pid_t *out, const char *command, int output)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, pipe_only;
    char *const args[] = {"sh", "-c", (char *)command, NULL};
    sigemptyset(&none);
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &pipe_only);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    int code = posix_spawn(out, "/bin/sh", &actions, &attr, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return code ? weir_fail(code, "cannot be started: %s", weir_errno_text(code)) : 0;
}

static int in_time(const struct weir_s3_try *within)
{
    if (atomic_load(within->stop))
        return weir_fail(ECANCELED, "given up");
    if (weir_sys->now_ns(WEIR_CLOCK_MONO) >= within->deadline_ns)
        return weir_fail(ETIMEDOUT, "it does not end in time");
    return 0;
}

/* Reads what it prints, up to its end. */
static int read_output(struct weir_s3_file *out, int fd, const struct weir_s3_try *within)
{
    int code;
    while (!(code = in_time(within))) {
        struct pollfd poller = {fd, POLLIN, 0};
        if (poll(&poller, 1, LOOK_MS) <= 0)
            continue;
        ssize_t got = read(fd, out->text + out->size, WEIR_S3_GOT_BYTES_MAX + 1 - out->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? weir_fail(errno, "cannot be read: %s", weir_errno_text(errno)) : 0;
        out->size += (size_t)got;
        if (out->size > WEIR_S3_GOT_BYTES_MAX)
            return weir_fail(EACCES, "it prints more than %d bytes", WEIR_S3_GOT_BYTES_MAX);
    }
    return code;
}

/* Waits for its end. Where the application reaps all children itself, its status is lost; what it
 * printed must then do. gone: there is nothing left to end. */
static int wait_for(pid_t pid, const struct weir_s3_try *within, bool *gone)
{
    int code, status;
    while (!(code = in_time(within))) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (!got || (got < 0 && errno == EINTR)) {
            weir_sys->sleep_ns(1000000);
            continue;
        }
        *gone = true;
        if (got < 0 || (WIFEXITED(status) && !WEXITSTATUS(status)))
            return 0;
        return WIFEXITED(status) ? weir_fail(EACCES, "it ended with status %d", WEXITSTATUS(status))
                                 : weir_fail(EACCES, "it was ended by signal %d", WTERMSIG(status));
    }
    return code;
}

static int run(struct weir_s3_file *out, const char *command, const struct weir_s3_try *within)
{
    int fds[2];
    pid_t pid;
    bool gone = false;
    if (pipe2(fds, O_CLOEXEC))
        return weir_fail(errno, "cannot make a pipe: %s", weir_errno_text(errno));
    int code = spawn(&pid, command, fds[1]);
    close(fds[1]);
    if (!code) {
        code = read_output(out, fds[0], within);
        if (!code)
            code = wait_for(pid, within, &gone);
        if (!gone) {
            kill(-pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
    }
    close(fds[0]);
    return code;
}

int weir_s3_ask_process(const struct weir_s3_place *place, const struct weir_s3_try *within,
                        struct weir_s3_got *out, uint64_t *life_ns)
{
    struct weir_s3_file output = {weir_alloc(WEIR_S3_GOT_BYTES_MAX + 2), 0};
    if (!output.text)
        return weir_fail_memory();
    int code = run(&output, place->command, within);
    if (!code)
        code = weir_s3_got_json(out, output.text, output.size, true);
    if (!code)
        code = weir_s3_life(life_ns, out->until_ns,
                            (int64_t)(weir_sys->now_ns(WEIR_CLOCK_REAL) / 1000000000));
    weir_s3_file_free(&output);
    return code ? weir_fail_in(code, "S3 credentials of %s", place->label) : 0;
}
