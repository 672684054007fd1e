/* format.h - how figures look to people. */
#ifndef WEIR_CLI_FORMAT_H
#define WEIR_CLI_FORMAT_H

#include <stdint.h>

#include "weir.h"

enum { FORMAT_TIME_BYTES = 40 };

/* Columns a UTF-8 text takes: one for each character. */
int format_width(const char *text);
/* Spaces that follow text in a column of this width. */
int format_padding(const char *text, int width);
/* "2025-11-15 04:11:22", local time. */
const char *format_time(char out[FORMAT_TIME_BYTES], uint64_t time_ns);
/* "2025-11-15T04:11:22.123456789Z" */
const char *format_time_json(char out[FORMAT_TIME_BYTES], uint64_t time_ns);
/* "1 d", "90 s", "36 h": the largest unit that says it exactly. */
const char *format_duration(char out[FORMAT_TIME_BYTES], uint64_t s);
/* "1.24 s", "45 ms", "2:05 min": how long something took. */
const char *format_span(char out[FORMAT_TIME_BYTES], uint64_t ns);
/* "sealed" or "foreign" */
const char *format_kind(weir_kind kind);
/* As much of FORMAT_BAR_COLUMNS in '#' as value is of most; returns the columns that are left. */
enum { FORMAT_BAR_COLUMNS = 40 };
int format_bar(double value, double most);
/* A line of a histogram of sizes: "from 4.0 KiB  ####  12". */
void format_bin(uint64_t from_bytes, uint64_t count, uint64_t most);
/* One line of a two-column table. */
void format_field(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints text from column `at`, later lines from column `indent`, 80 columns wide. */
void format_wrap(const char *text, int at, int indent);

#endif
