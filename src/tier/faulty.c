/* faulty.c - a filter that makes a tier misbehave, reproducibly: a function of its seed and of the
 * order of requests. It fails the n-th or a random request (before or after doing it), delays,
 * cuts reads short, and flips bits in what is read.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tier/tier.h"
#include "util/err.h"
#include "util/sys.h"

struct faulty_tier {
    struct weir_tier tier;
    struct weir_faults faults;
    int error;
    bool ops[WEIR_OPS];
    atomic_uint_fast64_t requests;
    atomic_bool failed;
};

static int errno_by_name(const char *name)
{
    for (int code = 1; code < 134; code++) {
        const char *known = strerrorname_np(code);
        if (known && !strcmp(known, name))
            return code;
    }
    return 0;
}

/* splitmix64: independent draws from a seed, the request's number, and what is drawn for. */
static uint64_t draw(uint64_t seed, uint64_t number, uint64_t purpose)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15 + number * 0xbf58476d1ce4e5b9 + purpose;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static bool chance(double share, uint64_t value)
{
    return share > 0 && (double)(value >> 11) * 0x1p-53 < share;
}

static void damage(struct faulty_tier *t, struct weir_req *req, uint64_t number)
{
    const struct weir_faults *f = &t->faults;
    if (chance(f->truncate, draw(f->seed, number, 2)))
        req->result = draw(f->seed, number, 3) % req->result;
    if (req->result && chance(f->flip, draw(f->seed, number, 4))) {
        uint64_t bit = draw(f->seed, number, 5) % (req->result * 8);
        ((uint8_t *)req->buf)[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
}

static void read_done(struct weir_req *req, void *arg)
{
    if (!req->code && req->result)
        damage(arg, req, weir_req_aux(req));
    weir_req_done(req);
}

static void lost_done(struct weir_req *req, void *arg)
{
    struct faulty_tier *t = arg;
    if (!req->code) {
        if (req->op == WEIR_OP_OPEN || req->op == WEIR_OP_CREATE || req->op == WEIR_OP_LEASE) {
            weir_handle_close(req->handle);
            req->handle = NULL;
        }
        if (req->op == WEIR_OP_LOAD)
            free(req->buf);
        if (req->op == WEIR_OP_MAP)
            weir_sys->unmap(req->buf, req->len);
        weir_req_fail(req, t->error, "injected fault: the answer of %s is lost",
                      weir_op_name(req->op));
        req->doubt = WEIR_DOUBT_LOST;
    }
    weir_req_done(req);
}

static void faulty_submit(struct weir_tier *tier, struct weir_req *req)
{
    struct faulty_tier *t = (struct faulty_tier *)tier;
    const struct weir_faults *f = &t->faults;
    if (!t->ops[req->op]) {
        weir_tier_submit(tier->below, req);
        return;
    }
    uint64_t number = ++t->requests;
    if (f->delay_ns)
        weir_sys->sleep_ns(f->delay_ns);
    bool fail =
        number == f->nth || chance(f->rate, draw(f->seed, number, 1)) || (f->lasting && t->failed);
    if (fail)
        t->failed = true;
    if (fail && !f->after) {
        weir_req_fail(req, t->error, "injected fault: %s of '%s': %s", weir_op_name(req->op),
                      req->name ? req->name : "", weir_errno_text(t->error));
        req->doubt = WEIR_SURE;
        weir_req_done(req);
        return;
    }
    if (fail)
        weir_req_push(req, lost_done, t);
    else if (req->op == WEIR_OP_READ || req->op == WEIR_OP_LOAD)
        *weir_req_push(req, read_done, t) = number;
    weir_tier_submit(tier->below, req);
}

static void faulty_close(struct weir_tier *tier)
{
    weir_tier_close(tier->below);
    free(tier);
}

static const struct weir_tier_ops faulty_ops = {"faulty", faulty_submit, faulty_close};

static int choose_ops(struct faulty_tier *t, const char *names)
{
    for (unsigned op = 0; op < WEIR_OPS; op++)
        t->ops[op] = !names;
    while (names && *names) {
        size_t n = strcspn(names, ",");
        bool known = false;
        for (unsigned op = 0; op < WEIR_OPS; op++)
            if (strlen(weir_op_name(op)) == n && !strncmp(weir_op_name(op), names, n))
                known = t->ops[op] = true;
        if (!known)
            return weir_fail(EINVAL, "fault_ops: there is no request '%.*s'", (int)n, names);
        names += n + (names[n] == ',');
    }
    return 0;
}

int weir_tier_faulty_open(struct weir_tier **out, struct weir_tier *below,
                          const struct weir_faults *faults)
{
    struct faulty_tier *t = weir_alloc(sizeof *t);
    int code = t ? 0 : weir_fail_memory();
    if (!code) {
        t->tier = (struct weir_tier){&faulty_ops,  below,          below->level,
                                     below->depth, below->lookers, below->has_names};
        t->faults = *faults;
        t->error = errno_by_name(faults->error);
        code = t->error ? choose_ops(t, faults->ops)
                        : weir_fail(EINVAL, "fault_error: '%s' is no errno name", faults->error);
    }
    if (code) {
        weir_tier_close(below);
        free(t);
        return code;
    }
    *out = &t->tier;
    return 0;
}
