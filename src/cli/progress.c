/* progress.c - see progress.h.
 *
 *   storing  [==============>               ]  47%  1.2 GiB of 2.6 GiB  1.1 GiB/s  0:01 left  3/12
 *   collecting  1742 files  0:03
 */
#include "cli/progress.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/sys.h"

#define NS_PER_S 1000000000ull

enum {
    DRAW_NS = 100000000,
    WIDTH_DEFAULT = 80,
    WIDTH_MAX = 120,
    BAR_MIN = 10, /* narrower is no help */
    BAR_MAX = 30,
    RATE_MEMORY_S = 3, /* the shown rate follows the real one in about this time */
};

static struct {
    pthread_mutex_t lock;
    bool on, shown;
    const char *doing;
    uint64_t bytes_total;
    size_t items_total;
    atomic_uint_fast64_t bytes;
    atomic_size_t items;
    atomic_uint_fast64_t next_ns; /* when to draw again */
    uint64_t started_ns, drawn_ns, drawn_bytes;
    double rate; /* bytes a second */
} bar = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void)
{
    return weir_sys->now_ns(WEIR_CLOCK_MONO);
}

static size_t terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
        return WIDTH_DEFAULT;
    return size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
}

static void hide(void)
{
    if (bar.shown)
        fputs("\r\033[K", stderr);
    bar.shown = false;
}

static size_t append(char *line, size_t size, size_t used, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static size_t append(char *line, size_t size, size_t used, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line + used, size - used, fmt, args);
    va_end(args);
    used += n > 0 ? (size_t)n : 0;
    return used < size ? used : size - 1;
}

/* Everything but the bar itself: percent, bytes, rate, time left, objects. */
static size_t figures(char *out, size_t size, uint64_t bytes, uint64_t now)
{
    char done[32], total[32], rate[32];
    size_t used = 0;
    weir_format_size(done, sizeof done, bytes);
    weir_format_size(total, sizeof total, bar.bytes_total);
    weir_format_size(rate, sizeof rate, (uint64_t)bar.rate);
    if (bar.bytes_total)
        used = append(out, size, used, "  %3.0f%%  %s of %s  %s/s",
                      100.0 * (double)bytes / (double)bar.bytes_total, done, total, rate);
    else if (bar.items_total)
        used = append(out, size, used, "  %s  %s/s", done, rate);
    else
        used = append(out, size, used, "  %zu files", (size_t)bar.items);
    uint64_t s = (now - bar.started_ns) / NS_PER_S;
    if (bar.bytes_total && bar.rate >= 1)
        s = (uint64_t)((double)(bar.bytes_total - bytes) / bar.rate + 0.5);
    used = append(out, size, used, "  ");
    if (s >= 3600)
        used = append(out, size, used, "%llu:%02llu:%02llu", (unsigned long long)s / 3600,
                      (unsigned long long)s / 60 % 60, (unsigned long long)s % 60);
    else
        used = append(out, size, used, "%llu:%02llu", (unsigned long long)s / 60,
                      (unsigned long long)s % 60);
    if (bar.bytes_total)
        used = append(out, size, used, " left");
    if (bar.items_total > 1)
        used = append(out, size, used, "  %zu/%zu", (size_t)bar.items, bar.items_total);
    return used;
}

static void measure(uint64_t bytes, uint64_t now)
{
    double dt = (double)(now - bar.drawn_ns) / NS_PER_S;
    double latest = dt > 0 ? (double)(bytes - bar.drawn_bytes) / dt : bar.rate;
    double weight = bar.drawn_bytes ? dt / (dt + RATE_MEMORY_S) : 1;
    bar.rate += weight * (latest - bar.rate);
    bar.drawn_ns = now;
    bar.drawn_bytes = bytes;
}

static void draw(uint64_t now)
{
    char text[WIDTH_MAX + 1], line[2 * WIDTH_MAX + 2];
    uint64_t bytes = bar.bytes;
    if (bar.bytes_total && bytes > bar.bytes_total)
        bytes = bar.bytes_total; /* a file that grew */
    measure(bytes, now);
    size_t width = terminal_width() - 1; /* the last column makes some terminals wrap */
    size_t room = figures(text, sizeof text, bytes, now) + strlen(bar.doing) + 4;
    size_t used = append(line, sizeof line, 0, "%s", bar.doing);
    if (bar.bytes_total && room + BAR_MIN <= width) {
        size_t cells = width - room < BAR_MAX ? width - room : BAR_MAX;
        size_t full = (size_t)((double)bytes / (double)bar.bytes_total * (double)cells);
        used = append(line, sizeof line, used, "  [");
        for (size_t i = 0; i < cells; i++)
            used = append(line, sizeof line, used, i < full ? "=" : i == full ? ">" : " ");
        used = append(line, sizeof line, used, "]");
    }
    append(line, sizeof line, used, "%s", text);
    fprintf(stderr, "\r%.*s\033[K", (int)width, line);
    bar.shown = true;
}

void progress_start(const struct cli *cli, const char *doing, uint64_t bytes_total,
                    size_t items_total, bool raw)
{
    bar.doing = doing;
    bar.bytes_total = bytes_total;
    bar.items_total = items_total;
    bar.bytes = bar.drawn_bytes = 0; /* of what was done before: an index */
    bar.items = 0;
    bar.rate = 0;
    bar.started_ns = bar.drawn_ns = now_ns();
    bar.next_ns = bar.started_ns + NS_PER_S;
    bar.on = !cli->json && !cli->quiet && isatty(STDERR_FILENO);
    if (raw && isatty(STDOUT_FILENO))
        bar.on = false;
}

void progress_bytes(uint64_t more)
{
    bar.bytes += more;
    if (!bar.on)
        return;
    uint64_t now = now_ns();
    if (now < bar.next_ns || pthread_mutex_trylock(&bar.lock))
        return;
    bar.next_ns = now + DRAW_NS;
    draw(now);
    pthread_mutex_unlock(&bar.lock);
}

void progress_item(void)
{
    if (++bar.items < bar.items_total || !bar.items_total)
        progress_bytes(0);
}

void progress_pause(void)
{
    pthread_mutex_lock(&bar.lock);
    hide();
}

void progress_resume(void)
{
    cli_flush(); /* whoever reads along sees each result when it is there */
    pthread_mutex_unlock(&bar.lock);
}

void progress_end(void)
{
    progress_pause();
    bar.on = false;
    progress_resume();
}
