/* gc against a writer whose machine was paused, clock and all, between its data and its seal: to gc
 * it is dead, and it does not know how old it is. What it is told must be true all the same. The
 * table of system calls lets things happen at the worst instants.
 */
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <semaphore.h>

#include "stores.h"
#include "util/sys.h"

static const char *dir;
static weir_store *ours, *theirs;
static char data_path_late[PATH_MAX];

static struct {
    pthread_t thread;
    sem_t paused, go;
    int code;
} late;
static _Thread_local int links_left;
static _Thread_local void (*meanwhile)(void); /* just before gc removes the late writer's data */

static int at_link(int from_dir, const char *from, int to_dir, const char *to)
{
    if (links_left && --links_left == 0) {
        sem_post(&late.paused);
        sem_wait(&late.go);
    }
    return weir_sys_real.link(from_dir, from, to_dir, to);
}

static int at_unlink(int dir_fd, const char *path, bool is_dir)
{
    void (*now)(void) = meanwhile;
    if (now && !strcmp(path, strrchr(data_path_late, '/') + 1)) {
        meanwhile = NULL;
        now();
    }
    return weir_sys_real.unlink(dir_fd, path, is_dir);
}

static void no_sleep(uint64_t ns)
{
    (void)ns;
}

static void *write_late(void *arg)
{
    weir_store *store = arg;
    links_left = 2; /* its data, its seal */
    late.code = put_try(store, "k", 1000, 1, 0);
    return NULL;
}

static void age(const char *path, time_t seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct timespec times[2] = {now, {now.tv_sec - seconds, now.tv_nsec}};
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* A store in which a writer stands still before its seal, for longer than the grace. */
static void pause_writer(void)
{
    static struct weir_sys table;
    glob_t found;
    table = weir_sys_real;
    table.link = at_link;
    table.unlink = at_unlink;
    table.sleep_ns = no_sleep;
    weir_sys = &table;
    dir = tmp_path("store");
    ours = store_at(dir, "inline");
    theirs = store_at(dir, "inline");
    sem_init(&late.paused, 0, 0);
    sem_init(&late.go, 0, 0);
    CHECK(pthread_create(&late.thread, NULL, write_late, theirs) == 0);
    sem_wait(&late.paused);
    CHECK(glob(path_in(dir, ".weir/data/k~*"), 0, NULL, &found) == 0 && found.gl_pathc == 1);
    snprintf(data_path_late, sizeof data_path_late, "%s", found.gl_pathv[0]);
    globfree(&found);
    age(data_path_late, 90000);
}

static void wake_writer(void)
{
    sem_post(&late.go);
    pthread_join(late.thread, NULL);
}

static void end(void)
{
    weir_store_close(ours);
    weir_store_close(theirs);
    weir_sys = &weir_sys_real;
}

static void remove_and_wake(void)
{
    CHECK_EQ(weir_remove(ours, "k"), -EBUSY); /* gc has the store's lock: it must wait */
    wake_writer();
}

/* Another's object stands at the key, and is removed when gc has just looked at it. */
static void a_seal_goes(void)
{
    pause_writer();
    put_seed(ours, "k", 500, 2);
    meanwhile = remove_and_wake;
    OK(weir_gc(ours, 0, NULL, NULL, NULL));
    CHECK(!meanwhile);
    CHECK_EQ(late.code, -EEXIST);
    get_seed(ours, "k", 500, 2);
    end();
}

static void clear_and_wake(void)
{
    weir_put *put;
    CHECK_EQ(weir_put_open(&put, ours, "k", NULL), -EBUSY); /* it would clear the void */
    wake_writer();
}

/* An earlier gc's void stands at the key, and is old enough to be cleared. */
static void a_void_goes(void)
{
    const char *saved = tmp_path("saved");
    pause_writer();
    CHECK(link(data_path_late, saved) == 0);
    OK(weir_gc(ours, 0, NULL, NULL, NULL));
    CHECK(link(saved, data_path_late) == 0); /* as if that gc had died before the data went */
    age(path_in(dir, ".weir/seal/k~"), 100);
    meanwhile = clear_and_wake;
    OK(weir_gc(ours, 0, NULL, NULL, NULL));
    CHECK(!meanwhile);
    CHECK_EQ(late.code, -EAGAIN);
    CHECK_EQ(get_code(ours, "k"), -ENOENT);
    end();
}

/* gc has taken the data, and its void is gone, too. */
static void all_is_over(void)
{
    weir_gc_result r;
    pause_writer();
    OK(weir_gc(ours, 0, &r, NULL, NULL));
    CHECK(r.objects == 1 && r.voids_placed == 1);
    age(path_in(dir, ".weir/seal/k~"), 100);
    OK(weir_gc(ours, 0, &r, NULL, NULL));
    CHECK_EQ(r.voids_removed, 1);
    wake_writer();
    CHECK_EQ(late.code, -ESTALE);
    CHECK_EQ(get_code(ours, "k"), -ENOENT);
    put_seed(ours, "k", 500, 2);
    get_seed(ours, "k", 500, 2);
    end();
}

int main(void)
{
    RUN(a_seal_goes);
    RUN(a_void_goes);
    RUN(all_is_over);
    return TEST_RESULT;
}
