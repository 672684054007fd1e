/* The kernel writes behind a memory checker's back, so weir_io_submit() shows the checker what it
 * will: a buffer that is too small or freed ends the program under AddressSanitizer, and is an
 * error under valgrind (run with --error-exitcode), whatever the engine.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "data.h"
#include "io/checkers.h"
#include "io/io.h"
#include "test.h"
#include "tmpdir.h"

static const char *engine, *path;

/* Submits `len` bytes of a heap block of `room`; the program's exit tells whether that was let
 * pass. */
static bool passes(enum weir_op op, size_t room, size_t len, bool freed)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child) {
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        printf("# %s, %zu of %zu bytes: status %#x\n", engine, len, room, status);
        return status == 0;
    }
    close(STDERR_FILENO);
    struct weir_io *io;
    struct weir_io_options opts = {engine, 4, 8 << 20};
    struct weir_file file = {.fd = open(path, O_RDWR | O_CLOEXEC), .dfd = -1, .label = "x"};
    struct weir_queue queue;
    struct weir_req req;
    if (weir_io_open(&io, &opts))
        _exit(3);
    weir_queue_init(&queue);
    weir_req_init(&req, op);
    req.buf = malloc(room);
    memset(req.buf, 0, room);
    if (freed)
        free(req.buf);
    req.len = req.cap = len;
    weir_req_push(&req, weir_queue_done, &queue);
    weir_io_submit(io, &req, &file);
    weir_queue_get(&queue);
    _exit(req.code ? 4 : 0);
}

static void too_small_or_freed(void)
{
    static const char *const engines[] = {"uring", "threads", "inline"};
    for (int i = 0; i < 3; i++) {
        struct weir_io *io;
        engine = engines[i];
        struct weir_io_options opts = {engine, 4, 8 << 20};
        if (weir_io_open(&io, &opts))
            continue; /* no ring here */
        weir_io_close(io);
        for (int op = 0; op < 2; op++) {
            enum weir_op kind = op ? WEIR_OP_WRITE : WEIR_OP_READ;
            CHECK(passes(kind, 4096, 4096, false));
            CHECK(!passes(kind, 4096, 4200, false));
            CHECK(!passes(kind, 4096, 4097, false));
            CHECK(!passes(kind, 4096, 4096, true));
        }
    }
}

int main(void)
{
#ifndef WEIR_ASAN
    if (!RUNNING_ON_VALGRIND)
        SKIP("only AddressSanitizer or valgrind can tell");
#endif
    char bytes[8192] = {0};
    path = tmp_path("file");
    file_write(path, bytes, sizeof bytes);
    RUN(too_small_or_freed);
    return TEST_RESULT;
}
