/* Transfers, the same for every engine: any offset, length and address, direct or buffered, hot or
 * cold; more requests than the depth, more files than the ring's table, and what failures say.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "data.h"
#include "io/io.h"
#include "test.h"
#include "tmpdir.h"
#include "util/sys.h"

enum { FILE_BYTES = (3 << 20) + 1234, CANARY = 64, DEPTH = 4 };

static const char *engine;
static struct weir_io *io;

static struct weir_file file_of(const char *path, int flags)
{
    struct weir_file file = {.fd = open(path, flags | O_CLOEXEC, 0644), .label = strdup(path)};
    CHECK(file.fd >= 0);
    file.dfd = open(path, (flags & ~(O_CREAT | O_TRUNC)) | O_DIRECT | O_CLOEXEC);
    return file;
}

/* A file of FILE_BYTES of stream 1. */
static const char *sample(void)
{
    static const char *path;
    if (!path) {
        uint8_t *data = data_buffer(FILE_BYTES, 0);
        data_fill(data, FILE_BYTES, 1, 0);
        path = tmp_path("sample");
        file_write(path, data, FILE_BYTES);
        file_drop_cache(path);
        data_free(data, 0);
    }
    return path;
}

static void send(struct weir_req *req, enum weir_op op, struct weir_file *file, void *buf,
                 size_t len, uint64_t off, struct weir_queue *queue)
{
    bool blocking = req->blocking, sync = req->sync;
    size_t cap = req->cap;
    weir_req_init(req, op);
    req->blocking = blocking;
    req->sync = sync;
    req->cap = cap ? cap : len;
    req->buf = buf;
    req->len = len;
    req->off = off;
    weir_req_push(req, weir_queue_done, queue);
    weir_io_submit(io, req, file);
}

/* One transfer, waited for. */
static int transfer(struct weir_req *req, enum weir_op op, struct weir_file *file, void *buf,
                    size_t len, uint64_t off)
{
    struct weir_queue queue;
    weir_queue_init(&queue);
    send(req, op, file, buf, len, off, &queue);
    CHECK(weir_queue_get(&queue) == req);
    weir_queue_destroy(&queue);
    return req->code;
}

static void read_one(struct weir_file *file, size_t len, uint64_t off, size_t shift, bool whole)
{
    size_t cap = whole ? (len + 4095) / 4096 * 4096 : len;
    uint8_t *buf = data_buffer(cap + CANARY, shift);
    struct weir_req req = {.cap = cap};
    memset(buf, 0xee, cap + CANARY);
    OK(transfer(&req, WEIR_OP_READ, file, buf, len, off));
    size_t want = off >= FILE_BYTES ? 0 : FILE_BYTES - off < len ? FILE_BYTES - off : len;
    CHECK_EQ(req.result, want);
    CHECK(data_is(buf, want, 1, off));
    CHECK(data_all(buf + cap, CANARY, 0xee)); /* nothing behind what may be written */
    data_free(buf, shift);
}

static const uint64_t offsets[] = {0, 1, 511, 4095, 4096, 131072, (1 << 20) - 1, 1 << 20, 3 << 20,
                                   FILE_BYTES - 1, FILE_BYTES, FILE_BYTES + 1, FILE_BYTES + 5000};
static const size_t lengths[] = {0, 1, 511, 4096, 131071, 131072, 131073, 1 << 20};
static const size_t shifts[] = {0, 1, 512};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void reads(void)
{
    struct weir_file file = file_of(sample(), O_RDONLY);
    for (size_t o = 0; o < COUNT(offsets); o++)
        for (size_t l = 0; l < COUNT(lengths); l++)
            for (size_t s = 0; s < COUNT(shifts); s++) {
                /* Cold, so that the engine and not the page cache answers; then hot. */
                fd_drop_cache(file.fd);
                read_one(&file, lengths[l], offsets[o], shifts[s], true);
                read_one(&file, lengths[l], offsets[o], shifts[s], false);
            }
    weir_io_file_close(io, &file);
}

static void blocking_reads(void)
{
    struct weir_file file = file_of(sample(), O_RDONLY);
    uint8_t *buf = data_buffer(1 << 20, 0);
    struct weir_req req = {.blocking = true};
    fd_drop_cache(file.fd);
    OK(transfer(&req, WEIR_OP_READ, &file, buf, 1 << 20, 1 << 20));
    CHECK(data_is(buf, 1 << 20, 1, 1 << 20));
    data_free(buf, 0);
    weir_io_file_close(io, &file);
}

/* Random writes against a model in memory; every few, one that syncs. */
static void writes_to(struct weir_file *file, const char *path, uint64_t seed)
{
    enum { SPAN = 2 << 20 };
    uint8_t *model = calloc(1, SPAN), *buf = data_buffer(SPAN, 0);
    struct rng rng = {seed};
    size_t end = 0, size;
    for (int i = 0; i < 60; i++) {
        bool aligned = rng_below(&rng, 2);
        size_t off = rng_below(&rng, SPAN / 2), len = 1 + rng_below(&rng, SPAN / 2 - 1);
        size_t shift = aligned ? 0 : rng_below(&rng, 700);
        if (aligned) {
            off &= ~(size_t)4095;
            len = (len + 4095) & ~(size_t)4095;
        }
        if (shift + len > SPAN)
            len = SPAN - shift;
        struct weir_req req = {.sync = i % 4 == 0, .blocking = rng_below(&rng, 4) == 0};
        data_fill(buf + shift, len, 100 + (uint64_t)i, off);
        OK(transfer(&req, WEIR_OP_WRITE, file, buf + shift, len, off));
        CHECK_EQ(req.result, len);
        memcpy(model + off, buf + shift, len);
        end = off + len > end ? off + len : end;
    }
    uint8_t *got = file_read(path, &size);
    CHECK_EQ(size, end);
    CHECK(!memcmp(got, model, size));
    free(got);
    free(model);
    data_free(buf, 0);
}

static void writes(void)
{
    const char *path = tmp_path("writes");
    struct weir_file file = file_of(path, O_RDWR | O_CREAT);
    writes_to(&file, path, 1);
    weir_io_file_close(io, &file);
    /* A file system without O_DIRECT. */
    path = tmp_path("buffered");
    file = file_of(path, O_RDWR | O_CREAT);
    if (file.dfd >= 0)
        close(file.dfd);
    file.dfd = -1;
    writes_to(&file, path, 2);
    weir_io_file_close(io, &file);
}

/* Many more requests than the engine takes at once, cold and aligned: reads into pool buffers and
 * into other memory, and writes to another file, all under way together. */
static void send_many(size_t many, size_t piece)
{
    const size_t places = 23 * 131072 / piece; /* of the sample's, to read from */
    struct weir_file from = file_of(sample(), O_RDONLY);
    const char *path = tmp_path("many");
    struct weir_file to = file_of(path, O_RDWR | O_CREAT);
    struct weir_queue queue;
    struct weir_req *reqs = calloc(2 * many, sizeof *reqs);
    uint8_t *memory = data_buffer(many * piece, 0), *source = data_buffer(many * piece, 0);
    void *pooled;
    OK(weir_pool_get(weir_io_pool(io), &pooled));
    data_fill(source, many * piece, 7, 0);
    fd_drop_cache(from.fd);
    weir_queue_init(&queue);
    for (size_t i = 0; i < many; i++) {
        bool in_pool = (i + 1) * piece <= WEIR_BUFFER_BYTES;
        uint8_t *buf = (in_pool ? (uint8_t *)pooled : memory) + i * piece;
        send(&reqs[i], WEIR_OP_READ, &from, buf, piece, i % places * piece, &queue);
        send(&reqs[many + i], WEIR_OP_WRITE, &to, source + i * piece, piece, i * piece, &queue);
    }
    for (size_t i = 0; i < 2 * many; i++) {
        struct weir_req *req = weir_queue_get(&queue);
        OK(req->code);
        CHECK_EQ(req->result, piece);
        if (req->op == WEIR_OP_READ)
            CHECK(data_is(req->buf, piece, 1, req->off));
    }
    weir_queue_destroy(&queue);
    weir_pool_put(weir_io_pool(io), pooled);
    weir_io_file_close(io, &from);
    weir_io_file_close(io, &to);
    size_t size;
    uint8_t *got = file_read(path, &size);
    CHECK(size == many * piece && data_is(got, size, 7, 0));
    free(got);
    data_free(memory, 0);
    data_free(source, 0);
    free(reqs);
}

/* Of more requests than may be under way, and of more bytes. */
static void beyond_the_depth(void)
{
    send_many(96, 131072);
    send_many(12, WEIR_BUFFER_BYTES);
}

/* Whoever is told that a transfer is done waits here for the one behind it, of which the ring has
 * no room beside the first: it was sent before. */
static void await_written(struct weir_req *req, void *arg)
{
    const char *path = arg;
    uint8_t last = 0;
    for (int tries = 0; tries < 2000 && last != 7; tries++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0 && pread(fd, &last, 1, WEIR_BUFFER_BYTES - 1) >= 0);
        close(fd);
        usleep(10000);
    }
    CHECK_EQ(last, 7);
    weir_req_done(req);
}

static void sent_before_told(void)
{
    struct weir_io_options opts = {.engine = engine, .depth = 1, .pool_bytes_max = 16 << 20};
    const char *paths[] = {tmp_path("first"), tmp_path("second")};
    struct weir_file files[2];
    struct weir_req reqs[2];
    struct weir_plug plug = {0};
    struct weir_queue queue;
    struct weir_io *own;
    if (strcmp(engine, "uring"))
        return; /* the others have a thread for each transfer */
    uint8_t *data = data_buffer(WEIR_BUFFER_BYTES, 0);
    memset(data, 7, WEIR_BUFFER_BYTES);
    OK(weir_io_open(&own, &opts));
    weir_queue_init(&queue);
    for (int i = 0; i < 2; i++) {
        files[i] = file_of(paths[i], O_RDWR | O_CREAT);
        weir_req_init(&reqs[i], WEIR_OP_WRITE);
        reqs[i].buf = data;
        reqs[i].len = WEIR_BUFFER_BYTES;
        reqs[i].plug = &plug;
        weir_req_push(&reqs[i], weir_queue_done, &queue);
    }
    weir_req_push(&reqs[0], await_written, (void *)paths[1]);
    for (int i = 0; i < 2; i++)
        weir_io_submit(own, &reqs[i], &files[i]);
    weir_io_flush(own, &plug);
    for (int i = 0; i < 2; i++)
        OK(weir_queue_get(&queue)->code);
    weir_queue_destroy(&queue);
    for (int i = 0; i < 2; i++)
        weir_io_file_close(own, &files[i]);
    weir_io_close(own);
    data_free(data, 0);
}

/* A file system that opens O_DIRECT and then refuses to read so (as a namespace's file does). */
static void direct_refused(void)
{
    enum { LEN = 131072 };
    struct weir_file file = file_of(sample(), O_RDONLY);
    uint8_t *buf = data_buffer(LEN, 0);
    struct weir_req req = {0};
    if (file.dfd >= 0)
        close(file.dfd);
    file.dfd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    CHECK(file.dfd >= 0 && pread(file.dfd, buf, LEN, 0) < 0 && errno == EINVAL);
    fd_drop_cache(file.fd);
    OK(transfer(&req, WEIR_OP_READ, &file, buf, LEN, 0));
    CHECK(req.result == LEN && data_is(buf, LEN, 1, 0));
    weir_io_file_close(io, &file);
    data_free(buf, 0);
}

/* Files come and go, more at once than the ring keeps in its table. */
static void more_files_than_slots(void)
{
    enum { FILES = 80, LEN = 131072 };
    struct weir_file *files = calloc(FILES, sizeof *files);
    uint8_t *buf = data_buffer(LEN, 0);
    bool first[2];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < FILES; i++) {
            files[i] = file_of(sample(), O_RDONLY);
            struct weir_req req = {0};
            fd_drop_cache(files[i].fd);
            OK(transfer(&req, WEIR_OP_READ, &files[i], buf, LEN, 4096));
            CHECK(data_is(buf, LEN, 1, 4096));
        }
        first[round] = files[0].registered;
        for (int i = 0; i < FILES; i++) {
            weir_io_file_close(io, &files[i]);
            CHECK(files[i].fd == -1 && files[i].dfd == -1 && !files[i].registered);
        }
    }
    CHECK_EQ(first[0], first[1]); /* slots come back */
    free(files);
    data_free(buf, 0);
}

/* No engine keeps a file open behind the back of its owner: a lock on it is gone. */
static void closed_is_closed(void)
{
    enum { LEN = 131072, TRIES = 60000 };
    struct weir_file file = file_of(sample(), O_RDONLY);
    uint8_t *buf = data_buffer(LEN, 0);
    struct weir_req req = {0};
    CHECK(file.dfd < 0 || flock(file.dfd, LOCK_EX | LOCK_NB) == 0);
    fd_drop_cache(file.fd);
    OK(transfer(&req, WEIR_OP_READ, &file, buf, LEN, 4096));
    weir_io_file_close(io, &file);
    int again = open(sample(), O_RDONLY | O_CLOEXEC), tries = 0;
    while (flock(again, LOCK_EX | LOCK_NB) < 0 && tries++ < TRIES)
        usleep(1000); /* the kernel may put it off a little */
    CHECK(tries < TRIES);
    close(again);
    data_free(buf, 0);
}

static void closed_descriptor(void)
{
    uint8_t *buf = data_buffer(4096, 0);
    int gone = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 900);
    CHECK(gone >= 900 && close(gone) == 0);
    struct weir_file file = {.fd = gone, .dfd = -1, .label = "the-label"};
    struct weir_req req = {0};
    memset(buf, 0, 4096);
    CHECK_EQ(transfer(&req, WEIR_OP_READ, &file, buf, 4096, 8192), -EBADF);
    CHECK(strstr(req.text, "the-label") && strstr(req.text, "4096 bytes at 8192"));
    CHECK_EQ(transfer(&req, WEIR_OP_WRITE, &file, buf, 4096, 0), -EBADF);
    CHECK(strstr(req.text, "cannot write"));
    req.sync = true;
    CHECK_EQ(transfer(&req, WEIR_OP_WRITE, &file, buf, 4096, 0), -EBADF);
    data_free(buf, 0);
}

/* A file that says "again" for ever is not asked for ever, whatever the engine. */
static void again_and_again(void)
{
    enum { MANY = 1000000 };
    struct weir_file file = {.fd = -1, .dfd = -1, .label = "the-label"};
    for (int i = 0; i < 2; i++) {
        int answer = i ? -EAGAIN : -EINTR, tries = 1;
        struct weir_req req;
        weir_req_init(&req, WEIR_OP_READ);
        req.len = 4096;
        req.io.file = &file;
        while (!weir_io_complete(&req, answer) && tries < MANY)
            tries++;
        CHECK(tries > 1 && tries < MANY);
        CHECK_EQ(req.code, answer);
        CHECK(strstr(req.text, "the-label"));
    }
}

/* A write that stops half way (as on a full disk) fails, with or without the sync behind it. */
static void short_write(void)
{
    enum { LIMIT = 1 << 20 };
    struct weir_file file = file_of(tmp_path("limited"), O_RDWR | O_CREAT);
    uint8_t *buf = data_buffer(65536, 0);
    struct rlimit old, limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = LIMIT;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    data_fill(buf, 65536, 9, 0);
    for (int sync = 0; sync < 2; sync++) {
        struct weir_req req = {.sync = sync};
        OK(transfer(&req, WEIR_OP_WRITE, &file, buf, 32768, LIMIT - 32768));
        CHECK_EQ(transfer(&req, WEIR_OP_WRITE, &file, buf + 1, 65535, LIMIT - 30000), -EFBIG);
        CHECK(*req.text);
        CHECK_EQ(transfer(&req, WEIR_OP_WRITE, &file, buf, 65536, LIMIT - 32768), -EFBIG);
        OK(transfer(&req, WEIR_OP_WRITE, &file, buf, 4096, 0));
    }
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    signal(SIGXFSZ, SIG_DFL);
    weir_io_file_close(io, &file);
    data_free(buf, 0);
}

static void count_task(struct weir_req *req)
{
    __atomic_add_fetch((int *)req->owner, 1, __ATOMIC_RELAXED);
    if (req->tag % 2)
        weir_req_fail(req, EIO, "odd");
}

static void tasks(void)
{
    enum { TASKS = 200 };
    struct weir_req *reqs = calloc(TASKS, sizeof *reqs);
    struct weir_queue queue;
    int ran = 0;
    weir_queue_init(&queue);
    for (uint64_t i = 0; i < TASKS; i++) {
        weir_req_init(&reqs[i], WEIR_OP_STAT);
        reqs[i].owner = &ran;
        reqs[i].tag = i;
        reqs[i].blocking = i % 5 == 0;
        weir_req_push(&reqs[i], weir_queue_done, &queue);
        weir_io_task(io, &reqs[i], count_task);
    }
    for (int i = 0; i < TASKS; i++) {
        struct weir_req *req = weir_queue_get(&queue);
        CHECK_EQ(req->code, req->tag % 2 ? -EIO : 0);
    }
    CHECK_EQ(ran, TASKS);
    weir_queue_destroy(&queue);
    free(reqs);
}

static void *hammer(void *arg)
{
    enum { LEN = 131072 };
    struct weir_file file = file_of(sample(), O_RDONLY);
    uint8_t *buf = data_buffer(LEN, 0);
    struct rng rng = {(uintptr_t)arg};
    for (int i = 0; i < 100; i++) {
        uint64_t off = rng_below(&rng, FILE_BYTES - LEN);
        struct weir_req req = {0};
        if (i % 4 == 0) {
            off &= ~4095ull;
            fd_drop_cache(file.fd);
        }
        OK(transfer(&req, WEIR_OP_READ, &file, buf, LEN, off));
        CHECK(data_is(buf, LEN, 1, off));
    }
    weir_io_file_close(io, &file);
    data_free(buf, 0);
    return NULL;
}

static void many_threads(void)
{
    pthread_t threads[6];
    for (uintptr_t i = 0; i < 6; i++)
        CHECK(pthread_create(&threads[i], NULL, hammer, (void *)i) == 0);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    engine = argc > 1 ? argv[1] : "threads";
    struct weir_io_options opts = {engine, DEPTH, 8 << 20};
    int code = weir_io_open(&io, &opts);
    if (code == -ENOTSUP)
        SKIP("%s", weir_fail_last());
    OK(code);
    CHECK(!strcmp(weir_io_engine(io), engine));
    RUN(reads);
    RUN(blocking_reads);
    RUN(writes);
    RUN(beyond_the_depth);
    RUN(sent_before_told);
    RUN(direct_refused);
    RUN(more_files_than_slots);
    RUN(closed_is_closed);
    RUN(closed_descriptor);
    RUN(again_and_again);
    RUN(short_write);
    RUN(tasks);
    RUN(many_threads);
    weir_io_close(io);
    weir_io_close(NULL);
    return TEST_RESULT;
}
