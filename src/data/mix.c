/* mix.c - see mix.h. */
#include "data/mix.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "data/deal.h"
#include "util/err.h"
#include "util/perm.h"
#include "util/sys.h"

enum purpose { FOR_SPREAD, FOR_ROTATION, FOR_PARTS };

/* A slot of the block: whose, and which of its own. */
struct slot {
    uint16_t part, number;
};

struct weir_mix {
    uint64_t rotation_key;
    uint32_t parts;
    uint32_t shares[WEIR_MIX_PARTS_MAX];
    uint32_t firsts[WEIR_MIX_PARTS_MAX]; /* where each part's slots begin in `own` */
    struct slot slots[WEIR_MIX_SLOTS];
    uint16_t own[WEIR_MIX_SLOTS]; /* the slots of the first part, rising; of the second; … */
};

uint64_t weir_mix_seed(uint64_t seed, uint32_t part)
{
    return weir_perm_key(weir_perm_key(seed, FOR_PARTS), part);
}

uint32_t weir_mix_parts(const struct weir_mix *mix)
{
    return mix->parts;
}

uint32_t weir_mix_share(const struct weir_mix *mix, uint32_t part)
{
    assert(part < mix->parts);
    return mix->shares[part];
}

/* ---- the block ---- */

/* Largest remainder: every part has its quota rounded down; what is left goes to those who lost
 * most, the first of them where they lost the same. */
static int share_out(struct weir_mix *mix, const uint64_t *weights)
{
    unsigned __int128 sum = 0, lost[WEIR_MIX_PARTS_MAX];
    uint32_t left = WEIR_MIX_SLOTS;
    for (uint32_t i = 0; i < mix->parts; i++)
        sum += weights[i];
    if (!sum)
        return weir_fail(EINVAL, "all %" PRIu32 " weights are 0", mix->parts);
    for (uint32_t i = 0; i < mix->parts; i++) {
        unsigned __int128 quota = (unsigned __int128)weights[i] * WEIR_MIX_SLOTS;
        mix->shares[i] = (uint32_t)(quota / sum);
        lost[i] = quota % sum;
        left -= mix->shares[i];
    }
    for (; left; left--) {
        uint32_t most = 0;
        for (uint32_t i = 1; i < mix->parts; i++)
            most = lost[i] > lost[most] ? i : most;
        mix->shares[most]++;
        lost[most] = 0;
    }
    for (uint32_t i = 0; i < mix->parts; i++)
        if (!mix->shares[i])
            return weir_fail(EINVAL,
                             "part %" PRIu32 " weighs less than one in %d: leave it out, or give "
                             "it more",
                             i, WEIR_MIX_SLOTS);
    return 0;
}

/* A slot on its way to its place. */
struct ticket {
    uint64_t at; /* in fractions of the block */
    struct slot slot;
};

static int by_place(const void *a, const void *b)
{
    const struct ticket *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->slot.part != y->slot.part)
        return x->slot.part < y->slot.part ? -1 : 1;
    return (x->slot.number > y->slot.number) - (x->slot.number < y->slot.number);
}

/* Number j of a part with n slots is at (j + chance) / n of the block. */
static void spread_out(struct weir_mix *mix, struct ticket *tickets, uint64_t key)
{
    uint32_t count = 0, taken[WEIR_MIX_PARTS_MAX] = {0};
    for (uint32_t part = 0; part < mix->parts; part++) {
        uint64_t part_key = weir_perm_key(key, part);
        mix->firsts[part] = count;
        for (uint32_t j = 0; j < mix->shares[part]; j++) {
            uint64_t chance = weir_perm_key(part_key, j) >> 32;
            uint64_t at = (((uint64_t)j << 32 | chance) << 16) / mix->shares[part];
            tickets[count++] = (struct ticket){at, {(uint16_t)part, (uint16_t)j}};
        }
    }
    assert(count == WEIR_MIX_SLOTS);
    qsort(tickets, count, sizeof *tickets, by_place);
    for (uint32_t i = 0; i < count; i++) {
        struct slot slot = tickets[i].slot;
        assert(slot.number == taken[slot.part]); /* in their order */
        mix->slots[i] = slot;
        mix->own[mix->firsts[slot.part] + taken[slot.part]++] = (uint16_t)i;
    }
}

int weir_mix_open(struct weir_mix **out, const uint64_t *weights, uint32_t parts, uint64_t seed)
{
    if (!parts || parts > WEIR_MIX_PARTS_MAX)
        return weir_fail(EINVAL, "a mixture of %" PRIu32 " datasets: use 1 to %d", parts,
                         WEIR_MIX_PARTS_MAX);
    struct weir_mix *mix = weir_alloc(sizeof *mix);
    struct ticket *tickets = weir_alloc(WEIR_MIX_SLOTS * sizeof *tickets);
    int code = mix && tickets ? 0 : weir_fail_memory();
    if (!code) {
        mix->parts = parts;
        mix->rotation_key = weir_perm_key(seed, FOR_ROTATION);
        code = share_out(mix, weights);
    }
    if (!code) {
        spread_out(mix, tickets, weir_perm_key(seed, FOR_SPREAD));
        *out = mix;
    } else {
        weir_mix_close(mix);
    }
    free(tickets);
    return code;
}

void weir_mix_close(struct weir_mix *mix)
{
    free(mix);
}

/* ---- finding a position ---- */

static uint32_t rotation(const struct weir_mix *mix, uint64_t block)
{
    return weir_perm_key(mix->rotation_key, block) % WEIR_MIX_SLOTS;
}

/* How many of the part's slots are among the first `slot` of the block. */
static uint32_t own_before(const struct weir_mix *mix, uint32_t part, uint32_t slot)
{
    const uint16_t *own = mix->own + mix->firsts[part];
    uint32_t low = 0, high = mix->shares[part];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (own[middle] < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct weir_mix_at weir_mix_find(const struct weir_mix *mix, uint64_t position)
{
    uint64_t block = position / WEIR_MIX_SLOTS;
    uint32_t turned = rotation(mix, block);
    struct slot slot = mix->slots[(position + turned) % WEIR_MIX_SLOTS];
    uint32_t share = mix->shares[slot.part], skipped = own_before(mix, slot.part, turned);
    uint32_t number =
        slot.number >= skipped ? slot.number - skipped : slot.number + share - skipped;
    return (struct weir_mix_at){slot.part, block * share + number};
}

uint64_t weir_mix_before(const struct weir_mix *mix, uint64_t position, uint32_t part)
{
    assert(part < mix->parts);
    uint64_t block = position / WEIR_MIX_SLOTS;
    uint32_t turned = rotation(mix, block), share = mix->shares[part];
    uint32_t end = turned + (uint32_t)(position % WEIR_MIX_SLOTS);
    uint32_t passed = end <= WEIR_MIX_SLOTS ? own_before(mix, part, end)
                                            : share + own_before(mix, part, end - WEIR_MIX_SLOTS);
    return block * share + passed - own_before(mix, part, turned);
}

/* ---- ranks ---- */

void weir_mix_deal(const struct weir_mix *mix, const struct weir_order *const *orders,
                   uint64_t position, uint64_t count, uint32_t rank, uint32_t ranks,
                   struct weir_mix_at *out)
{
    assert(position <= UINT64_MAX - count);
    struct weir_deal_part parts[WEIR_MIX_PARTS_MAX];
    for (uint32_t i = 0; i < mix->parts; i++)
        parts[i] = (struct weir_deal_part){
            .order = orders[i],
            .first = weir_mix_before(mix, position, i),
            .end = weir_mix_before(mix, position + count, i),
        };
    struct weir_dealing dealing;
    weir_deal_begin(&dealing, parts, mix->parts, rank, ranks);
    while (weir_deal_next(&dealing, &out->part, &out->position))
        out++;
}
