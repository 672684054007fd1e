/* removals.c - for tests/remote/test_s3_deletes.py: makes COUNT blobs of a tier and removes all of
 * them at once.
 *
 *     removals URL COUNT [ODD]     ODD: the last name is one that XML cannot say
 *
 * Says "failed NAME CODE TEXT" for each removal that was, "left NAME" for each that is still there
 * then, all with tabs, and "done".
 */
#include <stdlib.h>

#include "test.h"
#include "tier/tier.h"
#include "util/team.h"

enum { COUNT_MAX = 4000, MAKERS = 16 };

static struct weir_tier *tier;
static char names[COUNT_MAX][64];

static int make(void *arg, uint64_t i)
{
    struct weir_req req;
    (void)arg;
    weir_req_init(&req, WEIR_OP_CREATE);
    req.name = names[i];
    req.small = true;
    int code = weir_tier_call(tier, &req);
    struct weir_handle *sink = code ? NULL : req.handle;
    if (!code) {
        weir_req_init(&req, WEIR_OP_COMMIT);
        req.handle = sink;
        code = weir_tier_call(tier, &req);
    }
    weir_handle_close(sink);
    return code;
}

static void remove_all(size_t count)
{
    struct weir_req *reqs = calloc(count, sizeof *reqs);
    struct weir_queue queue;
    weir_queue_init(&queue);
    for (size_t i = 0; i < count; i++) {
        weir_req_init(&reqs[i], WEIR_OP_REMOVE);
        reqs[i].name = names[i];
        reqs[i].blind = true;
        weir_req_push(&reqs[i], weir_queue_done, &queue);
        weir_tier_submit(tier, &reqs[i]);
    }
    for (size_t i = 0; i < count; i++) {
        const struct weir_req *req = weir_queue_get(&queue);
        CHECK(req->doubt == WEIR_SURE);
        if (req->code)
            printf("failed\t%s\t%d\t%s\n", req->name, -req->code, req->text);
    }
    weir_queue_destroy(&queue);
    free(reqs);
}

static int look(void *arg, uint64_t i)
{
    struct weir_req req;
    (void)arg;
    weir_req_init(&req, WEIR_OP_STAT);
    req.name = names[i];
    int code = weir_tier_call(tier, &req);
    if (!code)
        printf("left\t%s\n", names[i]);
    return code == -ENOENT ? 0 : code;
}

int main(int argc, char **argv)
{
    const struct weir_io_options options = {.depth = 16, .pool_bytes_max = 16 << 20};
    struct weir_io *io;
    struct weir_url url;
    CHECK(argc >= 3);
    size_t count = strtoul(argv[2], NULL, 10);
    CHECK(count && count <= COUNT_MAX);
    for (size_t i = 0; i < count; i++)
        snprintf(names[i], sizeof names[i], ".weir/data/%zu <&> \xc3\xa9~%zu", i % 7, i);
    if (argc > 3)
        strcat(names[count - 1], "\x01");
    OK(weir_url_parse(&url, argv[1]));
    OK(weir_io_open(&io, &options));
    OK(weir_tier_open(&tier, &url, io, false));
    OK(weir_team_run(MAKERS, count, make, NULL));
    printf("made\n");
    fflush(stdout);
    CHECK(getchar() == '\n'); /* go on */
    remove_all(count);
    OK(weir_team_run(MAKERS, count, look, NULL));
    printf("done\n");
    weir_tier_close(tier);
    weir_io_close(io);
    weir_url_free(&url);
    return 0;
}
