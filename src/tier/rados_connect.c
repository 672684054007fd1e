/* rados_connect.c - finding a cluster, and saying what is missing when there is none. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tier/rados.h"
#include "util/err.h"

/* Reads the configuration; where none is named, librados looks where every tool of Ceph does. */
static int read_conf(struct rados_tier *t, const char *conf)
{
    int code = t->lib->conf_read_file(t->cluster, conf);
    if (!code)
        return 0;
    /* Not -ENOENT: that would say that the cluster is there, and the store is not. */
    if (code == -ENOENT)
        code = -ENODEV;
    if (conf)
        return weir_fail(-code, "cannot read Ceph's configuration '%s' (conf=): %s", conf,
                         code == -ENODEV ? "there is no such file" : weir_errno_text(code));
    return weir_fail(-code,
                     "no Ceph configuration for %s: neither $CEPH_CONF nor /etc/ceph/ceph.conf can "
                     "be read; name one with conf=FILE",
                     t->label);
}

static int set_number(struct rados_tier *t, const char *option, unsigned long long value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", value);
    return t->lib->conf_set(t->cluster, option, text);
}

/* A request and the look at what became of it share the time-out. A library does not write to
 * stderr, nor make a socket for administrators. */
static int set_options(struct rados_tier *t)
{
    unsigned long long half_s = t->opts.timeout_ns / 2000000000;
    if (!half_s)
        half_s = 1;
    int code = set_number(t, "rados_osd_op_timeout", half_s);
    if (!code)
        code = set_number(t, "rados_mon_op_timeout", half_s);
    if (!code)
        code = set_number(t, "client_mount_timeout", half_s);
    if (!code)
        code = t->lib->conf_set(t->cluster, "log_to_stderr", "false");
    if (!code)
        code = t->lib->conf_set(t->cluster, "err_to_stderr", "false");
    if (!code)
        code = t->lib->conf_set(t->cluster, "admin_socket", "");
    return code ? weir_fail(-code, "librados does not take an option: %s", weir_errno_text(code))
                : 0;
}

static int fail_connect(struct rados_tier *t, int code)
{
    char place[512] = "";
    switch (code) {
    case -ENOENT:
        t->lib->conf_get(t->cluster, "keyring", place, sizeof place);
        return weir_fail(EACCES,
                         "cannot open %s: no key for client.%s in the keyring (%s); user=NAME says "
                         "who you are",
                         t->label, t->opts.user, place);
    case -EACCES:
    case -EPERM:
        t->lib->conf_get(t->cluster, "keyring", place, sizeof place);
        return weir_fail(EACCES,
                         "cannot open %s: the cluster refuses client.%s: the key in the keyring "
                         "(%s) is wrong or missing, or there is no such user (see: ceph auth get "
                         "client.%s)",
                         t->label, t->opts.user, place, t->opts.user);
    case -ETIMEDOUT:
        t->lib->conf_get(t->cluster, "mon_host", place, sizeof place);
        return weir_fail(ETIMEDOUT,
                         "cannot open %s: no monitor of the cluster answers (mon_host is '%s'); is "
                         "it running?",
                         t->label, place);
    default:
        return weir_fail(-code, "cannot open %s: cannot connect to the cluster: %s", t->label,
                         weir_errno_text(code));
    }
}

int weir_rados_connect(struct rados_tier *t, const char *conf)
{
    char user[300];
    snprintf(user, sizeof user, "client.%s", t->opts.user);
    int code = t->lib->create2(&t->cluster, "ceph", user, 0);
    if (code) {
        t->cluster = NULL;
        return weir_fail(-code, "librados cannot be used: %s", weir_errno_text(code));
    }
    code = read_conf(t, conf);
    if (!code)
        code = set_options(t);
    if (code)
        return code;
    code = t->lib->connect(t->cluster);
    if (code)
        return fail_connect(t, code);
    code = t->lib->ioctx_create(t->cluster, t->pool_name, &t->pool);
    if (code) {
        t->pool = NULL;
        if (code == -ENOENT)
            return weir_fail(ENODEV,
                             "cannot open %s: the cluster has no pool '%s' (to make one: ceph osd "
                             "pool create %s)",
                             t->label, t->pool_name, t->pool_name);
        return weir_rados_fail(t, code, "open", t->pool_name);
    }
    t->lib->ioctx_set_namespace(t->pool, t->name_space);
    /* A full pool says so, instead of letting writers wait for room. */
    t->lib->set_pool_full_try(t->pool);
    return 0;
}

void weir_rados_disconnect(struct rados_tier *t)
{
    if (t->pool)
        t->lib->ioctx_destroy(t->pool);
    if (t->cluster)
        t->lib->shutdown(t->cluster);
}
