/* The checkpoints of a run: names keep them, pruning and removing let them go, and whatever is
 * asked the newest good one stays.
 */
#include "stores.h"

static weir_store *store;
static const char *dir;
static uint32_t data[16];

/* A life of the run that keeps so many (0: all). */
static weir_ckpt *life(const char *run, uint32_t keep)
{
    weir_ckpt_options opts;
    weir_ckpt *ckpt;
    weir_ckpt_options_init(&opts);
    opts.keep_last = keep;
    opts.retired_grace_s = 0;
    opts.staging_bytes_max = 4 << 20;
    OK(weir_ckpt_open(&ckpt, store, run, &opts));
    return ckpt;
}

static void save(weir_ckpt *ckpt, uint64_t step)
{
    static const uint64_t shape[] = {16};
    const weir_tensor tensor = {
        .name = "w", .dtype = "I32", .ndim = 1, .shape = shape, .data = data};
    weir_saving *saving;
    data[0] = (uint32_t)step;
    OK(weir_ckpt_save(ckpt, step, &tensor, 1, NULL, &saving));
    OK(weir_saving_wait(saving, WEIR_LEVEL_HOME, 60000000000ull));
    weir_saving_close(saving);
}

static void save_all(const char *run, uint64_t first, uint64_t last)
{
    weir_ckpt *ckpt = life(run, 0);
    for (uint64_t step = first; step <= last; step++)
        save(ckpt, step);
    weir_ckpt_close(ckpt);
}

static char text[512];

static int add_text(void *arg, const weir_ckpt_info *info)
{
    size_t used = strlen(text);
    (void)arg;
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%llu%s", used ? " " : "",
                             (unsigned long long)info->step, info->retired_ns ? "!" : "");
    for (uint32_t i = 0; i < info->name_count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "=%s", info->names[i]);
    CHECK_EQ(info->error, 0);
    CHECK(info->size_bytes > sizeof data);
    return 0;
}

/* "1 2=best 3!": the steps, their names, '!' for what is retired. */
static const char *steps(const char *run)
{
    text[0] = 0;
    OK(weir_ckpt_each(store, run, WEIR_CKPT_SIZES | WEIR_CKPT_RETIRED, add_text, NULL));
    return text;
}

static uint32_t value_of(weir_restore *restore)
{
    uint32_t copy[16];
    const weir_slice slice = {.data = copy};
    OK(weir_restore_read(restore, &slice, 1, NULL, NULL));
    weir_restore_close(restore);
    return copy[0];
}

static void names(void)
{
    weir_restore *restore;
    uint64_t was = 0;
    weir_ckpt *ckpt = life("named", 1);
    save(ckpt, 1);
    OK(weir_ckpt_name(store, "named", WEIR_STEP_NEWEST, "best", &was));
    CHECK_EQ(was, WEIR_STEP_NEWEST);
    save(ckpt, 2);
    save(ckpt, 3);
    OK(weir_ckpt_name(store, "named", 3, "last", NULL));
    save(ckpt, 4);
    weir_ckpt_close(ckpt); /* the retention of 4 came after its commit */
    CHECK(!strcmp(steps("named"), "1=best 3=last 4"));
    OK(weir_restore_open_named(&restore, store, "named", "best"));
    CHECK_EQ(value_of(restore), 1);
    CHECK_EQ(weir_restore_open_named(&restore, store, "named", "worst"), -ENOENT);
    CHECK_EQ(weir_restore_open_named(&restore, store, "named", "a/b"), -EINVAL);
    OK(weir_ckpt_name(store, "named", 4, "best", &was));
    CHECK_EQ(was, 1);
    OK(weir_restore_open_named(&restore, store, "named", "best"));
    CHECK_EQ(value_of(restore), 4);
    OK(weir_ckpt_unname(store, "named", "last", &was));
    CHECK_EQ(was, 3);
    CHECK_EQ(weir_ckpt_unname(store, "named", "last", &was), -ENOENT);
    CHECK_EQ(weir_ckpt_name(store, "named", 2, "best", NULL), -ENOENT);
    CHECK_EQ(weir_ckpt_name(store, "none", 2, "best", NULL), -ENOENT);
    ckpt = life("named", 1);
    save(ckpt, 5);
    weir_ckpt_close(ckpt);
    CHECK(!strcmp(steps("named"), "4=best 5"));
}

static int prune(const char *run, uint32_t last, uint32_t every, uint32_t flags,
                 weir_prune_result *result)
{
    weir_prune_options opts;
    weir_prune_options_init(&opts);
    opts.keep_last = last;
    opts.keep_every = every;
    opts.flags = flags;
    opts.retired_grace_s = 0;
    return weir_ckpt_prune(store, run, &opts, NULL, NULL, result);
}

static void pruning(void)
{
    weir_prune_result result;
    weir_restore *reader;
    save_all("pruned", 1, 8);
    OK(weir_ckpt_name(store, "pruned", 2, "best", NULL));
    OK(prune("pruned", 2, 3, WEIR_PRUNE_DRY_RUN, &result));
    CHECK(result.retired == 3 && result.retired_bytes > 3 * sizeof data && !result.deleted);
    CHECK(!strcmp(steps("pruned"), "1 2=best 3 4 5 6 7 8"));
    OK(weir_restore_open(&reader, store, "pruned", 4));
    OK(prune("pruned", 2, 3, 0, &result));
    CHECK(result.retired == 3 && result.deleted == 2 && result.waiting == 1);
    CHECK(!strcmp(steps("pruned"), "2=best 3 4! 6 7 8"));
    CHECK_EQ(value_of(reader), 4); /* in use: it is there until it is closed */
    OK(prune("pruned", 9, 0, 0, &result));
    CHECK(result.retired == 0 && result.deleted == 1);
    OK(prune("pruned", 1, 0, 0, NULL));
    CHECK(!strcmp(steps("pruned"), "2=best 8"));
    CHECK_EQ(prune("pruned", 0, 0, 0, NULL), -EINVAL);
    CHECK_EQ(prune("none", 1, 0, 0, NULL), -ENOENT);
}

/* Changes one bit of an object behind the store's back. */
static void damage(const char *key)
{
    char *path = data_path(store, dir, key);
    int fd = file_force_open(path);
    fd_flip(fd, 320);
    close(fd);
    free(path);
}

/* Of the newest two something is gone or wrong: it is the third that counts. */
static void damaged_ones_do_not_count(void)
{
    save_all("bad", 1, 4);
    OK(weir_remove(store, "ckpt/bad/4-1.4/model.safetensors"));
    damage("ckpt/bad/3-1.3/manifest-00001");
    OK(prune("bad", 1, 0, 0, NULL));
    CHECK(!path_there(path_in(dir, "ckpt/bad/1-1.1/model.safetensors")));
    CHECK(path_there(path_in(dir, "ckpt/bad/2-1.2/model.safetensors")));
    CHECK_EQ(weir_ckpt_remove(store, "bad", 2, 0, 0, NULL, NULL, NULL), -EPERM);
    CHECK(strstr(weir_error_text(), "newest good"));
    OK(weir_ckpt_remove(store, "bad", 4, 0, 0, NULL, NULL, NULL));
}

static int count_runs(void *arg, const char *run)
{
    *(unsigned *)arg += !strcmp(run, "twice") || !strcmp(run, "named");
    return 0;
}

static weir_ckpt_info first;

static int take_first(void *arg, const weir_ckpt_info *info)
{
    (void)arg;
    first = *info;
    return 1;
}

static void removing(void)
{
    weir_prune_result result;
    weir_restore *restore;
    unsigned runs = 0;
    save_all("twice", 1, 3);
    save_all("twice", 2, 4); /* 2 and 3 again */
    OK(weir_ckpt_runs(store, count_runs, &runs));
    CHECK_EQ(runs, 2);
    OK(weir_ckpt_remove(store, "twice", 2, WEIR_REMOVE_DRY_RUN, 0, NULL, NULL, &result));
    CHECK_EQ(result.retired, 2);
    OK(weir_ckpt_remove(store, "twice", 2, 0, 0, NULL, NULL, &result));
    CHECK(result.retired == 2 && result.deleted == 2);
    CHECK_EQ(weir_ckpt_remove(store, "twice", 2, 0, 0, NULL, NULL, NULL), -ENOENT);
    OK(weir_ckpt_remove(store, "twice", 1, 0, 0, NULL, NULL, NULL));
    CHECK(!strcmp(steps("twice"), "3 3 4"));
    CHECK_EQ(weir_ckpt_each(store, "twice", 0, take_first, NULL), 1);
    OK(weir_restore_open(&restore, store, "twice", 3));
    CHECK(weir_restore_info_get(restore)->attempt > first.attempt);
    weir_restore_close(restore);
    OK(weir_restore_open_this(&restore, store, "twice", &first));
    CHECK_EQ(weir_restore_info_get(restore)->attempt, first.attempt);
    weir_restore_close(restore);
    OK(weir_ckpt_name(store, "twice", 3, "best", NULL));
    CHECK_EQ(weir_ckpt_remove(store, "twice", 3, 0, 0, NULL, NULL, NULL), -EPERM);
    CHECK(strstr(weir_error_text(), "'best'"));
    CHECK_EQ(weir_ckpt_remove(store, "twice", 4, 0, 0, NULL, NULL, NULL), -EPERM);
    CHECK(!strcmp(steps("twice"), "3 3=best 4"));
    OK(weir_ckpt_remove(store, "twice", 3, WEIR_REMOVE_FORCE, 0, NULL, NULL, NULL));
    CHECK(!strcmp(steps("twice"), "4"));
    CHECK_EQ(weir_restore_open_this(&restore, store, "twice", &first), -ESTALE);
    OK(weir_ckpt_remove(store, "twice", 0, WEIR_REMOVE_ALL | WEIR_REMOVE_FORCE, 0, NULL, NULL,
                        &result));
    CHECK(result.retired == 1 && !strcmp(steps("twice"), ""));
}

int main(void)
{
    dir = tmpdir();
    store = store_at(dir, NULL);
    RUN(names);
    RUN(pruning);
    RUN(damaged_ones_do_not_count);
    RUN(removing);
    weir_store_close(store);
    return TEST_RESULT;
}
