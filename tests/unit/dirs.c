/* Directories below a root: made durably, found without following links, kept open within a bound,
 * and made anew when somebody removed them.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>

#include "io/dirs.h"
#include "test.h"
#include "tmpdir.h"
#include "util/sys.h"

static struct weir_sys table;

/* ---- which directories were synced, by inode ---- */

static uint64_t synced[64];
static unsigned synced_count;

static int note_fsync(int fd)
{
    struct weir_sys_stat st;
    CHECK(weir_sys_real.fstat(fd, &st) == 0 && synced_count < 64);
    synced[synced_count++] = st.ino;
    return 0;
}

static bool was_synced(const char *path)
{
    struct stat st;
    CHECK(stat(path, &st) == 0);
    for (unsigned i = 0; i < synced_count; i++)
        if (synced[i] == st.st_ino)
            return true;
    return false;
}

static struct weir_dirs *dirs_at(const char *root)
{
    struct weir_dirs *dirs;
    OK(weir_dirs_open(&dirs, root, true));
    return dirs;
}

static struct weir_dir *got(struct weir_dirs *dirs, const char *name, enum weir_dirs_mode mode)
{
    struct weir_dir *dir;
    const char *base;
    OK(weir_dirs_get(dirs, name, mode, &dir, &base));
    CHECK(!strchr(base, '/'));
    return dir;
}

static int get_code(struct weir_dirs *dirs, const char *name, enum weir_dirs_mode mode)
{
    struct weir_dir *dir;
    const char *base;
    int code = weir_dirs_get(dirs, name, mode, &dir, &base);
    if (!code)
        weir_dirs_put(dirs, dir);
    return code;
}

static unsigned open_fds(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* ---- the cases ---- */

static void root(void)
{
    struct weir_dirs *dirs = NULL;
    const char *missing = tmp_path("missing");
    CHECK_EQ(weir_dirs_open(&dirs, missing, false), -ENOENT);
    CHECK(!dirs && strstr(weir_fail_last(), missing));
    const char *deep = path_in(missing, "a/b//c/");
    synced_count = 0;
    dirs = dirs_at(deep);
    CHECK(!strcmp(weir_dirs_root(dirs), deep) && weir_dirs_root_fd(dirs) >= 0);
    CHECK(was_synced(tmpdir()) && was_synced(missing) && was_synced(path_in(missing, "a/b")));
    weir_dirs_close(dirs);
    weir_dirs_close(NULL);
    file_write(path_in(missing, "file"), "x", 1);
    CHECK_EQ(weir_dirs_open(&dirs, path_in(missing, "file"), true), -ENOTDIR);
    CHECK_EQ(weir_dirs_open(&dirs, path_in(missing, "file/below"), true), -ENOTDIR);
    /* What somebody else has made need not be synced: all above it is. */
    const char *theirs = tmp_path("theirs");
    CHECK(mkdir(theirs, 0755) == 0 && mkdir(path_in(theirs, "a"), 0755) == 0);
    synced_count = 0;
    weir_dirs_close(dirs_at(path_in(theirs, "a")));
    CHECK(was_synced(theirs) && was_synced(tmpdir()) && was_synced("/"));
}

/* Where the store is, its owner decides: the way to the root may be a link. */
static void root_behind_a_link(void)
{
    const char *real = tmp_path("real"), *link = tmp_path("link");
    CHECK(mkdir(real, 0755) == 0 && symlink(real, link) == 0);
    struct weir_dirs *dirs = dirs_at(link);
    weir_dirs_put(dirs, got(dirs, "sub/x", WEIR_DIRS_MAKE));
    CHECK(path_there(path_in(real, "sub")));
    weir_dirs_close(dirs);
}

static void made_durably(void)
{
    const char *root = tmp_path("durable");
    struct weir_dirs *dirs = dirs_at(root);
    CHECK_EQ(get_code(dirs, ".weir/a/b/x", WEIR_DIRS_FIND), -ENOENT);
    CHECK(!path_there(path_in(root, ".weir")));
    struct weir_dir *dir = got(dirs, ".weir/a/b/x", WEIR_DIRS_MAKE);
    CHECK(!strcmp(dir->path, ".weir/a/b") && !dir->durable);
    weir_dirs_put(dirs, dir);
    synced_count = 0;
    dir = got(dirs, ".weir/a/b/x", WEIR_DIRS_DURABLE);
    CHECK(dir->durable);
    CHECK(was_synced(root) && was_synced(path_in(root, ".weir")));
    CHECK(was_synced(path_in(root, ".weir/a")));
    weir_dirs_put(dirs, dir);
    synced_count = 0;
    weir_dirs_put(dirs, got(dirs, ".weir/a/b/y", WEIR_DIRS_DURABLE));
    CHECK_EQ(synced_count, 0); /* once is enough */
    weir_dirs_close(dirs);
    /* Another process made it, perhaps without syncing: the first use here syncs the chain. */
    dirs = dirs_at(root);
    weir_dirs_put(dirs, got(dirs, ".weir/a/b/x", WEIR_DIRS_DURABLE));
    CHECK(was_synced(root) && was_synced(path_in(root, ".weir/a")));
    weir_dirs_close(dirs);
}

static int failing_fsync(int fd)
{
    (void)fd;
    return -EIO;
}

/* A directory whose parent could not be synced is not handed out. */
static void sync_fails(void)
{
    struct weir_dirs *dirs = dirs_at(tmp_path("eio"));
    unsigned before = open_fds();
    table.fsync = failing_fsync;
    CHECK_EQ(get_code(dirs, ".weir/a/b/x", WEIR_DIRS_DURABLE), -EIO);
    CHECK(strstr(weir_fail_last(), "cannot sync"));
    OK(get_code(dirs, "plain/x", WEIR_DIRS_MAKE));
    table.fsync = note_fsync;
    CHECK_EQ(open_fds(), before);
    weir_dirs_close(dirs);
}

/* A link, or a file, at each level of a/b/c, in every mode. */
static void links_are_refused(void)
{
    static const char *const levels[] = {"a", "a/b", "a/b/c"};
    for (int mode = WEIR_DIRS_FIND; mode <= WEIR_DIRS_DURABLE; mode++) {
        for (int i = 0; i < 3; i++) {
            const char *root = tmp_path("links"), *elsewhere = tmp_path("elsewhere");
            struct weir_dirs *dirs = dirs_at(root);
            CHECK(mkdir(elsewhere, 0755) == 0);
            CHECK(mkdir(path_in(elsewhere, "b"), 0755) == 0);
            CHECK(mkdir(path_in(elsewhere, "b/c"), 0755) == 0);
            CHECK(mkdir(path_in(elsewhere, "c"), 0755) == 0);
            weir_dirs_put(dirs, got(dirs, "a/b/c/x", WEIR_DIRS_MAKE));
            for (int j = 2; j >= i; j--)
                CHECK(rmdir(path_in(root, levels[j])) == 0);
            CHECK(symlink(elsewhere, path_in(root, levels[i])) == 0);
            CHECK_EQ(get_code(dirs, "a/b/c/x", (enum weir_dirs_mode)mode), -ELOOP);
            CHECK(strstr(weir_fail_last(), "symbolic link") && strstr(weir_fail_last(), levels[i]));
            CHECK(unlink(path_in(root, levels[i])) == 0);
            file_write(path_in(root, levels[i]), "x", 1);
            CHECK_EQ(get_code(dirs, "a/b/c/x", (enum weir_dirs_mode)mode), -ENOTDIR);
            weir_dirs_close(dirs);
        }
    }
}

static void dead_directories(void)
{
    const char *root = tmp_path("dead");
    struct weir_dirs *dirs = dirs_at(root);
    struct weir_dir *dir = got(dirs, ".weir/a/x", WEIR_DIRS_DURABLE);
    CHECK(!weir_dirs_dead(dirs, dir));
    CHECK(rmdir(path_in(root, ".weir/a")) == 0);
    CHECK_EQ(weir_sys->mkdir(dir->fd, "in-it", 0755), -ENOENT);
    struct weir_dir *again = got(dirs, ".weir/a/x", WEIR_DIRS_FIND); /* not yet known */
    CHECK(again == dir);
    CHECK(weir_dirs_dead(dirs, dir) && weir_dirs_dead(dirs, again));
    CHECK_EQ(get_code(dirs, ".weir/a/x", WEIR_DIRS_FIND), -ENOENT);
    struct weir_dir *fresh = got(dirs, ".weir/a/x", WEIR_DIRS_DURABLE);
    CHECK(fresh != dir && path_there(path_in(root, ".weir/a")));
    weir_dirs_put(dirs, dir);
    weir_dirs_put(dirs, again);
    weir_dirs_put(dirs, fresh);
    weir_dirs_put(dirs, NULL);
    weir_dirs_close(dirs);
}

static void prune(void)
{
    const char *root = tmp_path("prune");
    struct weir_dirs *dirs = dirs_at(root);
    weir_dirs_put(dirs, got(dirs, ".weir/seal/a/b/c/x~", WEIR_DIRS_MAKE));
    weir_dirs_put(dirs, got(dirs, ".weir/seal/a/other/x~", WEIR_DIRS_MAKE));
    weir_dirs_prune(dirs, ".weir/seal/a/b/c/x~", ".weir/seal/");
    CHECK(!path_there(path_in(root, ".weir/seal/a/b")));
    CHECK(path_there(path_in(root, ".weir/seal/a/other"))); /* not empty: stays */
    weir_dirs_prune(dirs, ".weir/seal/a/other/x~", ".weir/seal/");
    CHECK(!path_there(path_in(root, ".weir/seal/a")));
    CHECK(path_there(path_in(root, ".weir/seal"))); /* kept */
    weir_dirs_put(dirs, got(dirs, "p/q/x", WEIR_DIRS_MAKE));
    weir_dirs_prune(dirs, "p/q/x", "");
    CHECK(!path_there(path_in(root, "p")) && path_there(root));
    weir_dirs_prune(dirs, "x", "");
    weir_dirs_prune(dirs, "not/there/x", "");
    CHECK(path_there(root));
    weir_dirs_close(dirs);
}

/* However many directories are used, the descriptors kept are bounded; those in use all work. */
static void cache_bound(void)
{
    enum { IN_USE = 100 };
    const char *root = tmp_path("cache");
    struct weir_dirs *dirs = dirs_at(root);
    struct weir_dir *used[IN_USE];
    char name[64];
    unsigned before = open_fds();
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, ".weir/seal/%d/x", i);
        weir_dirs_put(dirs, got(dirs, name, WEIR_DIRS_MAKE));
    }
    CHECK(open_fds() <= before + 64);
    for (int i = 0; i < IN_USE; i++) {
        snprintf(name, sizeof name, ".weir/seal/%d/x", i);
        used[i] = got(dirs, name, WEIR_DIRS_FIND);
    }
    for (int i = 0; i < IN_USE; i++) {
        struct weir_sys_stat st, want;
        snprintf(name, sizeof name, ".weir/seal/%d", i);
        CHECK(weir_sys->fstat(used[i]->fd, &st) == 0);
        CHECK(weir_sys->stat(weir_dirs_root_fd(dirs), name, &want) == 0);
        CHECK_EQ(st.ino, want.ino);
        weir_dirs_put(dirs, used[i]);
    }
    CHECK(open_fds() <= before + 64);
    weir_dirs_close(dirs);
}

/* People may move their own directories about: only the engine's are kept open. */
static void peoples_directories_are_not_kept(void)
{
    const char *root = tmp_path("people");
    struct weir_dirs *dirs = dirs_at(root);
    unsigned before = open_fds();
    OK(get_code(dirs, "a/b/x", WEIR_DIRS_MAKE));
    OK(get_code(dirs, ".weirdo/b/x", WEIR_DIRS_MAKE));
    CHECK_EQ(open_fds(), before);
    weir_dirs_close(dirs);
}

static void *use_some(void *arg)
{
    struct weir_dirs *dirs = arg;
    for (int i = 0; i < 600; i++) {
        char name[64];
        snprintf(name, sizeof name, ".weir/seal/%d/x", i % 90);
        struct weir_dir *dir = got(dirs, name, i % 2 ? WEIR_DIRS_DURABLE : WEIR_DIRS_MAKE);
        struct weir_sys_stat st;
        CHECK(weir_sys->fstat(dir->fd, &st) == 0 && st.is_dir);
        weir_dirs_put(dirs, dir);
    }
    return NULL;
}

static void many_threads(void)
{
    struct weir_dirs *dirs = dirs_at(tmp_path("threads"));
    pthread_t threads[4];
    table.fsync = weir_sys_real.fsync;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use_some, dirs) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    weir_dirs_close(dirs);
}

int main(void)
{
    table = weir_sys_real;
    table.fsync = note_fsync;
    weir_sys = &table;
    RUN(root);
    RUN(root_behind_a_link);
    RUN(made_durably);
    RUN(sync_fails);
    RUN(links_are_refused);
    RUN(dead_directories);
    RUN(prune);
    RUN(cache_bound);
    RUN(peoples_directories_are_not_kept);
    RUN(many_threads);
    return TEST_RESULT;
}
