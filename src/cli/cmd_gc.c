/* cmd_gc.c - weir gc: what crashed and interrupted writers left is removed. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "util/err.h"

static struct {
    bool now, dry_run;
} opts;

#define AT(field) (offsetof(typeof(opts), field))

static const struct weir_opt options[] = {
    {"now", 0, WEIR_OPT_FLAG, AT(now), "no", NULL,
     "do not wait for the grace; only when nobody is writing to this store", 0, 0},
    {"dry-run", 'n', WEIR_OPT_FLAG, AT(dry_run), "no", NULL,
     "say what would be removed, and remove nothing", 0, 0},
    {0},
};

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print(struct cli *cli, const weir_gc_result *r)
{
    char bytes[32], grace[FORMAT_TIME_BYTES];
    weir_store_info info = {0};
    cli_say(cli, "%s %" PRIu64 " object%s (%s) and %" PRIu64 " temporary file%s",
            opts.dry_run ? "would remove" : "removed", r->objects, plural(r->objects),
            weir_format_size(bytes, sizeof bytes, r->bytes), r->temporaries,
            plural(r->temporaries));
    if (r->saves)
        cli_say(cli, "%s %" PRIu64 " retired or abandoned save%s",
                opts.dry_run ? "would remove" : "removed", r->saves, plural(r->saves));
    if (r->spare_bytes)
        cli_say(cli, "%s %s of deleted checkpoints that were kept to be written over",
                opts.dry_run ? "would release" : "released",
                weir_format_size(bytes, sizeof bytes, r->spare_bytes));
    if (r->links_restored)
        cli_say(cli, "put back %" PRIu64 " plain name%s", r->links_restored,
                plural(r->links_restored));
    if (r->young && !weir_store_info_get(cli->store, &info))
        cli_say(cli, "left %" PRIu64 " younger than the grace of %s, or in use", r->young,
                format_duration(grace, info.grace_s));
}

static int on_progress(void *arg, uint64_t more)
{
    (void)arg;
    (void)more;
    progress_item();
    return stop_asked();
}

static int run(struct cli *cli)
{
    weir_gc_result r = {0};
    uint32_t flags = (opts.now ? WEIR_GC_NOW : 0) | (opts.dry_run ? WEIR_GC_DRY_RUN : 0);
    int code = cli_store_open(cli, CLI_WRITE, 0, NULL);
    if (code)
        return code;
    stop_politely();
    progress_start(cli, "collecting", 0, 0, false);
    code = weir_gc(cli->store, flags, &r, on_progress, NULL);
    progress_end();
    if (code == -ECANCELED)
        return stop_fail();
    char *why = code ? strdup(weir_error_text()) : NULL;
    if (cli->json)
        cli->doc =
            json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "dry_run", opts.dry_run,
                      "saves", (json_int_t)r.saves, "objects", (json_int_t)r.objects, "size_bytes",
                      (json_int_t)r.bytes, "temporaries", (json_int_t)r.temporaries, "voids_placed",
                      (json_int_t)r.voids_placed, "voids_removed", (json_int_t)r.voids_removed,
                      "links_restored", (json_int_t)r.links_restored, "young", (json_int_t)r.young,
                      "spare_bytes", (json_int_t)r.spare_bytes);
    print(cli, &r); /* what was removed is gone, also if something failed */
    if (code && why)
        weir_fail_text(code, why);
    free(why);
    return code;
}

const struct command cmd_gc = {
    .name = "gc",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .summary = "Remove what crashed and interrupted writers left behind",
    .about =
        "What a crash left is removed when it is older than the store's grace (a day, unless weir "
        "init said otherwise): a younger one may belong to a writer that is still at work. So are "
        "saves that a log has retired, and those that nobody completed; and files of deleted "
        "checkpoints that were kept to be written over (.weir/spare) are released. Other objects "
        "are never touched. If no writer is at work, --now does not wait for the grace.",
    .example = "weir gc --dry-run\n"
               "weir gc --now",
    .json = "dry_run, saves, objects, size_bytes, temporaries, voids_placed, voids_removed, "
            "links_restored, young, spare_bytes",
    .options = options,
    .fields = &opts,
    .run = run,
};
