/* simulator.c - the simulator itself: it loses what may be lost, keeps what must be kept, fails
 * what it is told to fail, and repeats itself; and its judge of histories can say no.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "baton.h"
#include "history.h"
#include "objects.h"
#include "seeds.h"
#include "sim.h"
#include "test.h"

enum { DRAWS = 200 };

static int make(const char *path)
{
    int fd = weir_sys->open(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0644);
    CHECK(fd >= 0);
    return fd;
}

static void sync_dir(const char *path)
{
    int fd = weir_sys->open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    CHECK(fd >= 0);
    OK(weir_sys->fsync(fd));
    OK(weir_sys->close(fd));
}

/* How often is the path there after a power loss, of DRAWS times? */
static int survives(void (*story)(void), const char *path)
{
    int count = 0;
    for (uint64_t seed = 1; seed <= DRAWS; seed++) {
        sim_start(1, NULL);
        story();
        sim_reboot(seed);
        count += sim_fs_at(sim.fs, path) != NULL;
        sim_stop();
    }
    return count;
}

static void name_unsynced(void)
{
    int fd = make("/f");
    OK(weir_sys->fsync(fd));
}
static void name_synced(void)
{
    make("/f");
    sync_dir("/");
}
static void directory_unsynced(void)
{
    OK(weir_sys->mkdir(AT_FDCWD, "/d", 0755));
    make("/d/f");
    sync_dir("/d");
}
static void removal_unsynced(void)
{
    name_synced();
    OK(weir_sys->unlink(AT_FDCWD, "/f", false));
}
static void removal_synced(void)
{
    removal_unsynced();
    sync_dir("/");
}

static void names(void)
{
    int some = survives(name_unsynced, "/f");
    CHECK(some > 0 && some < DRAWS);
    CHECK_EQ(survives(name_synced, "/f"), DRAWS);
    some = survives(directory_unsynced, "/d/f");
    CHECK(some > 0 && some < DRAWS);
    some = survives(removal_unsynced, "/f");
    CHECK(some > 0 && some < DRAWS);
    CHECK_EQ(survives(removal_synced, "/f"), 0);
}

/* What each sector of a file is after a power loss: 'a' synced, 'b' written later, else a failure.
 * Counts how often all, none and some are new. */
static void draw_bytes(bool sync, bool sync_fails, int counts[3])
{
    enum { SECTORS = 6, SIZE = SECTORS * SIM_SECTOR };
    char a[SIZE], b[SIZE], now[SIZE + 1];
    memset(a, 'a', sizeof a);
    memset(b, 'b', sizeof b);
    memset(counts, 0, 3 * sizeof *counts);
    for (uint64_t seed = 1; seed <= DRAWS; seed++) {
        sim_start(1, NULL);
        int fd = make("/f");
        sync_dir("/");
        CHECK_EQ(weir_sys->pwrite(fd, a, sizeof a, 0), SIZE);
        OK(weir_sys->fdatasync(fd));
        CHECK_EQ(weir_sys->pwrite(fd, b, sizeof b, 0), SIZE);
        sim.fault =
            (struct sim_fault){sync_fails ? SIM_FAULT_EIO : SIM_FAULT_NONE, sim.calls + 1, 1};
        if (sync_fails)
            CHECK_EQ(weir_sys->fdatasync(fd), -EIO);
        if (sync)
            OK(weir_sys->fdatasync(fd));
        sim_reboot(seed);
        const struct sim_inode *inode = sim_fs_at(sim.fs, "/f");
        CHECK(inode && sim_image_read(inode->live, now, sizeof now, 0) == SIZE);
        int fresh = 0;
        for (int i = 0; i < SECTORS; i++) {
            const char *sector = now + i * SIM_SECTOR;
            CHECK(!memcmp(sector, a, SIM_SECTOR) || !memcmp(sector, b, SIM_SECTOR));
            fresh += *sector == 'b';
        }
        counts[fresh == SECTORS ? 0 : fresh ? 2 : 1]++;
        sim_stop();
    }
}

static void bytes(void)
{
    int counts[3];
    draw_bytes(false, false, counts);
    CHECK(counts[0] && counts[1] && counts[2]);
    draw_bytes(true, false, counts);
    CHECK_EQ(counts[0], DRAWS);
    /* A sync after one that failed says yes and has written nothing. */
    draw_bytes(true, true, counts);
    CHECK(counts[0] && counts[1] && counts[2]);
}

static void sizes(void)
{
    bool seen[3] = {false};
    for (uint64_t seed = 1; seed <= DRAWS; seed++) {
        sim_start(1, NULL);
        int fd = make("/f");
        sync_dir("/");
        OK(weir_sys->fallocate(fd, 0, 1 << 20));
        CHECK_EQ(weir_sys->pwrite(fd, "abc", 3, 0), 3);
        OK(weir_sys->ftruncate(fd, 3));
        sim_reboot(seed);
        uint64_t size = sim_fs_at(sim.fs, "/f")->live->size;
        CHECK(size == 0 || size == 3 || size == 1 << 20);
        seen[size == 0 ? 0 : size == 3 ? 1 : 2] = true;
        sim_stop();
    }
    CHECK(seen[0] && seen[1] && seen[2]);
}

static void faults(void)
{
    char buf[100] = {0};
    sim_start(1, NULL);
    int fd = make("/f");
    sim.fault = (struct sim_fault){SIM_FAULT_SHORT, sim.calls + 1, 1};
    CHECK_EQ(weir_sys->pwrite(fd, buf, 100, 0), 50);
    sim.fault = (struct sim_fault){SIM_FAULT_EIO, sim.calls + 2, 1};
    CHECK_EQ(weir_sys->pwrite(fd, buf, 100, 0), 100);
    CHECK_EQ(weir_sys->pread(fd, buf, 100, 0), -EIO);
    CHECK_EQ(weir_sys->pread(fd, buf, 100, 0), 100);
    sim.fault = (struct sim_fault){SIM_FAULT_EINTR, sim.calls + 1, SIM_FOREVER};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_sys->pread(fd, buf, 100, 0), -EINTR);
    CHECK_EQ(weir_sys->pread(fd, buf, 100, 0), 100);
    sim.fault = (struct sim_fault){SIM_FAULT_GONE, sim.calls + 1, 2};
    CHECK_EQ(weir_sys->link(AT_FDCWD, "/f", AT_FDCWD, "/g"), -EIO);
    CHECK(sim_fs_at(sim.fs, "/g"));
    CHECK_EQ(weir_sys->link(AT_FDCWD, "/f", AT_FDCWD, "/h"), -EIO);
    CHECK(!sim_fs_at(sim.fs, "/h"));
    sim.fault = (struct sim_fault){SIM_FAULT_MEMORY, sim.allocs + 1, 1};
    CHECK(!weir_alloc(1));
    free(weir_alloc(1));
    sim.fault = (struct sim_fault){0};
    sim.cut_after = sim.calls;
    CHECK_EQ(weir_sys->unlink(AT_FDCWD, "/g", false), -EIO);
    CHECK(sim.off && sim_fs_at(sim.fs, "/g"));
    sim_stop();
}

static void locks_and_descriptors(void)
{
    sim_start(1, NULL);
    int a = make("/f"), b = weir_sys->open(AT_FDCWD, "/f", O_RDONLY | O_DIRECT, 0);
    char buf[2 * SIM_SECTOR] __attribute__((aligned(SIM_SECTOR)));
    OK(weir_sys->flock(a, LOCK_EX));
    CHECK_EQ(weir_sys->flock(b, LOCK_SH | LOCK_NB), -EWOULDBLOCK);
    CHECK_EQ(weir_sys->pwrite(b, buf, SIM_SECTOR, 0), -EBADF);
    CHECK_EQ(weir_sys->pread(b, buf + 1, SIM_SECTOR, 0), -EINVAL);
    CHECK_EQ(weir_sys->pread(b, buf, SIM_SECTOR, 0), 0);
    OK(weir_sys->close(a));
    OK(weir_sys->flock(b, LOCK_EX | LOCK_NB));
    CHECK_EQ(sim_fs_open_count(sim.fs), 1);
    sim_fs_plant_link(sim.fs, "/l");
    CHECK_EQ(weir_sys->open(AT_FDCWD, "/l", O_RDONLY | O_NOFOLLOW, 0), -ELOOP);
    CHECK_EQ(weir_sys->open(AT_FDCWD, "/f", O_RDONLY | O_DIRECTORY, 0), -ENOTDIR);
    CHECK_EQ(weir_sys->open(AT_FDCWD, "/f", O_RDWR | O_CREAT | O_EXCL, 0), -EEXIST);
    CHECK_EQ(weir_sys->mkdir(AT_FDCWD, "/f", 0755), -EEXIST);
    sim_stop();
}

/* ---- processes ---- */

static char order[256];

static void call_often(struct sim_proc *self)
{
    for (int i = 0; i < 20; i++) {
        struct weir_sys_stat st;
        if (weir_sys->stat(AT_FDCWD, "/", &st))
            return;
        strncat(order, self->name, 1);
    }
}

static void run_three(uint64_t seed, char out[256], uint64_t kill_at)
{
    struct sim_proc procs[] = {{.name = "a", .body = call_often},
                               {.name = "b", .body = call_often, .kill_at = kill_at},
                               {.name = "c", .body = call_often}};
    order[0] = 0;
    sim_start(seed, NULL);
    sim_run(procs, 3);
    sim_stop();
    memcpy(out, order, sizeof order);
}

static void processes(void)
{
    char first[256], again[256], dead[256];
    bool differ = false;
    run_three(1, first, 0);
    CHECK_EQ(strlen(first), 60);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_three(seed, again, 0);
        differ |= strcmp(first, again) != 0;
        CHECK(seed > 1 || !strcmp(first, again));
    }
    CHECK(differ);
    run_three(1, dead, 6);
    CHECK_EQ(strlen(dead), 45);
}

/* ---- the judge ---- */

static struct sim_history history;

static void tell(uint64_t begin, uint64_t end, enum sim_op op, uint64_t value, int code, bool open)
{
    history.events[history.count++] = (struct sim_event){.op = op,
                                                         .key = "k",
                                                         .who = "x",
                                                         .value = value,
                                                         .begin = begin,
                                                         .end = end,
                                                         .code = code,
                                                         .open = open};
}

static bool holds(bool durable)
{
    bool answer = sim_history_holds(&history, "k", durable);
    history.count = 0;
    return answer;
}

static void judge(void)
{
    tell(1, 2, SIM_PUT, 7, 0, false);
    tell(3, 4, SIM_GET, 7, 0, false);
    CHECK(holds(false));
    tell(1, 2, SIM_PUT, 7, 0, false); /* put, then not there */
    tell(3, 4, SIM_GET, SIM_ABSENT, -ENOENT, false);
    CHECK(!holds(false));
    tell(1, 2, SIM_PUT, 7, 0, false); /* two winners */
    tell(1, 3, SIM_PUT, 8, 0, false);
    CHECK(!holds(false));
    tell(1, 2, SIM_PUT, 7, 0, false);
    tell(1, 9, SIM_PUT, 8, 0, false);
    tell(3, 4, SIM_REMOVE, 0, 0, false);
    CHECK(holds(false));
    tell(1, 2, SIM_PUT, 7, -EEXIST, false); /* refused for no reason */
    CHECK(!holds(false));
    tell(1, 2, SIM_PUT, 7, 0, true); /* its writer died: perhaps */
    tell(3, 4, SIM_GET, 7, 0, false);
    CHECK(holds(false));
    tell(1, 2, SIM_PUT, 7, 0, true); /* but not first yes and then no */
    tell(3, 4, SIM_GET, 7, 0, false);
    tell(5, 6, SIM_GET, SIM_ABSENT, -ENOENT, false);
    CHECK(!holds(false));
    tell(3, 4, SIM_PUT, 7, 0, true); /* nor before it was begun */
    tell(1, 2, SIM_GET, 7, 0, false);
    CHECK(!holds(false));
    tell(1, 2, SIM_PUT, 7, 0, false);
    history.events[0].who = "writer";
    tell(5, 6, SIM_GET, SIM_ABSENT, -ENOENT, false);
    history.events[1].who = "after";
    CHECK(!holds(true));
    tell(1, 2, SIM_PUT, 7, 0, true);
    tell(3, 4, SIM_GET, 7, 0, false); /* seen, but never acknowledged: a power loss may take it */
    tell(5, 6, SIM_GET, SIM_ABSENT, -ENOENT, false);
    history.events[2].who = "after";
    CHECK(holds(true));
}

int main(void)
{
    sim_seeds_init();
    RUN(names);
    RUN(bytes);
    RUN(sizes);
    RUN(faults);
    RUN(locks_and_descriptors);
    RUN(processes);
    RUN(judge);
    return TEST_RESULT;
}
