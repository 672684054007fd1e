/* rados_op.c - one object, one answer: looking at heads, making and removing them. Any thread; each
 * call waits for its answer, as long as the time-out of the client lets it.
 */
#include <errno.h>
#include <string.h>

#include "tier/rados.h"
#include "util/bytes.h"
#include "util/err.h"
#include "util/sys.h"

/* The attribute of a head, little-endian: magic, kind, nonce, time, size, size of a part. */
enum { ATTR_BYTES = 48, ATTR_MAGIC = 0x314f5257, KIND_WHOLE = 0, KIND_PARTS = 1 };
enum { AT_KIND = 4, AT_NONCE = 8, AT_TIME = 24, AT_SIZE = 32, AT_PART = 40 };

int weir_rados_fail(struct rados_tier *t, int answer, const char *what, const char *name)
{
    unsigned long long wait_s = t->opts.timeout_ns / 1000000000;
    switch (answer) {
    case -ETIMEDOUT:
        return weir_fail(ETIMEDOUT,
                         "cannot %s '%s' in %s: the cluster did not answer within %llu s (are "
                         "enough OSDs up? see: ceph -s; or raise timeout=)",
                         what, name, t->label, wait_s);
    case -ENOSPC:
        return weir_fail(ENOSPC, "cannot %s '%s': %s is full (see: ceph df)", what, name, t->label);
    case -EDQUOT:
        return weir_fail(EDQUOT,
                         "cannot %s '%s': pool '%s' has reached its quota (see: ceph osd pool "
                         "get-quota %s)",
                         what, name, t->pool_name, t->pool_name);
    case -EPERM:
    case -EACCES:
        return weir_fail(EACCES,
                         "cannot %s '%s': client.%s may not do that in pool '%s' (it needs: mon "
                         "'allow r', osd 'allow rwx pool=%s')",
                         what, name, t->opts.user, t->pool_name, t->pool_name);
    case -EOPNOTSUPP:
        return weir_fail(ENOTSUP,
                         "cannot %s '%s': pool '%s' does not support it (an erasure-coded pool "
                         "needs: ceph osd pool set %s allow_ec_overwrites true)",
                         what, name, t->pool_name, t->pool_name);
    case -ESHUTDOWN:
        return weir_fail(EIO,
                         "cannot %s '%s': the cluster has this client on its blocklist (see: ceph "
                         "osd blocklist ls); open the store again",
                         what, name);
    case -ENOENT:
        return weir_fail(ENOENT, "'%s' is not in %s", name, t->label);
    default:
        return weir_fail(-answer, "cannot %s '%s' in %s: %s", what, name, t->label,
                         weir_errno_text(answer));
    }
}

static int settle(struct rados_tier *t, rados_completion_t done, int code, uint64_t *version)
{
    if (!code) {
        t->lib->aio_wait_for_complete(done);
        code = t->lib->aio_get_return_value(done);
        if (version)
            *version = t->lib->aio_get_version(done);
    }
    t->lib->aio_release(done);
    return code;
}

int weir_rados_read_now(struct rados_tier *t, rados_read_op_t op, const char *name,
                        uint64_t *version)
{
    rados_completion_t done;
    int code = t->lib->aio_create_completion2(NULL, NULL, &done);
    if (!code)
        code = settle(t, done, t->lib->aio_read_op_operate(op, t->pool, done, name, 0), version);
    t->lib->release_read_op(op);
    return code;
}

int weir_rados_write_now(struct rados_tier *t, rados_write_op_t op, const char *name,
                         uint64_t *version)
{
    rados_completion_t done;
    int code = t->lib->aio_create_completion2(NULL, NULL, &done);
    if (!code)
        code = settle(t, done,
                      t->lib->aio_write_op_operate(op, t->pool, done, name, NULL,
                                                   LIBRADOS_OPERATION_FULL_TRY),
                      version);
    t->lib->release_write_op(op);
    return code < 0 ? code : 0;
}

static void attr_encode(uint8_t attr[ATTR_BYTES], const struct head *head)
{
    weir_store_le(attr, ATTR_MAGIC, 4);
    weir_store_le(attr + AT_KIND, head->in_parts ? KIND_PARTS : KIND_WHOLE, 4);
    memcpy(attr + AT_NONCE, head->nonce, WEIR_NONCE_BYTES);
    weir_store_le(attr + AT_TIME, (uint64_t)head->time_ns, 8);
    weir_store_le(attr + AT_SIZE, head->size, 8);
    weir_store_le(attr + AT_PART, head->part_bytes, 8);
}

/* head has what the object itself says. An object of somebody else has no such attribute. */
static int attr_decode(struct rados_tier *t, const char *name, struct head *head,
                       const uint8_t *attr, size_t size)
{
    uint64_t kind = size == ATTR_BYTES ? weir_load_le(attr + AT_KIND, 4) : 0;
    if (size != ATTR_BYTES || weir_load_le(attr, 4) != ATTR_MAGIC || kind > KIND_PARTS)
        return weir_fail(EPROTO, "'%s' in %s has an attribute '%s' that this Weir does not know",
                         name, t->label, WEIR_RADOS_ATTR);
    head->is_ours = true;
    memcpy(head->nonce, attr + AT_NONCE, WEIR_NONCE_BYTES);
    head->time_ns = (int64_t)weir_load_le(attr + AT_TIME, 8);
    if (kind == KIND_WHOLE)
        return 0;
    head->in_parts = true;
    head->size = weir_load_le(attr + AT_SIZE, 8);
    head->part_bytes = weir_load_le(attr + AT_PART, 8);
    if (head->part_bytes < RADOS_INLINE_BYTES || head->part_bytes > RADOS_PART_BYTES_MAX ||
        head->size / head->part_bytes >= RADOS_PARTS_MAX)
        return weir_fail(EPROTO, "'%s' in %s is damaged: it names parts of %llu bytes", name,
                         t->label, (unsigned long long)head->part_bytes);
    return 0;
}

static int attrs_decode(struct rados_tier *t, const char *name, struct head *head,
                        rados_xattrs_iter_t attrs)
{
    const char *key, *value;
    size_t size;
    while (!t->lib->getxattrs_next(attrs, &key, &value, &size) && key) {
        if (!strcmp(key, WEIR_RADOS_ATTR))
            return attr_decode(t, name, head, (const uint8_t *)value, size);
    }
    return 0;
}

int weir_rados_look(struct rados_tier *t, const char *name, struct head *head, void *buf,
                    size_t size)
{
    rados_xattrs_iter_t attrs = NULL;
    time_t seconds = 0;
    size_t got = 0;
    int stat_code = 0, attrs_code = 0, read_code = 0;
    *head = (struct head){0};
    rados_read_op_t op = t->lib->create_read_op();
    t->lib->read_op_stat(op, &head->size, &seconds, &stat_code);
    t->lib->read_op_getxattrs(op, &attrs, &attrs_code);
    if (size)
        t->lib->read_op_read(op, 0, size, buf, &got, &read_code);
    int code = weir_rados_read_now(t, op, name, &head->version);
    if (code >= 0)
        code = stat_code ? stat_code : attrs_code ? attrs_code : read_code < 0 ? read_code : 0;
    head->time_ns = (int64_t)seconds * 1000000000;
    if (code)
        code = weir_rados_fail(t, code, "look at", name);
    else
        code = attrs_decode(t, name, head, attrs);
    if (attrs)
        t->lib->getxattrs_end(attrs);
    return code;
}

/* Answers that are given before anything is done. After others (a time-out, a client that was shut
 * out while its request was under way) it may have been done. */
static bool is_refusal(int code)
{
    return code == -ENOSPC || code == -EDQUOT || code == -EPERM || code == -EACCES ||
           code == -EOPNOTSUPP || code == -EINVAL || code == -E2BIG || code == -EFBIG ||
           code == -ENAMETOOLONG || code == -ENOMEM;
}

/* Did our exclusive create happen, although it was answered so? Its nonce tells. */
static int head_whose(struct rados_tier *t, const char *name, struct head *head, int answer,
                      enum weir_doubt *doubt)
{
    struct head there;
    int code = weir_rados_look(t, name, &there, NULL, 0);
    if (!code && there.is_ours && !memcmp(there.nonce, head->nonce, WEIR_NONCE_BYTES)) {
        head->version = there.version;
        return 0;
    }
    if (answer == -EEXIST)
        return weir_fail(EEXIST, "'%s' exists already in %s", name, t->label);
    /* The request may still be on its way. */
    *doubt = WEIR_DOUBT_LOST;
    return weir_rados_fail(t, answer, "make", name);
}

int weir_rados_head_make(struct rados_tier *t, const char *name, struct head *head,
                         const void *data, size_t size, enum weir_doubt *doubt)
{
    uint8_t attr[ATTR_BYTES];
    int code = weir_sys->random(head->nonce, head->in_parts ? 0 : sizeof head->nonce);
    if (code)
        return weir_fail(-code, "no random bytes: %s", weir_errno_text(code));
    head->is_ours = true;
    head->time_ns = weir_rados_now(t);
    attr_encode(attr, head);
    rados_write_op_t op = t->lib->create_write_op();
    t->lib->write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    if (size)
        t->lib->write_op_write_full(op, data, size);
    t->lib->write_op_setxattr(op, WEIR_RADOS_ATTR, (const char *)attr, sizeof attr);
    code = weir_rados_write_now(t, op, name, &head->version);
    if (code && !is_refusal(code))
        return head_whose(t, name, head, code, doubt);
    return code ? weir_rados_fail(t, code, "make", name) : 0;
}

int weir_rados_head_drop(struct rados_tier *t, const char *name, const struct head *head,
                         enum weir_doubt *doubt)
{
    rados_write_op_t op = t->lib->create_write_op();
    t->lib->write_op_assert_version(op, head->version);
    t->lib->write_op_remove(op);
    int code = weir_rados_write_now(t, op, name, NULL);
    if (code == -ERANGE || code == -EOVERFLOW) {
        struct head there; /* gone, or another one */
        code = weir_rados_look(t, name, &there, NULL, 0);
        return code ? code : weir_fail(ESTALE, "'%s' has changed meanwhile", name);
    }
    if (code && code != -ENOENT && !is_refusal(code))
        *doubt = WEIR_DOUBT_LOST;
    return code ? weir_rados_fail(t, code, "remove", name) : 0;
}

/* ---- parts ---- */

static void owner_decode(struct part_owner *owner, const char *key, const char *value, size_t size)
{
    if (!strcmp(key, WEIR_RADOS_STATE)) {
        owner->is_done = size == strlen(WEIR_RADOS_DONE) && !memcmp(value, WEIR_RADOS_DONE, size);
    } else if (!strcmp(key, WEIR_RADOS_OWNER) && size >= 8 && size - 8 < sizeof owner->name) {
        owner->time_ns = (int64_t)weir_load_le((const uint8_t *)value, 8);
        memcpy(owner->name, value + 8, size - 8);
        owner->name[size - 8] = 0;
    }
}

int weir_rados_part_owner(struct rados_tier *t, const char *part, struct part_owner *out)
{
    rados_xattrs_iter_t attrs = NULL;
    const char *key, *value;
    size_t size;
    int attrs_code = 0;
    rados_read_op_t op = t->lib->create_read_op();
    t->lib->read_op_getxattrs(op, &attrs, &attrs_code);
    int code = weir_rados_read_now(t, op, part, NULL);
    if (code >= 0)
        code = attrs_code;
    *out = (struct part_owner){0};
    while (!code && !t->lib->getxattrs_next(attrs, &key, &value, &size) && key)
        owner_decode(out, key, value, size);
    if (attrs)
        t->lib->getxattrs_end(attrs);
    return code;
}
