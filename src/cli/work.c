/* work.c - see work.h. */
#include "cli/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/content.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "util/err.h"
#include "util/thread.h"

enum {
    KEY_WIDTH_MAX = 60, /* a longer key pushes its line to the right, not all lines */
    SIZE_COLUMNS = 9,
};

struct run {
    struct cli *cli;
    struct items *items;
    const struct work *work;
    int key_width;      /* 0 if there is one key only */
    atomic_size_t next; /* to be taken */
    atomic_bool hopeless;
    pthread_mutex_t lock; /* of what follows */
    bool *finished;
    size_t shown;
};

/* What came of it all. */
struct totals {
    size_t done, same, failed, waiting;
    uint64_t bytes; /* of those done or the same */
    const struct item *first_failed;
};

/* A failure of the store as a whole: trying the other objects would only repeat it. */
static bool is_shared(int code)
{
    return code == -ENOSPC || code == -EDQUOT || code == -EROFS;
}

void work_say(const struct cli *cli, const struct item *item, int key_width, const char *what,
              const char *more)
{
    char size[32];
    weir_format_size(size, sizeof size, item->size_bytes);
    cli_say(cli, "%s%*s  %*s  %s%s", item->key, format_padding(item->key, key_width), "",
            key_width ? SIZE_COLUMNS : 0, size, what, more);
}

static const char *text_of(const struct item *item)
{
    return item->text ? item->text : "out of memory";
}

/* Shows item if there is something to show. */
static void show(struct run *run, const struct item *item)
{
    if (item->state == ITEM_FAILED)
        cli_error(run->cli, text_of(item));
    else if (item->state != ITEM_WAITING && run->work->show)
        run->work->show(run->cli, item, run->key_width);
}

/* Shows what is finished and has nothing unfinished before it. */
static void finish(struct run *run, size_t index)
{
    pthread_mutex_lock(&run->lock);
    run->finished[index] = true;
    progress_pause();
    for (; run->shown < run->items->count && run->finished[run->shown]; run->shown++)
        show(run, &run->items->item[run->shown]);
    progress_resume();
    pthread_mutex_unlock(&run->lock);
    progress_item();
}

static void *worker(void *arg)
{
    struct run *run = arg;
    size_t index;
    while (!stop_asked() && !run->hopeless && (index = run->next++) < run->items->count) {
        struct item *item = &run->items->item[index];
        int code = 0;
        if (item->state == ITEM_WAITING) {
            code = run->work->one(run->cli, item);
            if (!code && item->state == ITEM_WAITING)
                item->state = ITEM_DONE;
        }
        if (code == -EINTR && stop_asked())
            break;
        if (code)
            item_failed(item, code);
        if (is_shared(code))
            run->hopeless = true;
        finish(run, index);
    }
    return NULL;
}

/* One job runs here, on the thread that signals interrupt; so it may block on a pipe. */
static int run_jobs(struct run *run)
{
    pthread_t threads[WORK_JOBS_MAX];
    size_t jobs = run->work->jobs, started = 0;
    int code = 0;
    if (jobs > run->items->count)
        jobs = run->items->count;
    content_share(jobs ? jobs : 1);
    if (jobs <= 1) {
        worker(run);
        return 0;
    }
    while (started < jobs && !code) {
        code = weir_thread_start(&threads[started], "weir-job", worker, run);
        started += !code;
    }
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started ? 0 : code;
}

static struct totals count(const struct items *items)
{
    struct totals t = {0};
    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->item[i];
        t.done += item->state == ITEM_DONE;
        t.same += item->state == ITEM_SAME;
        t.failed += item->state == ITEM_FAILED;
        t.waiting += item->state == ITEM_WAITING;
        if (item->state == ITEM_DONE || item->state == ITEM_SAME)
            t.bytes += item->size_bytes;
        if (item->state == ITEM_FAILED && !t.first_failed)
            t.first_failed = item;
    }
    return t;
}

/* "3 objects stored (1.2 GiB), 2 unchanged, 1 failed, 4 not stored" */
static void summarize(char *out, size_t size, const struct run *run, const struct totals *t)
{
    char bytes[32];
    weir_format_size(bytes, sizeof bytes, t->bytes);
    int used =
        snprintf(out, size, "%zu object%s %s", t->done, t->done == 1 ? "" : "s", run->work->done);
    if (t->same)
        used += snprintf(out + used, size - (size_t)used, ", %zu unchanged", t->same);
    if (t->bytes)
        used += snprintf(out + used, size - (size_t)used, " (%s)", bytes);
    if (t->failed)
        used += snprintf(out + used, size - (size_t)used, ", %zu failed", t->failed);
    if (t->waiting)
        snprintf(out + used, size - (size_t)used, ", %zu not %s", t->waiting, run->work->done);
}

static json_t *item_json(const struct item *item, const char *done)
{
    const char *states[] = {"skipped", done, "unchanged", "gone", "failed"};
    json_t *object =
        json_pack("{s:o, s:s}", "key", cli_text_json(item->key), "status", states[item->state]);
    if (item->state != ITEM_FAILED)
        json_object_set_new(object, "size_bytes", json_integer((json_int_t)item->size_bytes));
    if (item->path)
        json_object_set_new(object, "file", cli_text_json(item->path));
    if (item->level)
        json_object_set_new(object, "level", json_string(item->level));
    if (item->detail)
        json_object_update(object, item->detail);
    if (item->state == ITEM_FAILED)
        json_object_set_new(object, "error", cli_error_json(item->code, text_of(item)));
    return object;
}

static json_t *run_json(const struct run *run, const struct totals *t)
{
    json_t *objects = json_array();
    for (size_t i = 0; i < run->items->count; i++)
        json_array_append_new(objects, item_json(&run->items->item[i], run->work->done));
    json_t *doc = json_pack("{s:o, s:I, s:I, s:I, s:I}", "objects", objects, "done",
                            (json_int_t)t->done, "unchanged", (json_int_t)t->same, "failed",
                            (json_int_t)t->failed, "size_bytes", (json_int_t)t->bytes);
    if (t->first_failed)
        json_object_set_new(doc, "error",
                            cli_error_json(t->first_failed->code, text_of(t->first_failed)));
    return doc;
}

/* After the end: what a stop or a shared failure left unshown, the totals, the document. */
static int conclude(struct run *run)
{
    char text[256];
    struct totals t = count(run->items);
    for (size_t i = run->shown; i < run->items->count; i++)
        show(run, &run->items->item[i]);
    summarize(text, sizeof text, run, &t);
    if (run->cli->json)
        run->cli->doc = run_json(run, &t);
    if (stop_asked() && t.waiting) { /* else the signal came too late to matter */
        stop_fail();
        return run->work->summary ? weir_fail(EINTR, "%s: %s", strdupa(weir_error_text()), text)
                                  : -EINTR;
    }
    if (run->work->summary)
        cli_say(run->cli, "%s", text);
    return t.failed ? CLI_FAILED : 0;
}

/* The width of the key column: that of the widest key. */
static int widest(const struct items *items)
{
    int most = 0;
    for (size_t i = 0; items->count > 1 && i < items->count; i++) {
        int width = format_width(items->item[i].key);
        if (width > most && width <= KEY_WIDTH_MAX)
            most = width;
    }
    return most;
}

static int run_items(struct cli *cli, struct items *items, const struct work *work)
{
    struct run run = {.cli = cli, .items = items, .work = work, .key_width = widest(items)};
    run.finished = calloc(items->count + 1, sizeof *run.finished);
    if (!run.finished)
        return weir_fail_memory();
    pthread_mutex_init(&run.lock, NULL);
    stop_politely();
    progress_start(cli, work->doing, items_bytes(items), items->count, work->raw);
    int code = run_jobs(&run);
    progress_end();
    if (!code)
        code = conclude(&run);
    pthread_mutex_destroy(&run.lock);
    free(run.finished);
    return code;
}

int work_run(struct cli *cli, const struct work *work)
{
    struct items items = {0};
    bool make = work->access == CLI_MAKE;
    if (work->raw && cli->json)
        return cli_usage(cli, "the bytes go to standard output: --json has no place there");
    int code = make ? work->collect(cli, &items) : 0;
    if (!code)
        code = cli_store_open(cli, work->access, 0, NULL);
    if (!code && !make)
        code = work->collect(cli, &items);
    if (!code)
        code = run_items(cli, &items, work);
    items_free(&items);
    return code;
}
