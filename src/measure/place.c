/* place.c - what is the same for every kind of place: jobs are checked before they are run. */
#include <errno.h>
#include <string.h>

#include "measure/crew.h"
#include "util/sys.h"

int weir_place_prepare(struct weir_place *place, uint64_t bytes, uint64_t time_ns)
{
    return place->ops->prepare(place, bytes, time_ns);
}

int weir_place_run(struct weir_place *place, const struct weir_job *job,
                   struct weir_job_result *result)
{
    uint64_t under_way = (uint64_t)job->threads * job->depth;
    uint64_t needs = job->is_fresh ? job->bytes : place->data_bytes;
    memset(result, 0, sizeof *result);
    if (!job->threads || job->threads > WEIR_JOB_THREADS_MAX || !job->depth ||
        job->depth > WEIR_JOB_DEPTH_MAX)
        return weir_fail(EINVAL, "%u threads with a depth of %u: 1 to %d of each", job->threads,
                         job->depth, WEIR_JOB_THREADS_MAX);
    if (!place->has_rings && !place->is_remote && under_way > WEIR_JOB_THREADS_MAX)
        return weir_fail(ENOTSUP, "without io_uring at most %d requests are under way, not %llu",
                         WEIR_JOB_THREADS_MAX, (unsigned long long)under_way);
    if (!job->block_bytes || job->block_bytes % WEIR_IO_ALIGN)
        return weir_fail(EINVAL, "a block of %zu bytes: it is a multiple of 4096",
                         job->block_bytes);
    if (under_way * job->block_bytes > WEIR_JOB_MEMORY_MAX)
        return weir_fail(EINVAL,
                         "%u threads x depth %u x blocks of %zu bytes: that is more than "
                         "1 GiB under way",
                         job->threads, job->depth, job->block_bytes);
    if (needs / (job->is_random ? 1 : job->threads) < job->block_bytes)
        return weir_fail(EINVAL, "%llu bytes are too few for %u threads with blocks of %zu",
                         (unsigned long long)needs, job->threads, job->block_bytes);
    return place->ops->run(place, job, result);
}
