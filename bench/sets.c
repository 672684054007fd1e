/* sets.c - one measurement of group commits, for bench/sets.py: PROCESSES processes publish PARTS
 * parts of one save, none waiting for another, and the save is committed by whoever is last.
 * Prints one line of JSON: seconds, and the requests that all of them needed.
 *
 *   sets set STORE PROCESSES PARTS SAVE    by a set, into the log "bench"
 *   sets bare DIR PROCESSES PARTS SAVE     what the parts alone cost: as many files, each written,
 *                                          synced, linked, and its directory synced; no commit
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/set.h"

enum { NOTE_BYTES = 100, ROWS_MAX = 32 };

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "sets: %s: %s\n", what, weir_error_text());
    exit(1);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* What all processes see. */
static struct shared {
    unsigned ready, go, commits;
    uint64_t requests, bytes;
} *shared;

static void wait_for_all(unsigned processes)
{
    __atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < processes ||
           !__atomic_load_n(&shared->go, __ATOMIC_SEQ_CST))
        usleep(100);
}

static weir_store *open_store(const char *dir, bool create)
{
    char url[4096];
    weir_store_options opts;
    weir_store *store;
    weir_store_options_init(&opts);
    opts.flags = create ? WEIR_STORE_CREATE : 0;
    snprintf(url, sizeof url, "file://%s?stats=1", dir);
    if (weir_store_open(&store, url, &opts))
        die(dir);
    return store;
}

static uint64_t count_requests(weir_store *store, uint64_t *bytes)
{
    weir_stat_row rows[ROWS_MAX];
    uint64_t count = 0;
    int n = weir_store_stats(store, rows, ROWS_MAX);
    *bytes = 0;
    for (int i = 0; i < n; i++) {
        count += rows[i].count;
        *bytes += rows[i].bytes;
    }
    return count;
}

static void put_parts(const char *dir, unsigned me, unsigned processes, struct weir_save *save)
{
    static const uint8_t token[WEIR_TOKEN_BYTES] = {1};
    char note[NOTE_BYTES];
    struct weir_ledger *ledger;
    struct weir_set *set;
    uint64_t before, bytes_before, bytes;
    weir_store *store = open_store(dir, false);
    memset(note, 'n', sizeof note);
    if (weir_ledger_open(&ledger, store, "bench") ||
        weir_ledger_join(ledger, token, &save->attempt) || weir_set_open(&set, ledger, save))
        die("open");
    before = count_requests(store, &bytes_before);
    wait_for_all(processes);
    for (uint32_t part = me; part < save->parts; part += processes) {
        bool committed;
        if (weir_set_put(set, part, NULL, 0, note, sizeof note, &committed))
            die("put");
        if (committed)
            __atomic_add_fetch(&shared->commits, 1, __ATOMIC_SEQ_CST);
    }
    uint64_t count = count_requests(store, &bytes) - before;
    __atomic_add_fetch(&shared->requests, count, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&shared->bytes, bytes - bytes_before, __ATOMIC_SEQ_CST);
    weir_set_close(set);
    weir_ledger_close(ledger);
    weir_store_close(store);
}

static void put_bare(const char *dir, unsigned me, unsigned processes, const struct weir_save *save)
{
    char path[4096], tmp[4096], note[NOTE_BYTES];
    memset(note, 'n', sizeof note);
    int dirfd = open(dir, O_RDONLY | O_DIRECTORY);
    wait_for_all(processes);
    for (uint32_t part = me; part < save->parts; part += processes) {
        snprintf(tmp, sizeof tmp, "tmp-%u", part);
        snprintf(path, sizeof path, "%s-%u", save->name, part);
        int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL, 0444);
        if (fd < 0 || write(fd, note, sizeof note) != sizeof note || fdatasync(fd) ||
            linkat(dirfd, tmp, dirfd, path, 0) || fsync(dirfd) || unlinkat(dirfd, tmp, 0))
            die(strerror(errno));
        close(fd);
    }
    close(dirfd);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        die("usage: sets set|bare DIR PROCESSES PARTS SAVE");
    bool bare = !strcmp(argv[1], "bare");
    unsigned processes = (unsigned)atoi(argv[3]);
    struct weir_save save = {.parts = (uint32_t)atoi(argv[4]),
                             .number = strtoull(argv[5], NULL, 10)};
    snprintf(save.name, sizeof save.name, "save-%s", argv[5]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bare)
        mkdir(argv[2], 0777);
    else
        weir_store_close(open_store(argv[2], true));
    for (unsigned me = 0; me < processes; me++) {
        if (fork())
            continue;
        if (bare)
            put_bare(argv[2], me, processes, &save);
        else
            put_parts(argv[2], me, processes, &save);
        exit(0);
    }
    while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < processes)
        usleep(100);
    double start_s = now_s();
    __atomic_store_n(&shared->go, 1, __ATOMIC_SEQ_CST);
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    if (failed || (!bare && shared->commits != 1))
        die("a process failed, or the save was not committed once");
    printf("{\"parts\": %u, \"seconds\": %.6f, \"requests\": %llu, \"bytes\": %llu}\n", save.parts,
           now_s() - start_s, (unsigned long long)shared->requests,
           (unsigned long long)shared->bytes);
    return 0;
}
