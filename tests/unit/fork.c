/* A forked child cannot use its parent's handles, is told so, and neither hangs nor harms. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "stores.h"

static weir_store *store;
static weir_put *put;
static weir_object *obj;
static weir_list *list;

static int stop(void *arg, uint64_t more)
{
    (void)arg, (void)more;
    return 1;
}

static void told(int code)
{
    CHECK_EQ(code, -ECHILD);
    CHECK(strstr(weir_error_text(), "fork()"));
    weir_verify(store, "bad//key", NULL, NULL); /* the next text is a new one */
}

static void use_everything(void)
{
    weir_object *other;
    weir_put *another;
    weir_list *more;
    weir_store_info info;
    weir_stat_row row;
    const weir_entry *entry;
    void *buf;
    char byte;
    size_t got;
    told(weir_put_open(&another, store, "child", NULL));
    told(weir_put_write(put, "x", 1));
    told(weir_put_buffer(put, &buf, &got));
    told(weir_put_commit(put, NULL));
    told(weir_object_open(&other, store, "sealed"));
    told(weir_object_read(obj, &byte, 1, 0, &got));
    told(weir_list_open(&more, store, "", 0));
    told(weir_list_next(list, &entry));
    told(weir_remove(store, "sealed"));
    told(weir_verify(store, "sealed", stop, NULL));
    told(weir_gc(store, WEIR_GC_NOW, NULL, NULL, NULL));
    told(weir_store_info_get(store, &info));
    told(weir_store_stats(store, &row, 1));
    CHECK(!strcmp(weir_object_info(obj)->key, "sealed"));
}

static void close_everything(void)
{
    weir_object_close(obj);
    weir_put_close(put);
    weir_list_close(list);
    weir_store_close(store);
}

/* The child does this and ends as programs do: through exit(), with all its handlers. */
static void in_child(bool use, bool close_too, bool own, const char *dir, const char *engine)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        if (use)
            use_everything();
        if (close_too)
            close_everything();
        if (own) { /* a handle of its own works */
            weir_store *mine = store_at(dir, engine);
            get_seed(mine, "sealed", 5 << 20, 1);
            put_seed(mine, "child", 5 << 20, 2);
            weir_store_close(mine);
        }
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

static void children(const char *engine)
{
    const char *dir = tmp_path("store");
    char url[4096];
    size_t got;
    uint8_t *buf = data_buffer(5 << 20, 1);
    snprintf(url, sizeof url, "file:%s?stats=1", dir);
    store = store_at(url, engine);
    put_seed(store, "sealed", 5 << 20, 1);
    char *path = data_path(store, dir, "sealed");
    file_drop_cache(path);
    free(path);
    OK(weir_object_open(&obj, store, "sealed"));
    OK(weir_object_read(obj, buf, 5 << 20, 0, &got));
    OK(weir_put_open(&put, store, "parent", NULL));
    OK(weir_put_write(put, buf, 5 << 20));
    OK(weir_list_open(&list, store, "", 0));
    in_child(true, false, false, dir, engine);
    in_child(false, true, false, dir, engine);
    in_child(true, true, true, dir, engine);
    /* The parent never noticed. */
    OK(weir_put_commit(put, NULL));
    memset(buf, 0, 5 << 20);
    OK(weir_object_read(obj, buf, 5 << 20, 0, &got));
    CHECK(data_is(buf, 5 << 20, 1, 0));
    get_seed(store, "parent", 5 << 20, 1);
    get_seed(store, "child", 5 << 20, 2);
    close_everything();
    data_free(buf, 1);
}

static void *put_and_remove(void *arg)
{
    for (int i = 0; i < 200; i++) {
        put_seed(arg, "turn", 100, 1);
        OK(weir_remove(arg, "turn"));
    }
    return NULL;
}

/* A child that is forked while the store's lock is held must not keep it. */
static void forks_beside_removals(const char *engine)
{
    pthread_t thread;
    pid_t pids[40];
    weir_store *mine = store_at(tmp_path("forks"), engine);
    CHECK(pthread_create(&thread, NULL, put_and_remove, mine) == 0);
    for (int i = 0; i < 40; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (!pids[i]) {
            pause();
            _exit(0);
        }
        usleep(1000);
    }
    pthread_join(thread, NULL); /* it would wait for ever, or fail with -EBUSY */
    for (int i = 0; i < 40; i++)
        CHECK(kill(pids[i], SIGKILL) == 0 && waitpid(pids[i], NULL, 0) == pids[i]);
    weir_store_close(mine);
}

int main(int argc, char **argv)
{
    const char *engine = engine_or_skip(argc, argv);
    children(engine);
    forks_beside_removals(engine);
    return TEST_RESULT;
}
