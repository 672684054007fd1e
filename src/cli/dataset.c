/* dataset.c - see dataset.h. */
#include "cli/dataset.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/proof.h"
#include "util/err.h"

/* "seq_len=1024&eot=0"; the caller frees it. NULL: none were given, or no memory. */
static char *join_options(const struct weir_texts *texts)
{
    size_t size = 1;
    for (size_t i = 0; i < texts->count; i++)
        size += 3 * strlen(texts->text[i]) + 1;
    char *out = texts->count ? malloc(size) : NULL, *to = out;
    for (size_t i = 0; out && i < texts->count; i++) {
        if (i)
            *to++ = '&';
        for (const char *at = texts->text[i]; *at; at++)
            if (*at == '%' || *at == '&')
                to += sprintf(to, "%%%02x", *at);
            else
                *to++ = *at;
    }
    if (out)
        *to = 0;
    return out;
}

struct indexing {
    const struct cli *cli;
    bool started, listing;
};

static int on_listed(void *arg)
{
    struct indexing *indexing = arg;
    if (!indexing->listing)
        progress_start(indexing->cli, "listing", 0, 0, false);
    indexing->listing = true;
    progress_item();
    return 0;
}

static int on_progress(void *arg, uint64_t more, uint64_t total)
{
    struct indexing *indexing = arg;
    if (!indexing->started && indexing->listing)
        progress_end();
    if (!indexing->started)
        progress_start(indexing->cli, "indexing", total, 0, false);
    indexing->started = true;
    progress_bytes(more);
    return 0;
}

int dataset_signed(weir_data_options *open, char **pem, const struct signed_opts *opts)
{
    size_t size;
    int code = opts->key ? proof_key_read(pem, &size, opts->key) : 0;
    open->verify_key = *pem;
    open->proof = opts->manifest;
    return code;
}

int dataset_open(struct cli *cli, weir_data **out, const char *url, const struct dataset_opts *opts,
                 uint32_t flags)
{
    struct indexing indexing = {.cli = cli};
    weir_data_options open;
    for (size_t i = 0; i < opts->options.count; i++)
        if (!strchr(opts->options.text[i], '='))
            return cli_usage(cli, "--option: '%s' is not NAME=VALUE", opts->options.text[i]);
    char *options = join_options(&opts->options), *pem = NULL;
    int code = !options && opts->options.count ? weir_fail_memory() : 0;
    weir_data_options_init(&open);
    if (!code)
        code = dataset_signed(&open, &pem, &opts->is_signed);
    if (code) {
        free(options);
        return code;
    }
    open.format = opts->format;
    open.cache = opts->cache;
    open.options = options;
    open.sample_bytes_max = opts->memory;
    open.threads = (uint32_t)opts->jobs;
    open.flags = flags;
    open.listed = on_listed;
    open.progress = on_progress;
    open.progress_arg = &indexing;
    code = weir_data_open(out, url, &open);
    if (indexing.started || indexing.listing)
        progress_end();
    free(options);
    free(pem);
    return code;
}

const char *dataset_kind_name(weir_field_kind kind)
{
    static const char *const names[] = {"bytes", "text", "json", "array", "none"};
    return names[kind];
}

const char *dataset_type(char *out, size_t size, const weir_field *field)
{
    if (field->kind != WEIR_FIELD_ARRAY) {
        snprintf(out, size, "%s", dataset_kind_name(field->kind));
        return out;
    }
    int used = snprintf(out, size, "%s", field->dtype);
    for (uint32_t i = 0; i < field->ndim && used > 0 && (size_t)used < size; i++)
        used += snprintf(out + used, size - (size_t)used, "%s%llu%s", i ? "x" : " [",
                         (unsigned long long)field->shape[i], i + 1 == field->ndim ? "]" : "");
    return out;
}

char *dataset_field_name(const weir_field *field)
{
    char *copy = strndup(field->name, field->name_size);
    char *shown = copy ? cli_printable(copy) : NULL;
    free(copy);
    return shown;
}

int dataset_number(struct cli *cli, uint64_t *out, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno)
        return cli_usage(cli, "'%s' is no number of a sample: they count from 0", text);
    *out = number;
    return 0;
}
