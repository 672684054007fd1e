/* cover.c - see cover.h. Pure, but for weir_cover_check(). */
#include "ckpt/cover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "ckpt/rows.h"
#include "util/bytes.h"
#include "util/err.h"

enum { VERSION = 1, POINTS = 2 };
#define VERDICT_NAME "refused.txt"
#define PRIME        (((uint64_t)1 << 61) - 1)

static uint64_t times(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a >= b ? a - b : a + PRIME - b;
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base = times(base, base))
        if (exponent & 1)
            result = times(result, base);
    return result;
}

/* A number in [2, PRIME), another one for each i. */
static uint64_t point(uint64_t seed, uint64_t i)
{
    uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return 2 + (x ^ x >> 31) % (PRIME - 2);
}

/* The sum of the terms of a box. With r - 1 times a geometric sum for each dimension there is
 * nothing to divide; the number behind the last dimension is the tensor's own. */
static uint64_t box_value(uint64_t seed, const uint64_t *offset, const uint64_t *shape,
                          uint32_t ndim)
{
    uint64_t value = point(seed, ndim);
    for (uint32_t i = 0; i < ndim; i++) {
        uint64_t r = point(seed, i), first = offset ? power(r, offset[i]) : 1;
        value = times(value, minus(times(first, power(r, shape[i])), first));
    }
    return value;
}

/* Two seeds from what all ranks must agree on: name, dtype and whole shape, and the box if asked.
 */
static void seeds_of(uint64_t out[POINTS], const weir_tensor *t, bool with_box)
{
    uint8_t text[WEIR_TABLE_KEY_BYTES_MAX + 64 + 3 * 8 * WEIR_DIMS_MAX], sum[WEIR_SUM_BYTES];
    size_t name = strlen(t->name) + 1, dtype = strlen(t->dtype) + 1;
    uint8_t *at = text;
    memcpy(at, t->name, name);
    memcpy(at + name, t->dtype, dtype);
    at = weir_dims_put(at + name + dtype, t->global_shape ? t->global_shape : t->shape, t->ndim);
    if (with_box) {
        at = weir_dims_put(at, t->offset, t->ndim);
        at = weir_dims_put(at, t->shape, t->ndim);
    }
    weir_sum(sum, text, (size_t)(at - text));
    out[0] = weir_load_le(sum, 8);
    out[1] = weir_load_le(sum + 8, 8);
}

static bool has_first_element(const weir_tensor *t)
{
    for (uint32_t i = 0; i < t->ndim; i++)
        if (!t->shape[i] || (t->offset && t->offset[i]))
            return false;
    return true;
}

void weir_cover_add(struct weir_cover *cover, const weir_tensor *t, bool is_written)
{
    uint64_t seeds[POINTS];
    if (t->replicas > 1) {
        seeds_of(seeds, t, true);
        cover->replicas += (seeds[0] | 1) * (is_written ? t->replicas - 1 : UINT64_MAX);
    }
    if (!is_written)
        return;
    seeds_of(seeds, t, false);
    const uint64_t *whole = t->global_shape ? t->global_shape : t->shape;
    for (unsigned i = 0; i < POINTS; i++) {
        uint64_t value = box_value(seeds[i], t->offset, t->shape, t->ndim);
        if (has_first_element(t))
            value = minus(value, box_value(seeds[i], NULL, whole, t->ndim));
        cover->sum[i] = (cover->sum[i] + value) % PRIME;
    }
}

void weir_cover_encode(const struct weir_cover *cover, uint8_t out[WEIR_COVER_BYTES])
{
    memset(out, 0, WEIR_COVER_BYTES);
    weir_store_le(out, VERSION, 8);
    weir_store_le(out + 8, cover->sum[0], 8);
    weir_store_le(out + 16, cover->sum[1], 8);
    weir_store_le(out + 24, cover->replicas, 8);
}

/* ---- before a commit ---- */

/* false if a part has no such note. */
static bool add_up(struct weir_cover *cover, const struct weir_node *root)
{
    const uint8_t *at = root->list;
    for (uint32_t i = 0; i < root->parts; i++) {
        struct weir_part part;
        if (weir_node_part(&part, &at) || part.note_size != WEIR_COVER_BYTES ||
            weir_load_le(part.note, 8) != VERSION)
            return false;
        for (unsigned k = 0; k < POINTS; k++)
            cover->sum[k] =
                (cover->sum[k] + weir_load_le(part.note + 8 + 8 * k, 8) % PRIME) % PRIME;
        cover->replicas += weir_load_le(part.note + 24, 8);
    }
    return true;
}

/* What the manifests say, which name things. */
static int check_manifests(struct weir_ledger *ledger, const struct weir_ledger_entry *entry)
{
    struct weir_manifest *manifest;
    struct weir_view *view;
    int code = weir_view_open_entry(&view, ledger, entry);
    if (code)
        return code;
    code = weir_manifest_load(&manifest, view);
    if (!code)
        weir_manifest_free(manifest);
    weir_view_close(view);
    return code;
}

/* What somebody has said of it: -ENOENT if nobody has, else -EBADMSG. */
static int read_verdict(weir_store *store, const char *prefix)
{
    char key[WEIR_KEY_BYTES_MAX + 32], text[WEIR_TEXT_MAX];
    weir_object *obj;
    size_t size = 0;
    snprintf(key, sizeof key, "%s/%s", prefix, VERDICT_NAME);
    int code = weir_object_open(&obj, store, key);
    if (code)
        return code;
    code = weir_object_read(obj, text, sizeof text - 1, 0, &size);
    weir_object_close(obj);
    text[code ? 0 : size] = 0;
    return code ? code : weir_fail_text(-EBADMSG, text);
}

/* The sums do not tell. */
static int decide(bool *waited, bool replicas, struct weir_ledger *ledger,
                  const struct weir_ledger_entry *entry)
{
    char prefix[WEIR_KEY_BYTES_MAX + 1];
    weir_store *store = weir_ledger_store(ledger);
    weir_ledger_prefix(ledger, &entry->save, prefix);
    int code = read_verdict(store, prefix);
    if (code == -EBADMSG)
        return code;
    if (waited && !*waited) { /* a thousand need not read what one is reading */
        *waited = true;
        return weir_fail(EAGAIN, "'%s' is complete, and somebody looks whether it fits", prefix);
    }
    code = check_manifests(ledger, entry);
    if (!code && replicas)
        code = weir_fail(EBADMSG, "the ranks do not agree on a tensor that is replicated: on its "
                                  "dtype or shape, or on who has it");
    if (!code)
        return 0;
    weir_fail_in(code, "step %s of '%s' is not committed", entry->save.name,
                 weir_ledger_name(ledger));
    if (code == -EBADMSG) {
        char text[WEIR_TEXT_MAX];
        snprintf(text, sizeof text, "%s", weir_fail_last());
        weir_ckpt_put_text(store, prefix, VERDICT_NAME, text, strlen(text), NULL);
        weir_fail_text(code, text); /* whether it could be put or not */
    }
    return code;
}

int weir_cover_check(void *arg, struct weir_ledger *ledger, const struct weir_ledger_entry *entry,
                     const struct weir_node *root)
{
    struct weir_cover cover = {0};
    bool noted = add_up(&cover, root);
    if (noted && !cover.sum[0] && !cover.sum[1] && !cover.replicas)
        return 0;
    return decide(arg, noted && cover.replicas, ledger, entry);
}
