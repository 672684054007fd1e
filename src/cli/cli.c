/* cli.c - see cli.h. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/url.h"

#define STORE_DEFAULT "./weir-store"

const struct command *cli_command_find(const char *name)
{
    for (const struct command *const *c = cli_commands; *c; c++)
        if (!strcmp((*c)->name, name))
            return *c;
    return NULL;
}

bool cli_is_in_group(const struct command *command, const char *group)
{
    size_t size = strlen(group);
    return !strncmp(command->name, group, size) && command->name[size] == ' ';
}

bool cli_is_group(const char *name)
{
    for (const struct command *const *c = cli_commands; *c; c++)
        if (cli_is_in_group(*c, name))
            return true;
    return false;
}

bool cli_was_given(const struct cli *cli, const char *name)
{
    for (int i = 0; i < cli->given_count; i++)
        if (!strcmp(cli->given[i]->name, name))
            return true;
    return false;
}

/* ---- speaking ---- */

char *cli_printable(const char *text)
{
    json_t *probe = json_string(text);
    bool utf8 = probe != NULL;
    json_decref(probe);
    char *copy = malloc(4 * strlen(text) + 1), *out = copy;
    if (!copy)
        return NULL;
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        bool c1 = s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0;
        if (*s < 0x20 || *s == 0x7f || c1 || (*s >= 0x80 && !utf8))
            out += sprintf(out, "\\x%02x", *s);
        else
            *out++ = (char)*s;
        if (c1)
            out += sprintf(out, "\\x%02x", *++s);
    }
    *out = 0;
    return copy;
}

void cli_say(const struct cli *cli, const char *fmt, ...)
{
    if (cli->quiet || cli->json)
        return;
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
}

int cli_flush(void)
{
    static int failed;
    errno = 0;
    bool bad = fflush(stdout) != 0 || ferror(stdout);
    if (bad && !failed)
        failed = errno ? -errno : -EIO;
    return failed;
}

void cli_note(const struct cli *cli, const char *fmt, ...)
{
    if (cli->quiet || cli->json)
        return;
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

void cli_error(const struct cli *cli, const char *text)
{
    if (cli->json)
        return;
    char *line = cli_printable(text);
    cli_flush(); /* what was said before comes before, also in a file that takes both */
    fprintf(stderr, "weir: %s\n", line ? line : text);
    free(line);
}

json_t *cli_text_json(const char *text)
{
    json_t *string = json_string(text);
    if (string)
        return string;
    char *copy = cli_printable(text);
    string = json_string(copy ? copy : "");
    free(copy);
    return string;
}

json_t *cli_error_json(int code, const char *text)
{
    const char *name = code == -WEIR_EUNKNOWN ? "EUNKNOWN" : strerrorname_np(-code);
    return json_pack("{s:s, s:o}", "code", name ? name : "EIO", "text", cli_text_json(text));
}

int cli_usage(struct cli *cli, const char *fmt, ...)
{
    char text[WEIR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli->usage = true;
    const char *name = cli->command ? cli->command->name : cli->group ? cli->group : "";
    return weir_fail(EINVAL, "%s (see: weir %s%s--help)", text, name, *name ? " " : "");
}

/* ---- the store ---- */

/* "?stats=1" added to a URL. A plain path, whose '?' and '%' are literal, becomes a URL first. */
static char *with_stats(const char *text)
{
    struct weir_url url;
    char *out = NULL;
    size_t size;
    if (weir_url_parse(&url, text))
        return strdup(text); /* opening it says what is wrong */
    bool plain = url.path == url.text;
    weir_url_free(&url);
    FILE *stream = open_memstream(&out, &size);
    if (!stream)
        return NULL;
    if (plain)
        fputs("file://", stream);
    for (const char *s = text; *s; s++) {
        if (plain && strchr("?%", *s))
            fprintf(stream, "%%%02x", *s);
        else
            fputc(*s, stream);
    }
    fputs(!plain && strchr(text, '?') ? "&stats=1" : "?stats=1", stream);
    if (fclose(stream)) {
        free(out);
        return NULL;
    }
    return out;
}

static const char *chosen_store(const struct cli *cli)
{
    const char *env = getenv("WEIR_STORE");
    return cli->store_url ? cli->store_url : env && *env ? env : STORE_DEFAULT;
}

/* Whether cli->store is a store, and not a plain directory. */
static int is_store(struct cli *cli)
{
    weir_store_info info;
    int code = weir_store_info_get(cli->store, &info);
    return code ? code : info.uuid[0] != 0;
}

static int open_any(struct cli *cli, const char *url, enum cli_access access, uint64_t grace_s,
                    bool *made)
{
    weir_store_options opts;
    weir_store_options_init(&opts);
    opts.io = cli->io;
    opts.grace_s = grace_s;
    int code = weir_store_open(&cli->store, url, &opts);
    if (code == -ENOENT && access != CLI_MAKE)
        weir_fail(ENOENT, "%s (weir init or weir put makes one; --store or $WEIR_STORE names it)",
                  strdupa(weir_error_text()));
    if (code && (code != -ENOENT || access != CLI_MAKE))
        return code;
    code = code ? 0 : is_store(cli);
    if (code || access == CLI_READ)
        return code < 0 ? code : 0;
    if (access == CLI_WRITE)
        return weir_fail(EROFS, "'%s' is a plain directory, not a store: weir init makes it one",
                         url);
    weir_store_close(cli->store);
    cli->store = NULL;
    opts.flags = WEIR_STORE_CREATE;
    *made = true;
    return weir_store_open(&cli->store, url, &opts);
}

int cli_store_open(struct cli *cli, enum cli_access access, uint64_t grace_s, bool *made)
{
    bool made_it = false;
    const char *chosen = chosen_store(cli);
    char *url = cli->stats ? with_stats(chosen) : strdup(chosen);
    if (!url)
        return weir_fail_memory();
    int code = open_any(cli, url, access, grace_s, &made_it);
    free(url);
    if (!code && made_it)
        cli_note(cli, "made store %s", chosen);
    if (!code && made)
        *made = made_it;
    return code;
}
