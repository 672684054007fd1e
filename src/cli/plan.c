/* plan.c - see plan.h. */
#include "cli/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/file.h"
#include "util/err.h"

struct weir_plan_in plan_in;

static struct weir_plan_file file; /* whose texts plan_in borrows */
static struct weir_profile profile;

const struct weir_profile *plan_profile(void)
{
    return plan_in.profile ? &profile : NULL;
}

/* ---- the plan file ---- */

/* The text, owned by the caller. */
static int load(const char *path, char **out, size_t *size)
{
    FILE *in = fopen(path, "re");
    if (!in)
        return weir_fail(errno, "cannot open the plan '%s': %s", path, weir_errno_text(-errno));
    char *text = malloc(WEIR_PLAN_FILE_BYTES_MAX + 1);
    *size = text ? fread(text, 1, WEIR_PLAN_FILE_BYTES_MAX + 1, in) : 0;
    int code = !text        ? weir_fail_memory()
               : ferror(in) ? weir_fail(errno, "cannot read the plan '%s': %s", path,
                                        weir_errno_text(-errno))
               : *size > WEIR_PLAN_FILE_BYTES_MAX
                   ? weir_fail(EFBIG, "the plan '%s' is too large to be one", path)
                   : 0;
    fclose(in);
    if (code) {
        free(text);
        return code;
    }
    *out = text;
    return 0;
}

static int read_plan(struct cli *cli, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    int code = load(path, &text, &size);
    if (code)
        return code;
    code = weir_plan_file_read(&file, text, size);
    free(text);
    if (code)
        return weir_fail_in(code, "%s", path);
    for (unsigned i = 0; i < file.count; i++)
        if (!cli_was_given(cli, file.at[i].key->opt.name))
            weir_opt_set(&file.at[i].key->opt, &plan_in, file.at[i].text); /* it was checked */
    return 0;
}

bool plan_was_told(const struct cli *cli, const char *option)
{
    for (unsigned i = 0; i < file.count; i++)
        if (!strcmp(file.at[i].key->opt.name, option))
            return true;
    return cli_was_given(cli, option);
}

/* ---- the profile ---- */

/* Sets what the command knows, was not given, and was measured. */
static bool take(struct cli *cli, const char *option, uint64_t *field, double value)
{
    bool takes = weir_opt_find(cli->command->options, option) && !cli_was_given(cli, option) &&
                 value >= 1 && value < 9e18;
    if (takes)
        *field = (uint64_t)value;
    return takes;
}

/* A plan of a whole cluster takes it for the NVMe of a node; others, for their storage. */
static int read_profile(struct cli *cli, const char *path)
{
    int code = weir_profile_load(&profile, path);
    if (code)
        return code;
    struct weir_plan_in *in = &plan_in;
    const struct weir_profile *p = &profile;
    double read = p->shards_bytes_per_s > 0 ? p->shards_bytes_per_s : p->read_bytes_per_s;
    double write = p->checkpoint_bytes_per_s > 0 ? p->checkpoint_bytes_per_s : p->write_bytes_per_s;
    bool is_node = weir_opt_find(cli->command->options, "nvme-read-rate");
    if (is_node) {
        take(cli, "nvme-read-rate", &in->nvme_read_rate, read);
        take(cli, "nvme-write-rate", &in->nvme_write_rate, write);
    } else {
        take(cli, "read-rate", &in->read_rate, read);
        take(cli, "write-rate", &in->write_rate, write);
    }
    take(cli, "latency", &in->latency_ns, p->read_latency_s_p50 * 1e9);
    take(cli, "slc-cache", &in->cache_bytes, p->cliff_at_bytes);
    take(cli, "fast-rate", &in->fast_rate, p->cliff_before_bytes_per_s);
    take(cli, "native-rate", &in->native_rate, p->cliff_after_bytes_per_s);
    if (!cli_was_given(cli, "iops") && p->random_read_iops > 0)
        in->iops = p->random_read_iops;
    return 0;
}

int plan_read(struct cli *cli)
{
    int code = plan_in.profile ? read_profile(cli, plan_in.profile) : 0;
    if (!code && plan_in.file)
        code = read_plan(cli, plan_in.file);
    return code;
}
