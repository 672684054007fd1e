/* chart_value.c - a value with its unit, as people write it: in charts and in texts beside them. */
#include <math.h>

#include "cli/chart.h"

const char *chart_value(char out[CHART_VALUE_BYTES], enum chart_unit unit, double value)
{
    static const char *const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    static const char *const thousands[] = {"", " k", " M", " G", " T", " P", " E"};
    const char *sign = value < 0 ? "-" : "";
    double size = fabs(value);
    int i = 0;
    switch (unit) {
    case CHART_BYTES:
    case CHART_BYTES_PER_S:
        for (; size >= 1024 && i < 6; i++)
            size /= 1024;
        snprintf(out, CHART_VALUE_BYTES, "%s%.*f %s%s", sign,
                 size >= 99.95 || size == floor(size) ? 0 : 1, size, bytes[i],
                 unit == CHART_BYTES ? "" : "/s");
        break;
    case CHART_SECONDS:
        if (size == 0)
            snprintf(out, CHART_VALUE_BYTES, "0");
        else if (size < 1)
            snprintf(out, CHART_VALUE_BYTES, "%s%.3g %s", sign,
                     size < 1e-3 ? size * 1e6 : size * 1e3, size < 1e-3 ? "µs" : "ms");
        else
            snprintf(out, CHART_VALUE_BYTES, "%s%.3g %s", sign,
                     size < 120     ? size
                     : size < 7200  ? size / 60
                     : size < 86400 ? size / 3600
                                    : size / 86400,
                     size < 120     ? "s"
                     : size < 7200  ? "min"
                     : size < 86400 ? "h"
                                    : "d");
        break;
    case CHART_SHARE:
        snprintf(out, CHART_VALUE_BYTES, "%s%.3g %%", sign, 100 * size);
        break;
    default:
        for (; size >= (i ? 1000 : 10000) && i < 6; i++)
            size /= 1000;
        snprintf(out, CHART_VALUE_BYTES, "%s%s%.4g%s", sign, unit == CHART_DOLLARS ? "$" : "", size,
                 thousands[i]);
    }
    return out;
}
