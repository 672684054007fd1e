/* rados_sweep.c - SWEEP: parts that no head will ever name. What the parts of one nonce are, part 0
 * tells (rados.h); since a namespace is listed in no order, the answers for some nonces are kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tier/rados.h"
#include "util/err.h"
#include "util/hash.h"
#include "util/sys.h"

enum { KNOWN = 4096 }; /* nonces whose fate is remembered; another one takes its place */
enum fate { UNKNOWN, LIVE, YOUNG, GARBAGE };

struct known {
    uint8_t nonce[WEIR_NONCE_BYTES];
    enum fate fate;
};

struct sweep {
    struct rados_tier *tier;
    struct weir_req *req;
    struct weir_req removals; /* all of them in pieces of one request */
    int64_t now_ns;
    struct known *known;
};

static bool is_old(const struct sweep *s, int64_t time_ns)
{
    return s->now_ns >= time_ns && (uint64_t)(s->now_ns - time_ns) >= s->req->off;
}

/* Takes open parts from a writer that will not finish: 0, or -ESTALE if he did just now. */
static int condemn(struct sweep *s, const char *part, const uint8_t *nonce, const char *name)
{
    struct rados_tier *t = s->tier;
    struct head head;
    rados_write_op_t op = t->lib->create_write_op();
    t->lib->write_op_cmpxattr(op, WEIR_RADOS_STATE, LIBRADOS_CMPXATTR_OP_EQ, WEIR_RADOS_OPEN,
                              strlen(WEIR_RADOS_OPEN));
    t->lib->write_op_remove(op);
    int code = weir_rados_write_now(t, op, part, NULL);
    if (code == -ECANCELED || code == -ENOENT)
        return -ESTALE;
    if (code)
        return weir_rados_fail(t, code, "sweep", part);
    /* He may have died when the head stood and the parts were not done. */
    enum weir_doubt unused = WEIR_SURE;
    if (name[0] && !weir_rados_look(t, name, &head, NULL, 0) && head.in_parts &&
        !memcmp(head.nonce, nonce, WEIR_NONCE_BYTES))
        weir_rados_head_drop(t, name, &head, &unused);
    return 0;
}

/* Whether a head names the parts: 1, 0, or -errno. */
static int has_head(struct rados_tier *t, const char *name, const uint8_t *nonce)
{
    struct head head;
    int code = weir_rados_look(t, name, &head, NULL, 0);
    if (code)
        return code == -ENOENT ? 0 : code;
    return head.in_parts && !memcmp(head.nonce, nonce, WEIR_NONCE_BYTES);
}

/* Asks part 0. */
static int find_fate(struct sweep *s, const uint8_t *nonce, enum fate *fate)
{
    char part[RADOS_PART_NAME];
    struct part_owner owner;
    weir_rados_part_name(part, nonce, 0);
    int code = weir_rados_part_owner(s->tier, part, &owner);
    if (code && code != -ENOENT)
        return weir_rados_fail(s->tier, code, "look at", part);
    if (code) {
        *fate = GARBAGE;
    } else if (owner.is_done) {
        code = has_head(s->tier, owner.name, nonce);
        if (code < 0)
            return code;
        *fate = code ? LIVE : GARBAGE;
    } else {
        *fate = is_old(s, owner.time_ns) ? GARBAGE : YOUNG;
        if (*fate == GARBAGE && !s->req->dry) {
            code = condemn(s, part, nonce, owner.name);
            if (code && code != -ESTALE)
                return code;
            *fate = code ? LIVE : GARBAGE;
        }
    }
    s->req->result += *fate == GARBAGE;
    s->req->len += *fate == YOUNG;
    return 0;
}

static int sweep_part(struct sweep *s, const char *name)
{
    uint8_t nonce[WEIR_NONCE_BYTES];
    char hex[2 * WEIR_NONCE_BYTES + 1];
    const char *rest = name + strlen(WEIR_RADOS_PARTS);
    if (strnlen(rest, sizeof hex) < sizeof hex || rest[2 * WEIR_NONCE_BYTES] != '.')
        return 0; /* not ours */
    memcpy(hex, rest, sizeof hex - 1);
    hex[sizeof hex - 1] = 0;
    if (weir_unhex(nonce, sizeof nonce, hex))
        return 0;
    struct known *known = &s->known[(nonce[0] | nonce[1] << 8) % KNOWN];
    if (known->fate == UNKNOWN || memcmp(known->nonce, nonce, sizeof nonce)) {
        enum fate fate = UNKNOWN;
        int code = find_fate(s, nonce, &fate);
        if (code)
            return code;
        memcpy(known->nonce, nonce, sizeof nonce);
        known->fate = fate;
    }
    if (known->fate == GARBAGE && !s->req->dry)
        weir_rados_piece(s->tier, &s->removals, FLIGHT_REMOVE, name, NULL, 0, 0, 0);
    return 0;
}

static int sweep_all(struct sweep *s)
{
    struct rados_tier *t = s->tier;
    rados_list_ctx_t names;
    const char *name, *key, *space;
    int code = t->lib->nobjects_list_open(t->pool, &names);
    if (code)
        return weir_rados_fail(t, code, "list", WEIR_RADOS_PARTS);
    while (!(code = t->lib->nobjects_list_next(names, &name, &key, &space))) {
        if (strncmp(name, WEIR_RADOS_PARTS, strlen(WEIR_RADOS_PARTS)))
            continue;
        code = sweep_part(s, name);
        if (code)
            break;
    }
    if (code == -ENOENT)
        code = 0;
    else if (code)
        code = weir_fail_in(code, "cannot sweep %s", t->label);
    t->lib->nobjects_list_close(names);
    return code;
}

int weir_rados_sweep(struct rados_tier *t, struct weir_req *req)
{
    struct sweep s = {.tier = t, .req = req, .now_ns = weir_rados_now(t)};
    struct weir_queue queue;
    req->stat = (struct weir_blob_stat){0, s.now_ns};
    req->result = req->len = 0;
    if (req->off == UINT64_MAX) /* nothing is that old: who asks wants to know the time */
        return 0;
    s.known = weir_alloc(KNOWN * sizeof *s.known);
    if (!s.known)
        return weir_fail_memory();
    weir_queue_init(&queue);
    weir_req_init(&s.removals, WEIR_OP_REMOVE);
    weir_req_push(&s.removals, weir_queue_done, &queue);
    s.removals.name = WEIR_RADOS_PARTS;
    weir_rados_pieces_begin(&s.removals);
    int code = sweep_all(&s);
    weir_rados_pieces_end(t, &s.removals);
    weir_queue_get(&queue);
    weir_queue_destroy(&queue);
    if (!code && s.removals.code)
        code = weir_fail_text(s.removals.code, s.removals.text);
    free(s.known);
    return code;
}
