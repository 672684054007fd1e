/* The library's threads take no signals: handlers run on the application's threads only, and the
 * library installs none.
 */
#include <signal.h>

#include "stores.h"

/* The mask and the name of one thread of this process. */
static void look(const char *task, unsigned *threads)
{
    char path[64], line[256], name[64] = "";
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *status = fopen(path, "r");
    if (!status)
        return; /* it has ended meanwhile */
    while (fgets(line, sizeof line, status)) {
        sscanf(line, "Name: %63s", name);
        sscanf(line, "SigBlk: %llx", &blocked);
    }
    fclose(status);
    if (strncmp(name, "weir-", 5))
        return;
    ++*threads;
    for (int sig = 1; sig < 32; sig++)
        CHECK(sig == SIGKILL || sig == SIGSTOP || blocked >> (sig - 1) & 1);
}

static unsigned look_at_all(void)
{
    unsigned threads = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            look(entry->d_name, &threads);
    closedir(dir);
    return threads;
}

static void masks(void)
{
    static const char *const engines[] = {"uring", "threads"};
    for (int i = 0; i < 2; i++) {
        weir_store *store;
        weir_store_options opts;
        weir_store_options_init(&opts);
        opts.flags = WEIR_STORE_CREATE;
        opts.io = engines[i];
        const char *dir = tmp_path("store");
        if (weir_store_open(&store, dir, &opts))
            continue; /* no ring here */
        CHECK_EQ(look_at_all(), 0); /* they start at first use */
        put_seed(store, "large", 8 << 20, 1);
        char *path = data_path(store, dir, "large");
        file_drop_cache(path);
        free(path);
        get_seed(store, "large", 8 << 20, 1);
        CHECK(look_at_all() >= 1);
        weir_store_close(store);
        while (look_at_all()) /* they end with the store; a joined one is seen a moment longer */
            usleep(1000);
    }
}

static void dispositions(void)
{
    sigset_t mask;
    for (int sig = 1; sig < 32; sig++) {
        struct sigaction action;
        CHECK(sigaction(sig, NULL, &action) == 0);
        bool checker = sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE; /* sanitizers' own */
        CHECK(checker || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
    }
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    for (int sig = 1; sig < 32; sig++)
        CHECK(!sigismember(&mask, sig));
}

int main(void)
{
    RUN(masks);
    RUN(dispositions);
    return TEST_RESULT;
}
