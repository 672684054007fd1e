/* Publishing: a name comes to be exactly once, whole and durable, and what a failure leaves open is
 * said. Lost answers and failed syncs come from a replaced table.
 */
#include <errno.h>
#include <pthread.h>

#include "io/publish.h"
#include "test.h"
#include "tmpdir.h"
#include "util/key.h"
#include "util/sys.h"

static struct weir_sys table;
static struct weir_dirs *dirs;
static const char *root;
static int answer;
static bool blind; /* fstat fails, too: nothing can be known */

static int lost_link(int olddir, const char *old, int newdir, const char *name)
{
    int code = weir_sys_real.link(olddir, old, newdir, name);
    return code ? code : answer;
}

static int failed_link(int olddir, const char *old, int newdir, const char *name)
{
    (void)olddir, (void)old, (void)newdir, (void)name;
    return answer;
}

static int maybe_fstat(int fd, struct weir_sys_stat *st)
{
    return blind ? -EIO : weir_sys_real.fstat(fd, st);
}

static void *publish_here(const char *name, const char *text, int *code, enum weir_doubt *doubt)
{
    *doubt = 99;
    *code = weir_publish(dirs, name, text, strlen(text), 0, doubt);
    return NULL;
}

/* What stands at name is this (NULL: nothing does), and no temporary file is left. */
static void stands(const char *name, const char *text)
{
    size_t size;
    CHECK_EQ(tree_files(path_in(root, ".weir/tmp")), 0);
    if (!text) {
        CHECK(!path_there(path_in(root, name)));
        return;
    }
    char *got = file_read(path_in(root, name), &size);
    CHECK_EQ(size, strlen(text));
    CHECK(!memcmp(got, text, size));
    free(got);
}

static void expect(const char *name, const char *text, int want, enum weir_doubt want_doubt)
{
    int code;
    enum weir_doubt doubt;
    publish_here(name, text, &code, &doubt);
    CHECK_EQ(code, want);
    CHECK_EQ(doubt, want_doubt);
}

static void once(void)
{
    struct stat st;
    expect(".weir/seal/a/b~", "first", 0, WEIR_SURE);
    stands(".weir/seal/a/b~", "first");
    expect(".weir/seal/a/b~", "second", -EEXIST, WEIR_SURE);
    stands(".weir/seal/a/b~", "first");
    CHECK(stat(path_in(root, ".weir/seal/a/b~"), &st) == 0);
    CHECK_EQ(st.st_mode & 0777, 0444);
    CHECK_EQ(st.st_nlink, 1);
    expect("empty", "", 0, WEIR_SURE);
    stands("empty", "");
}

/* NFS: the link was made, the answer was lost, the second try says EEXIST. It is ours. */
static void lost_answers(void)
{
    static const int answers[] = {-EEXIST, -EIO, -ETIMEDOUT};
    table.link = lost_link;
    for (int i = 0; i < 3; i++) {
        char name[32];
        answer = answers[i];
        snprintf(name, sizeof name, "lost-%d", i);
        expect(name, "mine", 0, WEIR_SURE);
        stands(name, "mine");
    }
    /* Somebody else's stays somebody else's. */
    table.link = weir_sys_real.link;
    expect("theirs", "theirs", 0, WEIR_SURE);
    table.link = lost_link;
    expect("theirs", "mine", -EEXIST, WEIR_SURE);
    stands("theirs", "theirs");
}

static void failed_links(void)
{
    table.link = failed_link;
    answer = -EIO;
    expect("failed", "x", -EIO, WEIR_DOUBT_LOST);
    stands("failed", NULL);
    answer = -EMLINK;
    expect("failed", "x", -EMLINK, WEIR_SURE);
    stands("failed", NULL);
    table.link = weir_sys_real.link;
}

/* When even counting the links fails, the answer says that nothing is known. */
static void unknown(void)
{
    table.fstat_now = maybe_fstat;
    blind = true;
    table.link = lost_link;
    answer = -EIO;
    expect("unknown", "x", -EIO, WEIR_DOUBT_LOST);
    stands("unknown", "x");
    table.link = failed_link;
    expect("unknown-too", "x", -EIO, WEIR_DOUBT_LOST);
    stands("unknown-too", NULL);
    blind = false;
    table.fstat_now = weir_sys_real.fstat_now;
    table.link = weir_sys_real.link;
}

static int syncs_until_failure;

static int failing_fsync(int fd)
{
    return syncs_until_failure-- == 0 ? -EIO : weir_sys_real.fsync(fd);
}

static int failing_fdatasync(int fd)
{
    (void)fd;
    return -ENOSPC;
}

/* The name is there, but may not survive: that is said, and nothing is synced again. */
static void directory_sync_fails(void)
{
    struct weir_dir *dir;
    /* The chain is synced now, so that the only sync left is the one after the link. */
    OK(weir_dirs_get(dirs, ".weir/seal/s/x", WEIR_DIRS_DURABLE, &dir, NULL));
    table.fsync = failing_fsync;
    syncs_until_failure = 0;
    expect(".weir/seal/s/x", "x", -EIO, WEIR_DOUBT_SYNC);
    CHECK_EQ(syncs_until_failure, -1);
    stands(".weir/seal/s/x", "x");
    /* A failure before the link leaves no doubt. */
    syncs_until_failure = 0;
    expect("fresh/dir/x", "x", -EIO, WEIR_SURE);
    stands("fresh/dir/x", NULL);
    table.fsync = weir_sys_real.fsync;
    weir_dirs_put(dirs, dir);
}

static void data_sync_fails(void)
{
    table.fdatasync = failing_fdatasync;
    expect("unsynced", "x", -ENOSPC, WEIR_SURE);
    stands("unsynced", NULL);
    table.fdatasync = weir_sys_real.fdatasync;
}

static ssize_t torn_pwrite(int fd, const void *buf, size_t size, uint64_t off)
{
    static unsigned call;
    if (call++ % 3 == 0)
        return -EINTR;
    return weir_sys_real.pwrite(fd, buf, size > 2 ? 2 : size, off);
}

static ssize_t full_pwrite(int fd, const void *buf, size_t size, uint64_t off)
{
    (void)fd, (void)buf, (void)size;
    return off ? -ENOSPC : 1;
}

static void torn_writes(void)
{
    table.pwrite = torn_pwrite;
    expect("torn", "a longer text", 0, WEIR_SURE);
    stands("torn", "a longer text");
    table.pwrite = full_pwrite;
    expect("full", "a longer text", -ENOSPC, WEIR_SURE);
    stands("full", NULL);
    table.pwrite = weir_sys_real.pwrite;
}

/* The directory is removed between looking it up and linking into it. */
static void directory_removed(void)
{
    struct weir_dir *dir;
    OK(weir_dirs_get(dirs, ".weir/seal/gone/x", WEIR_DIRS_DURABLE, &dir, NULL));
    CHECK(rmdir(path_in(root, ".weir/seal/gone")) == 0);
    expect(".weir/seal/gone/x", "x", 0, WEIR_SURE);
    stands(".weir/seal/gone/x", "x");
    weir_dirs_put(dirs, dir);
}

static int rmdir_link(int olddir, const char *old, int newdir, const char *name)
{
    rmdir(path_in(root, ".weir/seal/flap"));
    return weir_sys_real.link(olddir, old, newdir, name);
}

static void directory_removed_always(void)
{
    table.link = rmdir_link;
    expect(".weir/seal/flap/x", "x", -EBUSY, WEIR_SURE);
    stands(".weir/seal/flap/x", NULL);
    table.link = weir_sys_real.link;
}

/* Somebody tidied up .weir/tmp itself. */
static void temporaries_removed(void)
{
    CHECK(rmdir(path_in(root, ".weir/tmp")) == 0);
    expect("after-rmdir", "x", 0, WEIR_SURE);
    stands("after-rmdir", "x");
}

static void temporary_collected(void)
{
    struct weir_tmp tmp;
    enum weir_doubt doubt;
    OK(weir_tmp_open(&tmp, dirs));
    CHECK(unlinkat(tmp.dir->fd, tmp.base, 0) == 0);
    CHECK_EQ(weir_tmp_publish(&tmp, dirs, "collected", &doubt), -ESTALE);
    CHECK_EQ(doubt, WEIR_SURE);
    CHECK(strstr(weir_fail_last(), "write it again"));
    weir_tmp_close(&tmp, dirs);
    weir_tmp_close(&tmp, dirs);
    stands("collected", NULL);
}

enum { RACERS = 8, RACES = 50 };
struct racer {
    pthread_t thread;
    pthread_barrier_t *barrier;
    int wins[RACES];
    char text[2];
};

static void *race(void *arg)
{
    struct racer *r = arg;
    for (int i = 0; i < RACES; i++) {
        char name[64];
        enum weir_doubt doubt;
        snprintf(name, sizeof name, ".weir/seal/race/%d", i);
        pthread_barrier_wait(r->barrier);
        int code = weir_publish(dirs, name, r->text, 1, 0, &doubt);
        CHECK(code == 0 || code == -EEXIST);
        CHECK_EQ(doubt, WEIR_SURE);
        r->wins[i] = !code;
    }
    return NULL;
}

static void races_have_one_winner(void)
{
    pthread_barrier_t barrier;
    struct racer racers[RACERS];
    pthread_barrier_init(&barrier, NULL, RACERS);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.barrier = &barrier, .text = {(char)('a' + i), 0}};
        CHECK(pthread_create(&racers[i].thread, NULL, race, &racers[i]) == 0);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(racers[i].thread, NULL);
    for (int i = 0; i < RACES; i++) {
        char name[64];
        int winners = 0;
        for (int r = 0; r < RACERS; r++) {
            winners += racers[r].wins[i];
            snprintf(name, sizeof name, ".weir/seal/race/%d", i);
            if (racers[r].wins[i])
                stands(name, racers[r].text);
        }
        CHECK_EQ(winners, 1);
    }
    pthread_barrier_destroy(&barrier);
}

int main(void)
{
    table = weir_sys_real;
    weir_sys = &table;
    root = tmp_path("root");
    OK(weir_dirs_open(&dirs, root, true));
    RUN(once);
    RUN(lost_answers);
    RUN(failed_links);
    RUN(unknown);
    RUN(directory_sync_fails);
    RUN(data_sync_fails);
    RUN(torn_writes);
    RUN(directory_removed);
    RUN(directory_removed_always);
    RUN(temporaries_removed);
    RUN(temporary_collected);
    RUN(races_have_one_winner);
    weir_dirs_close(dirs);
    return TEST_RESULT;
}
