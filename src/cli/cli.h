/* cli.h - what every command shares: the global options, the operands, the store, and the ways to
 * speak to the caller. Results go to stdout, everything else to stderr; with --json one document
 * goes to stdout and nothing else is said.
 *
 * A command answers 0, a negative errno whose text (weir_error_text()) is still to be shown, or
 * CLI_FAILED when it has shown its failures already.
 */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/opt.h"
#include "weir.h"

enum {
    CLI_FAILED = 1,
    CLI_GIVEN_MAX = 96, /* more than any command has options */
};

struct cli;

/* A command, as data: parsing, --help, the man page and the reference all come from this. */
struct command {
    const char *name;
    const char *operands;           /* as the usage line shows them */
    int operands_min, operands_max; /* max -1: any number */
    const char *summary;            /* one sentence, no full stop */
    const char *about;              /* paragraphs, with a blank line between them */
    const char *example;            /* lines a person could type */
    const char *json;               /* what --json prints */
    const struct weir_opt *options;
    void *fields; /* what the options set */
    int (*run)(struct cli *cli);
};
extern const struct command *const cli_commands[]; /* ended by NULL */
extern const struct weir_opt cli_global_options[]; /* set fields of struct cli */

struct cli {
    const char *store_url, *io;
    bool json, quiet, stats, help, version;
    const struct command *command;
    const char *group; /* of commands of two words: the first */
    const char **operands;
    int operand_count;
    const struct weir_opt *given[CLI_GIVEN_MAX]; /* the options of the command line, each once */
    int given_count;
    weir_store *store;
    json_t *doc;   /* what --json prints at the end */
    bool reported; /* the document is written already, with the failure in it */
    int status;    /* the exit code if nothing fails: that of a command that was run, or 0 */
    bool usage;    /* the failure is in how the command was called: exit 2 */
};

/* By its whole name; some have two words ("log show"), the first of which names a group. */
const struct command *cli_command_find(const char *name);
bool cli_is_in_group(const struct command *command, const char *group);
bool cli_is_group(const char *name);

/* Whether the command line has that option: what it says counts more than a file does. */
bool cli_was_given(const struct cli *cli, const char *name);
/* Fails for a wrong call; the text ends with where help is. Returns -EINVAL. */
int cli_usage(struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum cli_access {
    CLI_READ,  /* any directory will do */
    CLI_WRITE, /* it has to be a store */
    CLI_MAKE,  /* it is made if it is not one */
};
/* Opens cli->store. *made (may be NULL): whether it was made just now. grace_s 0: the default. */
int cli_store_open(struct cli *cli, enum cli_access access, uint64_t grace_s, bool *made);

/* A result line on stdout; not with --quiet or --json. */
void cli_say(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Hands what was said to the reader. 0 or -errno: the first failure, also if it was earlier. */
int cli_flush(void);
/* A remark on stderr; not with --quiet or --json. */
void cli_note(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "weir: TEXT" on stderr; not with --json, where failures are in the document. */
void cli_error(const struct cli *cli, const char *text);
/* A copy that cannot garble a terminal, owned by the caller: control characters, and all that is
 * not ASCII if the text is not UTF-8, become \xNN. NULL: out of memory. */
char *cli_printable(const char *text);
/* {"code": "ENOENT", "text": "…"} */
json_t *cli_error_json(int code, const char *text);
/* A JSON string of any bytes: what is not UTF-8 is written as \xNN. */
json_t *cli_text_json(const char *text);

#endif
