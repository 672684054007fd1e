/* line.c - see line.h. */
#include "trace/line.h"

#include <string.h>

static const char unfinished[] = "<unfinished ...>";

/* ---- what stands before the call ---- */

static bool read_pid(struct weir_line *line, struct weir_span *at)
{
    struct weir_span try = *at;
    uint64_t pid;
    bool boxed = weir_span_skip(&try, "[pid");
    weir_span_blanks(&try);
    if (!weir_span_uint(&try, &pid) || pid > INT32_MAX || !pid)
        return false;
    if (try.at == try.end || *try.at != (boxed ? ']' : ' '))
        return false; /* the number is a time */
    try.at++;
    line->pid = (uint32_t)pid;
    *at = try;
    return true;
}

/* 12:34:56.789 */
static bool read_time_of_day(struct weir_line *line, struct weir_span *at)
{
    struct weir_span try = *at;
    uint64_t hours, minutes, ns;
    if (!weir_span_uint(&try, &hours) || !weir_span_skip(&try, ":") ||
        !weir_span_uint(&try, &minutes) || !weir_span_skip(&try, ":") ||
        !weir_span_seconds(&try, &ns) || hours > 23 || minutes > 59)
        return false;
    line->clock = WEIR_LINE_OF_DAY;
    line->time_ns = (hours * 60 + minutes) * 60 * 1000000000 + ns;
    *at = try;
    return true;
}

static void read_time(struct weir_line *line, struct weir_span *at)
{
    enum { YEAR_OF_SECONDS = 31536000 }; /* no two calls are further apart */
    struct weir_span try = *at;
    uint64_t ns;
    weir_span_blanks(&try);
    if (read_time_of_day(line, &try)) {
        *at = try;
        return;
    }
    if (!weir_span_seconds(&try, &ns) || try.at == try.end || *try.at != ' ')
        return;
    line->clock = ns / 1000000000 >= YEAR_OF_SECONDS ? WEIR_LINE_UNIX : WEIR_LINE_SINCE_LAST;
    line->time_ns = ns;
    *at = try;
}

/* ---- the call ---- */

/* "<0.000123>" at the very end. */
static void read_took(struct weir_line *line, struct weir_span *rest)
{
    const char *open = rest->end > rest->at && rest->end[-1] == '>'
                           ? memrchr(rest->at, '<', weir_span_size(*rest))
                           : NULL;
    if (!open)
        return;
    struct weir_span inside = {open + 1, rest->end - 1};
    uint64_t ns;
    if (!weir_span_seconds(&inside, &ns) || inside.at != inside.end)
        return;
    line->took_ns = ns;
    rest->end = open;
}

static void read_result(struct weir_line *line, struct weir_span rest)
{
    int64_t fd;
    weir_span_blanks(&rest);
    if (!weir_span_skip(&rest, "="))
        return;
    weir_span_blanks(&rest);
    line->has_result = weir_span_int(rest, &line->result);
    line->form = WEIR_LINE_CALL; /* "?" is a result that nobody saw */
    if (line->has_result)
        weir_span_fd(rest, &fd, line->result_path, sizeof line->result_path);
}

void weir_line_call(struct weir_line *line, struct weir_span rest)
{
    line->form = WEIR_LINE_STRANGE;
    line->has_result = false;
    line->result_path[0] = 0;
    line->took_ns = 0;
    while (rest.end > rest.at && rest.end[-1] == ' ')
        rest.end--;
    line->name = weir_span_until(&rest, "(");
    if (rest.at == rest.end || line->name.at == line->name.end)
        return;
    rest.at++;
    size_t size = weir_span_size(rest), mark = sizeof unfinished - 1;
    if (size >= mark && !memcmp(rest.end - mark, unfinished, mark)) {
        line->form = WEIR_LINE_BEGUN;
        line->args = (struct weir_span){rest.at, rest.end - mark};
        return;
    }
    line->args = weir_span_until(&rest, ")");
    if (rest.at == rest.end)
        return;
    rest.at++;
    read_took(line, &rest);
    read_result(line, rest);
}

void weir_line_read(struct weir_line *line, const char *text, size_t size)
{
    struct weir_span at = {text, text + size};
    *line = (struct weir_line){.form = WEIR_LINE_STRANGE};
    while (at.end > at.at && (at.end[-1] == '\r' || at.end[-1] == ' '))
        at.end--;
    weir_span_blanks(&at);
    read_pid(line, &at);
    read_time(line, &at);
    weir_span_blanks(&at);
    line->rest = at;
    if (weir_span_skip(&at, "+++ "))
        line->form = weir_span_has(at, "exited") || weir_span_has(at, "killed") ||
                             weir_span_has(at, "superseded")
                         ? WEIR_LINE_GONE
                         : WEIR_LINE_NOTHING;
    else if (at.at == at.end || weir_span_skip(&at, "--- ") || weir_span_skip(&at, "strace: "))
        line->form = WEIR_LINE_NOTHING;
    else if (weir_span_skip(&at, "<... ")) {
        line->name = weir_span_until(&at, " ");
        const char *behind = memmem(at.at, weir_span_size(at), "resumed>", 8);
        if (!behind)
            return;
        line->form = WEIR_LINE_RESUMED;
        line->rest = (struct weir_span){behind + 8, at.end};
    } else
        weir_line_call(line, at);
}
