/* conformance.c - one contract (src/tier/tier.h), one suite, every tier. A new kind of tier is one
 * line in `places`; its tests are all of these. Without an argument the names are printed. With
 * `url` the tier is what WEIR_TEST_URL names, for storage that a test started before: "{}" in it
 * becomes another word for each run, for each wants a place that is empty.
 */
#include "nfs_client.h"
#include "tier_calls.h"
#include "tmpdir.h"

static const struct place {
    const char *name;
    const char *engine; /* of the io layer */
    const char *url;    /* %s: an empty directory */
    bool keeps, alias;
    unsigned names; /* how many to list; a tenth of that the second time */
} places[] = {
    {"file-uring", "uring", "file:%s", true, true, 3000},
    {"file-threads", "threads", "file:%s", true, true, 3000},
    {"file-inline", "inline", "file:%s", true, true, 1000},
    {"file-nfs", "threads", "file:%s", true, true, 300},
    {"mem", "inline", "mem:?size=512M", true, false, 3000},
    {"null", "inline", "null:", false, false, 0},
    /* Filters change nothing of the contract. */
    {"stats-file", "threads", "file:%s?stats=1", true, true, 200},
    {"stats-mem", "inline", "mem:?stats=1", true, false, 3000},
    {"limit-file", "threads", "file:%s?read_rate=100G&write_rate=100G", true, true, 200},
    {"limit-mem", "inline", "mem:?read_rate=100G&write_rate=100G", true, false, 3000},
    {"faulty-file", "threads", "file:%s?fault_nth=1000000000", true, true, 200},
    {"faulty-mem", "inline", "mem:?fault_nth=1000000000", true, false, 3000},
    {"all-file", "uring", "file:%s?stats=1&read_rate=100G&write_rate=100G&fault_nth=1000000000",
     true, true, 200},
    {"all-null", "inline", "null:?stats=1&read_rate=100G&write_rate=100G&fault_nth=1000000000",
     false, false, 0},
    /* Records on another tier than data. */
    {"split-file+mem", "threads", "file:%s?commit=mem:", true, false, 300},
    {"split-mem+file", "inline", "mem:?size=512M&commit=file:%s", true, false, 300},
    {"split-file+file", "uring", "file:%1$s/data?commit=file:%1$s/records", true, false, 300},
};

/* Storage beyond this machine has neither plain names nor locks, and takes its time. */
static struct place remote = {"url", "threads", NULL, true, false, 300};

static const char *url_of(const struct place *place, char *text, size_t size)
{
    if (place != &remote) {
        snprintf(text, size, place->url, tmp_path("tier"));
        return text;
    }
    const char *gap = strstr(place->url, "{}");
    CHECK(gap);
    snprintf(text, size, "%.*s%s%s", (int)(gap - place->url), place->url,
             calls_async ? "asynchronous" : "blocking", gap + 2);
    return text;
}

static struct weir_tier *open_place(const struct place *place, struct weir_io *io)
{
    char text[PATH_MAX + 256];
    struct weir_url url;
    struct weir_tier *opened;
    url_of(place, text, sizeof text);
    OK(weir_url_parse(&url, text));
    OK(weir_tier_open(&opened, &url, io, true));
    weir_url_free(&url);
    return opened;
}

static void run_checks(const struct place *place)
{
    names_many = calls_async ? place->names / 10 : place->names;
    has_alias = place->alias;
    /* What is on a file system has both; of two tiers, the one with the records. */
    has_leases = place->alias || strstr(place->url, "commit=file:");
    check_leases();
    if (!place->keeps) {
        check_null();
        return;
    }
    check_blobs();
    check_records();
    check_names();
    check_listing();
    check_flow();
}

static void run_place(const struct place *place)
{
    struct weir_io *io;
    struct weir_io_options opts = {place->engine, 16, 16 << 20};
    if (!strcmp(place->name, "file-nfs")) {
        nfs_client = (struct nfs_client){.lose_links = 3, .lose_mkdirs = 3, .lose_creates = 7};
        nfs_client_arm();
    } else if (place != &remote && strcmp(place->engine, "uring"))
        watch_syncs(); /* uring is not offered under another table */
    int code = weir_io_open(&io, &opts);
    if (code == -ENOTSUP)
        SKIP("%s", weir_fail_last());
    OK(code);
    for (int async = is_short; async < 2; async++) {
        printf("# %s, %s\n", place->name, async ? "asynchronous" : "blocking");
        calls_async = async;
        tier = open_place(place, io);
        CHECK(tier->level == (place->keeps
                                  ? strstr(place->url, "mem:") ? WEIR_LEVEL_MEMORY : WEIR_LEVEL_HOME
                                  : WEIR_LEVEL_NONE));
        run_checks(place);
        weir_tier_close(tier);
    }
    weir_io_close(io);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], remote.name)) {
        remote.url = getenv("WEIR_TEST_URL");
        if (!remote.url)
            SKIP("no WEIR_TEST_URL");
        remote.alias = !strncmp(remote.url, "file:", 5);
        is_short = getenv("WEIR_TEST_SHORT") != NULL;
        run_place(&remote);
        return TEST_RESULT;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (argc < 2) {
            printf("%s\n", places[i].name);
        } else if (!strcmp(argv[1], places[i].name)) {
            run_place(&places[i]);
            return TEST_RESULT;
        }
    }
    return argc < 2 ? 0 : 1;
}
