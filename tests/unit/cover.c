/* The sums that tell whether pieces make up their tensors: zero for any way of cutting them over
 * any number of ranks, and for nothing else; and the box that is missing is found.
 */
#include "ckpt/box.h"
#include "ckpt/cover.h"
#include "stores.h"

enum { DIMS_MAX = 4, PIECES_MAX = 64, TRIALS = 3000 };

/* A tensor cut into boxes. */
struct cut {
    uint32_t ndim;
    uint64_t whole[DIMS_MAX];
    uint64_t offset[PIECES_MAX][DIMS_MAX], shape[PIECES_MAX][DIMS_MAX];
    unsigned count;
};

/* Cuts one box after the other in two, anywhere. */
static void cut_make(struct cut *c, struct rng *rng, uint64_t side)
{
    memset(c, 0, sizeof *c);
    c->ndim = 1 + (uint32_t)rng_below(rng, DIMS_MAX);
    for (uint32_t d = 0; d < c->ndim; d++)
        c->whole[d] = c->shape[0][d] = 1 + rng_below(rng, side);
    c->count = 1;
    for (unsigned want = (unsigned)rng_below(rng, PIECES_MAX); want; want--) {
        unsigned i = (unsigned)rng_below(rng, c->count);
        uint32_t d = (uint32_t)rng_below(rng, c->ndim);
        if (c->shape[i][d] < 2 || c->count == PIECES_MAX)
            continue;
        uint64_t first = 1 + rng_below(rng, c->shape[i][d] - 1);
        memcpy(c->offset[c->count], c->offset[i], sizeof c->offset[i]);
        memcpy(c->shape[c->count], c->shape[i], sizeof c->shape[i]);
        c->offset[c->count][d] += first;
        c->shape[c->count][d] -= first;
        c->shape[i][d] = first;
        c->count++;
    }
}

static weir_tensor piece_of(const struct cut *c, unsigned i)
{
    return (weir_tensor){.name = "w",
                         .dtype = "F32",
                         .ndim = c->ndim,
                         .shape = c->shape[i],
                         .global_shape = c->whole,
                         .offset = c->offset[i]};
}

static bool is_zero(const struct weir_cover *cover)
{
    return !cover->sum[0] && !cover->sum[1] && !cover->replicas;
}

static void any_cut_is_whole(void)
{
    struct rng rng = {5};
    struct cut c;
    for (unsigned i = 0; i < TRIALS; i++) {
        struct weir_cover cover = {0};
        cut_make(&c, &rng, i % 2 ? 9 : (uint64_t)1 << 40);
        for (unsigned k = 0; k < c.count; k++) {
            weir_tensor t = piece_of(&c, k);
            weir_cover_add(&cover, &t, true);
        }
        CHECK(is_zero(&cover));
    }
}

/* One piece is another one than it should be. */
static void anything_else_is_not(void)
{
    struct rng rng = {6};
    struct cut c;
    for (unsigned i = 0; i < TRIALS; i++) {
        struct weir_cover cover = {0};
        cut_make(&c, &rng, i % 2 ? 9 : (uint64_t)1 << 40);
        if (c.count == 1) /* without it there would be no such tensor */
            continue;
        unsigned wrong = (unsigned)rng_below(&rng, c.count), how = (unsigned)rng_below(&rng, 5);
        uint32_t d = (uint32_t)rng_below(&rng, c.ndim);
        uint64_t whole[DIMS_MAX], was = c.whole[d];
        memcpy(whole, c.whole, sizeof whole);
        for (unsigned k = 0; k < c.count; k++) {
            weir_tensor t = piece_of(&c, k);
            if (k != wrong) {
                weir_cover_add(&cover, &t, true);
                continue;
            }
            if (how == 0) /* missing */
                continue;
            if (how == 1)
                t.dtype = "I32";
            else if (how == 2) {
                whole[d] = was + 1;
                t.global_shape = whole;
            } else if (how == 3 && c.offset[k][d])
                c.offset[k][d]--; /* elsewhere, as large as ever */
            else if (c.shape[k][d] > 1)
                c.shape[k][d]--; /* a little smaller */
            else
                continue;
            weir_cover_add(&cover, &t, true);
        }
        CHECK(!is_zero(&cover));
    }
}

static void replicas_are_all_there(void)
{
    static const uint64_t shape[] = {3, 4};
    for (uint32_t replicas = 2; replicas < 9; replicas++) {
        struct weir_cover all = {0}, fewer = {0};
        for (uint32_t i = 0; i < replicas; i++) {
            const weir_tensor t = {.name = "b",
                                   .dtype = "F32",
                                   .ndim = 2,
                                   .shape = shape,
                                   .replica = i,
                                   .replicas = replicas};
            weir_cover_add(&all, &t, i == replicas / 2);
            if (i)
                weir_cover_add(&fewer, &t, i == replicas / 2);
        }
        CHECK(is_zero(&all) && !is_zero(&fewer));
    }
}

/* Every element of the hole is within the tensor and in no piece. */
static void holes(void)
{
    struct rng rng = {8};
    struct cut c;
    for (unsigned i = 0; i < TRIALS; i++) {
        struct weir_piece pieces[PIECES_MAX];
        uint64_t offset[DIMS_MAX], shape[DIMS_MAX];
        cut_make(&c, &rng, 9);
        for (unsigned k = 0; k < c.count; k++)
            pieces[k] = (struct weir_piece){.bytes = 1, .offset = c.offset[k], .shape = c.shape[k]};
        struct weir_manifest_tensor t = {
            .ndim = c.ndim, .shape = c.whole, .pieces = pieces, .count = c.count};
        CHECK(!weir_box_hole(&t, offset, shape));
        t.count--;
        CHECK(weir_box_hole(&t, offset, shape));
        const struct weir_piece hole = {.offset = offset, .shape = shape};
        for (unsigned k = 0; k < t.count; k++)
            CHECK(!weir_box_overlap(&hole, &pieces[k], c.ndim));
        for (uint32_t d = 0; d < c.ndim; d++)
            CHECK(shape[d] && offset[d] + shape[d] <= c.whole[d]);
    }
}

int main(void)
{
    RUN(any_cut_is_whole);
    RUN(anything_else_is_not);
    RUN(replicas_are_all_there);
    RUN(holes);
    return TEST_RESULT;
}
