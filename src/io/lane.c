/* lane.c - see lane.h. */
#include "io/lane.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>

#include "util/err.h"
#include "util/sys.h"

struct weir_lane {
    bool has_ring;
    struct io_uring ring;
    unsigned slot; /* without a ring: what was done last, */
    ssize_t answer;
    bool is_done; /* and whether it is still to be told */
};

int weir_lane_open(struct weir_lane **out, unsigned depth)
{
    struct weir_lane *lane = weir_alloc(sizeof *lane);
    if (!lane)
        return weir_fail_memory();
    if (depth > 1) {
        int code = io_uring_queue_init(depth, &lane->ring,
                                       IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN);
        if (code == -EINVAL) /* before Linux 6.0 */
            code = io_uring_queue_init(depth, &lane->ring, 0);
        if (code) {
            free(lane);
            return weir_fail(-code, "cannot have %u transfers under way: io_uring is refused (%s)",
                             depth, weir_errno_text(code));
        }
        lane->has_ring = true;
    }
    *out = lane;
    return 0;
}

void weir_lane_close(struct weir_lane *lane)
{
    if (lane && lane->has_ring)
        io_uring_queue_exit(&lane->ring);
    free(lane);
}

void weir_lane_send(struct weir_lane *lane, unsigned slot, bool is_write, int fd, void *buf,
                    size_t size, uint64_t off)
{
    if (!lane->has_ring) {
        assert(!lane->is_done);
        lane->answer =
            is_write ? weir_sys->pwrite(fd, buf, size, off) : weir_sys->pread(fd, buf, size, off);
        lane->slot = slot;
        lane->is_done = true;
        return;
    }
    struct io_uring_sqe *sqe = io_uring_get_sqe(&lane->ring);
    assert(sqe); /* the ring has room for the depth */
    if (is_write)
        io_uring_prep_write(sqe, fd, buf, (unsigned)size, off);
    else
        io_uring_prep_read(sqe, fd, buf, (unsigned)size, off);
    io_uring_sqe_set_data64(sqe, slot);
    io_uring_submit(&lane->ring);
}

unsigned weir_lane_wait(struct weir_lane *lane, ssize_t *answer)
{
    if (!lane->has_ring) {
        assert(lane->is_done);
        lane->is_done = false;
        *answer = lane->answer;
        return lane->slot;
    }
    struct io_uring_cqe *cqe;
    while (io_uring_peek_cqe(&lane->ring, &cqe)) {
        int code = io_uring_submit_and_wait(&lane->ring, 1); /* what was not taken goes along */
        if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY) {
            *answer = code; /* the ring is broken: whichever was waited for has failed */
            return 0;
        }
    }
    unsigned slot = (unsigned)io_uring_cqe_get_data64(cqe);
    *answer = cqe->res;
    io_uring_cqe_seen(&lane->ring, cqe);
    return slot;
}
