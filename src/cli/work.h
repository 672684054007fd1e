/* work.h - the same thing done to each of many objects, several at once, with the progress bar, the
 * result lines, the errors, and the document of --json. Results are shown in the order of the
 * items, whichever is done first. A failure does not keep the others from being tried, unless it
 * is one that all would share.
 */
#ifndef WEIR_CLI_WORK_H
#define WEIR_CLI_WORK_H

#include "cli/cli.h"
#include "cli/items.h"

enum { WORK_JOBS_MAX = 32 }; /* as many puts as a store's default pool admits */

struct work {
    const char *doing, *done; /* "storing", "stored" */
    enum cli_access access;
    uint64_t jobs;
    bool summary; /* ends with a line of totals */
    bool raw;     /* bytes of objects go to stdout: jobs is 1, and there is no document */
    /* Says what there is to do. The store is open, unless it may have to be made: that is not done
     * for something that is not there. */
    int (*collect)(struct cli *cli, struct items *items);
    /* 0 (item->state is ITEM_DONE unless it sets another) or -errno. Runs on any thread. */
    int (*one)(struct cli *cli, struct item *item);
    /* The result line of an item that did not fail; key_width is for work_say(). NULL: there
     * are no such lines. */
    void (*show)(const struct cli *cli, const struct item *item, int key_width);
};

/* Opens the store, collects, works. 0, CLI_FAILED, or -errno with a text; -EINTR with one that says
 * how much was done. */
int work_run(struct cli *cli, const struct work *work);

/* The usual result line: "KEY  SIZE  WHATMORE", in columns if there are several. */
void work_say(const struct cli *cli, const struct item *item, int key_width, const char *what,
              const char *more);

/* The option of every command that works so. */
#define WORK_OPT_JOBS(at, what)                                                                    \
    {                                                                                              \
        "jobs", 'j', WEIR_OPT_NUMBER, at, "4", "N", what " at once", 1, WORK_JOBS_MAX              \
    }

#endif
