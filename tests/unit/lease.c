/* Leases: shared by readers, alone for gc; they die with their holder, and only then. */
#include <signal.h>
#include <sys/wait.h>

#include "stores.h"

#include "store/lease.h"
#include "store/view.h"

static const char *dir;
static weir_store *store;

static bool lease_file(const char *key)
{
    char name[256];
    snprintf(name, sizeof name, ".weir/lease/%s~", key);
    return path_there(path_in(dir, name));
}

static int take(const char *key)
{
    struct weir_handle *lease = NULL;
    int code = weir_lease_take(&lease, store, key);
    CHECK(code ? !lease : lease != NULL);
    weir_handle_close(lease);
    return code;
}

static void shared_and_alone(void)
{
    struct weir_handle *a, *b, *alone;
    OK(weir_lease_share(&a, store, "run/1-1.1"));
    OK(weir_lease_share(&b, store, "run/1-1.1"));
    CHECK(a && b && lease_file("run/1-1.1"));
    CHECK_EQ(take("run/1-1.1"), -EBUSY);
    CHECK(strstr(weir_error_text(), "run/1-1.1") && strstr(weir_error_text(), "read"));
    weir_handle_close(a);
    CHECK_EQ(take("run/1-1.1"), -EBUSY);
    CHECK_EQ(take("run/1-1.2"), 0); /* another one */
    weir_handle_close(b);
    OK(weir_lease_take(&alone, store, "run/1-1.1"));
    struct weir_handle *second = NULL;
    CHECK_EQ(weir_lease_take(&second, store, "run/1-1.1"), -EBUSY);
    weir_handle_close(alone);
    CHECK(!lease_file("run/1-1.1")); /* nothing is left behind, */
    CHECK(!path_there(path_in(dir, ".weir/lease/run")));
    CHECK(path_there(path_in(dir, ".weir/lease")));
    OK(weir_lease_share(&a, store, "run/1-1.1")); /* and it can be had again */
    weir_handle_close(a);
    OK(take("run/1-1.1"));
}

/* ---- processes ---- */

enum end { END_EXIT, END_KILL };

/* Starts a process with a lease of its own, and waits until it has it. */
static pid_t holder(const char *key, bool alone, int *release)
{
    int told[2], go[2];
    char byte;
    CHECK(pipe(told) == 0 && pipe(go) == 0);
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        struct weir_handle *lease;
        close(go[1]);
        weir_store *own = store_at(dir, "inline");
        OK(alone ? weir_lease_take(&lease, own, key) : weir_lease_share(&lease, own, key));
        CHECK_EQ(write(told[1], "x", 1), 1);
        CHECK(read(go[0], &byte, 1) >= 0);
        _exit(0); /* without closing anything */
    }
    CHECK_EQ(read(told[0], &byte, 1), 1);
    close(told[0]);
    close(told[1]);
    close(go[0]);
    *release = go[1];
    return pid;
}

static void end_holder(pid_t pid, int release, enum end how)
{
    int status;
    if (how == END_KILL)
        CHECK(kill(pid, SIGKILL) == 0);
    close(release);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(how == END_KILL ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status));
}

static void it_dies_with_its_process(void)
{
    for (enum end how = END_EXIT; how <= END_KILL; how++) {
        int release;
        pid_t pid = holder("p", false, &release);
        CHECK_EQ(take("p"), -EBUSY);
        end_holder(pid, release, how);
        CHECK(lease_file("p")); /* the file stays, the lock does not */
        OK(take("p"));
        CHECK(!lease_file("p"));
        pid = holder("p", true, &release);
        CHECK_EQ(take("p"), -EBUSY);
        end_holder(pid, release, how);
        OK(take("p"));
    }
}

/* Runs fn in a child that has all of this process's handles. */
static void in_child(void (*fn)(void *arg), void *arg)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        fn(arg);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
}

static void close_it(void *arg)
{
    weir_handle_close(arg);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

/* A forked child has a copy of the handle: whatever it does with it, the parent's lease stays. */
static void a_child_takes_nothing_away(void)
{
    struct weir_handle *lease;
    OK(weir_lease_share(&lease, store, "f"));
    in_child(do_nothing, NULL);
    CHECK_EQ(take("f"), -EBUSY);
    in_child(close_it, lease);
    CHECK_EQ(take("f"), -EBUSY);
    weir_handle_close(lease);
    OK(take("f"));
    OK(weir_lease_take(&lease, store, "f"));
    in_child(close_it, lease);
    CHECK(lease_file("f"));
    struct weir_handle *other = NULL;
    CHECK_EQ(weir_lease_take(&other, store, "f"), -EBUSY);
    weir_handle_close(lease);
    CHECK(!lease_file("f"));
}

/* Nor does it keep one that its parent gave back. */
static void a_child_keeps_nothing(void)
{
    struct weir_handle *lease;
    OK(weir_lease_share(&lease, store, "k"));
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        pause();
        _exit(0);
    }
    CHECK_EQ(take("k"), -EBUSY);
    weir_handle_close(lease);
    OK(take("k"));
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

/* A store without leases says so by giving none; nothing is refused. */
static void memory_has_none(void)
{
    struct weir_handle *lease = (void *)1;
    weir_store *mem = store_at("mem:", "inline");
    OK(weir_lease_share(&lease, mem, "m"));
    CHECK(!lease);
    lease = (void *)1;
    OK(weir_lease_take(&lease, mem, "m"));
    CHECK(!lease);
    weir_store_close(mem);
}

/* Where a reader may not make the file, the grace is all it has. */
static void readers_may_go_without(void)
{
    struct weir_handle *lease = (void *)1;
    OK(chmod(path_in(dir, ".weir/lease"), 0555));
    if (geteuid()) {
        OK(weir_lease_share(&lease, store, "r"));
        CHECK(!lease);
        CHECK_EQ(take("r"), -EACCES);
    }
    OK(chmod(path_in(dir, ".weir/lease"), 0755));
}

static void close_view(void *arg)
{
    weir_view_close(arg);
}

static bool is_any(void *arg, const struct weir_ledger_entry *entry)
{
    (void)arg, (void)entry;
    return true;
}

/* What leases are for: gc leaves a save alone while somebody reads it. */
static void views_hold_their_save(void)
{
    static const uint8_t token[WEIR_TOKEN_BYTES] = {1};
    struct weir_save save = {.name = "1", .number = 1, .parts = 1};
    struct weir_ledger *ledger;
    struct weir_set *set;
    struct weir_view *view;
    weir_gc_result result;
    bool committed;
    size_t count;
    OK(weir_ledger_open(&ledger, store, "run"));
    OK(weir_ledger_join(ledger, token, &save.attempt));
    OK(weir_set_open(&set, ledger, &save));
    OK(weir_set_put(set, 0, NULL, 0, NULL, 0, &committed));
    CHECK(committed);
    weir_set_close(set);
    OK(weir_view_open(&view, ledger, NULL));
    OK(weir_ledger_retire(ledger, 0, is_any, NULL, &count));
    in_child(close_view, view);
    OK(weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    CHECK_EQ(result.saves, 0);
    CHECK_EQ(result.young, 1);
    weir_view_close(view);
    OK(weir_gc(store, WEIR_GC_NOW, &result, NULL, NULL));
    CHECK_EQ(result.saves, 1);
    CHECK_EQ(tree_files(path_in(dir, ".weir/set")), 0);
    CHECK_EQ(tree_files(path_in(dir, ".weir/lease")), 0);
    weir_ledger_close(ledger);
}

int main(void)
{
    dir = tmp_path("store");
    store = store_at(dir, "inline");
    RUN(shared_and_alone);
    RUN(it_dies_with_its_process);
    RUN(a_child_takes_nothing_away);
    RUN(a_child_keeps_nothing);
    RUN(memory_has_none);
    RUN(readers_may_go_without);
    RUN(views_hold_their_save);
    weir_store_close(store);
    return TEST_RESULT;
}
