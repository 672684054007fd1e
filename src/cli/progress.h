/* progress.h - the one progress bar: on a terminal, after the first second, at most ten times a
 * second. There is one a process; any thread may report. Whoever prints something else while it
 * may be showing does so between progress_pause() and progress_resume().
 */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

/* doing: "storing", …; bytes_total 0: not known; items_total 0: not known either, and they are what
 * is counted; raw: the bytes themselves go to stdout. */
void progress_start(const struct cli *cli, const char *doing, uint64_t bytes_total,
                    size_t items_total, bool raw);
void progress_bytes(uint64_t more);
void progress_item(void);
void progress_pause(void);
void progress_resume(void);
void progress_end(void);

#endif
