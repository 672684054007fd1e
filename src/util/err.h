/* err.h - failures: a negative errno and one line of text, made together so that the text is
 * never missing. The text belongs to the thread; requests that complete elsewhere carry their own
 * (req.h) and hand it over when they are waited for.
 */
#ifndef WEIR_UTIL_ERR_H
#define WEIR_UTIL_ERR_H

/* Longest text: two keys of 1,024 bytes and a sentence around them. */
#define WEIR_TEXT_MAX 2560

/* Sets this thread's text and returns -code. code is a positive errno. */
int weir_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Puts "FMT: " in front of this thread's text and returns code (negative) as it is. */
int weir_fail_in(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The one text for an exhausted allocator. */
int weir_fail_memory(void);
/* Takes over a text made elsewhere; returns code (negative) as it is. */
int weir_fail_text(int code, const char *text);
/* This thread's text. */
const char *weir_fail_last(void);
/* strerror without its thread trouble: "no such file or directory". */
const char *weir_errno_text(int code);

#endif
