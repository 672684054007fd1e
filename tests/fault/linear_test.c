/* The checker of linear.h can fail: it takes histories that are possible, and refuses those that
 * are not.
 */
#include <errno.h>

#include "linear.h"
#include "test.h"

static struct history *h;
static const struct content A = {1, 10}, B = {2, 20};

static struct op *add(unsigned proc, enum op_kind kind, struct content what, uint64_t start_ns,
                      uint64_t end_ns, int code)
{
    struct op *op = history_begin(h, proc, kind, "k", what);
    op->start_ns = start_ns;
    op->code = code;
    op->present = kind == OP_GET && !code;
    op->end_ns = end_ns;
    atomic_store(&op->done, end_ns != UINT64_MAX);
    return op;
}

static bool holds(const struct content *final)
{
    bool answer = linear_key(h, "k", final);
    history_reset(h);
    return answer;
}

static void takes_what_can_be(void)
{
    CHECK(holds(NULL));
    add(0, OP_PUT, A, 10, 20, 0);
    add(1, OP_PUT, B, 10, 20, -EEXIST);
    add(2, OP_GET, A, 10, 20, 0);
    add(3, OP_GET, A, 10, 20, -ENOENT);
    CHECK(holds(&A));
    /* A remove between two puts, all at once. */
    add(0, OP_PUT, A, 10, 40, 0);
    add(1, OP_REMOVE, A, 10, 40, 0);
    add(2, OP_PUT, B, 10, 40, 0);
    add(3, OP_GET, A, 10, 40, 0);
    add(3, OP_REMOVE, A, 50, 60, 0);
    CHECK(holds(NULL));
    /* In doubt: it came late, or never. */
    add(0, OP_PUT, A, 10, 20, -WEIR_EUNKNOWN);
    add(1, OP_GET, A, 30, 40, -ENOENT);
    add(1, OP_GET, A, 50, 60, 0);
    CHECK(holds(&A));
    add(0, OP_PUT, A, 10, UINT64_MAX, 0);
    add(1, OP_PUT, B, 30, 40, 0);
    CHECK(holds(&B));
    /* A failure says nothing. */
    add(0, OP_PUT, A, 10, 20, -EIO);
    CHECK(holds(NULL));
}

static void refuses_what_cannot(void)
{
    /* Two winners. */
    add(0, OP_PUT, A, 10, 20, 0);
    add(1, OP_PUT, B, 10, 20, 0);
    CHECK(!holds(&B));
    /* Lost. */
    add(0, OP_PUT, A, 10, 20, 0);
    CHECK(!holds(NULL));
    /* What nobody put, and what a failed put wrote. */
    CHECK(!holds(&A));
    add(0, OP_PUT, A, 10, 20, -EIO);
    CHECK(!holds(&A));
    /* A stale read, of nothing and of something. */
    add(0, OP_PUT, A, 10, 20, 0);
    add(1, OP_GET, A, 30, 40, -ENOENT);
    CHECK(!holds(&A));
    add(0, OP_PUT, A, 10, 20, 0);
    add(0, OP_REMOVE, A, 30, 40, 0);
    add(1, OP_GET, A, 50, 60, 0);
    CHECK(!holds(NULL));
    /* Two removed the same. */
    add(0, OP_PUT, A, 10, 20, 0);
    add(0, OP_REMOVE, A, 30, 40, 0);
    add(1, OP_REMOVE, A, 30, 40, 0);
    CHECK(!holds(NULL));
    /* Taken, although nothing ever was there. */
    add(0, OP_PUT, A, 10, 20, -EEXIST);
    CHECK(!holds(NULL));
    /* Two reads that saw the contents in the wrong order. */
    add(0, OP_PUT, A, 10, 20, 0);
    add(0, OP_REMOVE, A, 30, 80, 0);
    add(1, OP_PUT, B, 30, 80, 0);
    add(2, OP_GET, B, 30, 40, 0);
    add(2, OP_GET, A, 50, 60, 0);
    CHECK(!holds(&B));
}

int main(void)
{
    h = calloc(1, sizeof *h);
    CHECK(h);
    RUN(takes_what_can_be);
    RUN(refuses_what_cannot);
    free(h);
    return TEST_RESULT;
}
