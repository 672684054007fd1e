/* Small files that are read once, many together: the same bytes, whether they are in the page cache
 * or come around it, whether direct transfers are possible, refused at first or later, and whatever
 * room there is behind them; one that became shorter is found out, and memory behind what was asked
 * for stays as it was.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "store/store.h"
#include "stores.h"
#include "util/sys.h"

enum { FILES = 40, PAGE = 4096, STEP = 40 * PAGE, EMPTY = 0xee };

static const char *dir, *engine;
static weir_store *store;
static uint8_t *memory;

static size_t size_of(size_t i)
{
    static const size_t sizes[] = {1, 100, PAGE - 1, PAGE, PAGE + 1, 16384, 110000, 131071, 131072};
    return sizes[i % (sizeof sizes / sizeof sizes[0])];
}

static const char *name_of(size_t i)
{
    static char name[32];
    snprintf(name, sizeof name, "%03zu", i);
    return name;
}

static void forget(size_t i)
{
    int fd = open(path_in(dir, name_of(i)), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && !fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    close(fd);
}

static void make(void)
{
    uint8_t *data = data_buffer(STEP, 1);
    for (size_t i = 0; i < FILES; i++) {
        data_fill(data, size_of(i), i, 0);
        file_write(path_in(dir, name_of(i)), data, size_of(i));
    }
    data_free(data, 1);
}

/* ---- reading ---- */

struct reading {
    weir_object *objects[FILES];
    struct weir_span spans[FILES];
    size_t next;
};

static size_t cut_file = FILES; /* becomes so much shorter after it was opened; FILES: none does */
static off_t cut_size;

static int next_file(void *arg, struct weir_reading *out)
{
    struct reading *r = arg;
    size_t i = r->next;
    if (i == FILES)
        return 0;
    int code = weir_object_open_once(&r->objects[i], store, name_of(i));
    if (code)
        return code;
    if (i == cut_file)
        CHECK(!truncate(path_in(dir, name_of(i)), cut_size));
    r->next++;
    *out = (struct weir_reading){r->objects[i], &r->spans[i], 1};
    return 1;
}

/* shift: of every place in memory from where a page begins; padded: there is room behind. */
static int read_all(size_t shift, bool padded)
{
    struct reading r = {.next = 0};
    struct weir_readings readings = {.next = next_file, .arg = &r};
    memset(memory, EMPTY, (size_t)FILES * STEP);
    for (size_t i = 0; i < FILES; i++) {
        r.spans[i] = (struct weir_span){.size = size_of(i),
                                        .rows = 1,
                                        .is_padded = padded,
                                        .to = (char *)memory + i * STEP + shift};
        readings.bytes += size_of(i);
    }
    int code = weir_readings_run(store, &readings, NULL, NULL, NULL);
    for (size_t i = 0; i < r.next; i++)
        weir_object_close(r.objects[i]);
    return code;
}

static void check_all(size_t shift, bool padded)
{
    OK(read_all(shift, padded));
    for (size_t i = 0; i < FILES; i++) {
        uint8_t *at = memory + i * STEP;
        size_t end = shift + size_of(i);
        CHECK(data_is(at + shift, size_of(i), i, 0));
        if (padded)
            end = (end + PAGE - 1) / PAGE * PAGE;
        for (size_t k = 0; k < STEP; k++)
            if ((k < shift || k >= end) && at[k] != EMPTY)
                CHECK_EQ(at[k], EMPTY);
    }
}

static void cold_and_resident(void)
{
    for (int cold = 0; cold < 3; cold++)
        for (size_t shift = 0; shift < 3; shift++)
            for (int padded = 0; padded < (shift ? 1 : 2); padded++) {
                for (size_t i = 0; i < FILES; i++) /* all are there, none, every other */
                    if (cold == 1 || (cold == 2 && i % 2))
                        forget(i);
                check_all(shift * 64, padded);
            }
}

static bool is_resident(size_t i)
{
    int fd = open(path_in(dir, name_of(i)), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    bool resident = weir_sys_real.resident(fd, 0, size_of(i)) == 1;
    close(fd);
    return resident;
}

static bool can_be_direct(void)
{
    int fd = open(path_in(dir, name_of(5)), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    bool can = !weir_sys_real.set_direct(fd, true);
    close(fd);
    forget(5);
    return can && !is_resident(5); /* not of a file system in memory */
}

/* What is read so does not stay in the page cache. */
static void none_stays(void)
{
    uint64_t before[WEIR_READ_WAYS], after[WEIR_READ_WAYS];
    if (!can_be_direct())
        return;
    for (size_t i = 0; i < FILES; i++)
        forget(i);
    weir_store_read_bytes(store, before);
    check_all(0, true);
    weir_store_read_bytes(store, after);
    CHECK_EQ(after[WEIR_READ_THROUGH], before[WEIR_READ_THROUGH]);
    CHECK(after[WEIR_READ_DIRECT] > before[WEIR_READ_DIRECT]);
    for (size_t i = 0; i < FILES; i++)
        CHECK(!is_resident(i));
}

/* It ends before its time: of all that was asked for, nothing unchecked is left. */
static int cut_to(size_t size)
{
    weir_object *obj = NULL;
    struct weir_span span = {.size = 16384, .rows = 1, .is_padded = true, .to = (char *)memory};
    forget(5);
    OK(weir_object_open_once(&obj, store, name_of(5)));
    CHECK(!truncate(path_in(dir, name_of(5)), (off_t)size));
    int code = weir_object_read_spans(obj, &span, 1, NULL, NULL, NULL);
    weir_object_close(obj);
    make();
    return code;
}

static void became_shorter(void)
{
    static const size_t sizes[] = {0, 1, PAGE, PAGE + 1, 16383};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CHECK_EQ(cut_to(sizes[i]), -EBADMSG);
        CHECK(strstr(weir_error_text(), "is damaged: its data ends at byte"));
        for (size_t k = 0; k < FILES; k++) /* and as one of many, in the ring */
            forget(k);
        cut_file = 14; /* of 16384 */
        cut_size = (off_t)sizes[i];
        CHECK_EQ(read_all(0, true), -EBADMSG);
        CHECK(strstr(weir_error_text(), "'014' is damaged: its data ends at byte"));
        cut_file = FILES;
        make();
    }
}

/* ---- other file systems ---- */

static atomic_uint refused;

static int never_resident(int fd, uint64_t off, uint64_t len)
{
    (void)fd, (void)off, (void)len;
    return 0;
}

static int no_direct(int fd, bool direct)
{
    (void)fd;
    refused += direct;
    return direct ? -EINVAL : 0;
}

static ssize_t no_direct_read(int fd, void *buf, size_t size, uint64_t off)
{
    bool direct = fcntl(fd, F_GETFL) & O_DIRECT;
    refused += direct;
    return direct ? -EINVAL : weir_sys_real.pread(fd, buf, size, off);
}

static void direct_is_refused(void)
{
    struct weir_sys table = weir_sys_real;
    for (int late = 0; late < 2; late++) {
        weir_store_close(store);
        table = weir_sys_real;
        table.resident = never_resident;
        refused = 0;
        if (late)
            table.pread = no_direct_read;
        else
            table.set_direct = no_direct;
        weir_sys = &table;
        store = store_at(dir, strcmp(engine, "uring") ? engine : NULL);
        for (size_t i = 0; i < FILES; i++)
            forget(i);
        check_all(0, true);
        weir_store_close(store);
        weir_sys = &weir_sys_real;
        store = store_at(dir, engine);
        CHECK(refused > 0 || (late && !can_be_direct()));
    }
}

int main(int argc, char **argv)
{
    engine = argc > 1 ? argv[1] : "inline";
    dir = tmp_path("files");
    memory = mmap(NULL, (size_t)FILES * STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
    CHECK(memory != MAP_FAILED && !mkdir(dir, 0755));
    make();
    store = store_at(dir, engine);
    RUN(cold_and_resident);
    RUN(none_stays);
    RUN(became_shorter);
    RUN(direct_is_refused);
    weir_store_close(store);
    munmap(memory, (size_t)FILES * STEP);
    return TEST_RESULT;
}
