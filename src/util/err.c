/* err.c - this thread's last failure. */
#include "util/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last[WEIR_TEXT_MAX];

int weir_fail(int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(last, sizeof last, fmt, args);
    va_end(args);
    return -code;
}

int weir_fail_in(int code, const char *fmt, ...)
{
    char old[WEIR_TEXT_MAX];
    memcpy(old, last, sizeof old);
    va_list args;
    va_start(args, fmt);
    int used = vsnprintf(last, sizeof last, fmt, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof last)
        snprintf(last + used, sizeof last - (size_t)used, ": %s", old);
    return code;
}

int weir_fail_memory(void)
{
    return weir_fail(ENOMEM, "out of memory");
}

int weir_fail_text(int code, const char *text)
{
    if (text != last)
        snprintf(last, sizeof last, "%s", text);
    return code;
}

const char *weir_fail_last(void)
{
    return last;
}

const char *weir_errno_text(int code)
{
    const char *text = strerrordesc_np(code < 0 ? -code : code);
    return text ? text : "unknown error";
}
