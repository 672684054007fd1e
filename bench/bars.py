"""Bars on a logarithmic axis, for the benchmarks' pages, as SVG."""
import math

WIDE, LEFT, SIDE, TOP, ROW, FLOOR = 700, 250, 60, 14, 22, 46


def picture(rows, caption, low):
    """Rows are (label, value, colour); `low` is where the axis begins."""
    high = TOP + ROW * len(rows)
    top = max(value for _, value, _ in rows)
    decades = max(1, math.ceil(math.log10(top / low)))

    def x(value):
        return LEFT + math.log10(max(value, low) / low) / decades * (WIDE - LEFT - SIDE)

    grid = "".join(f'<line x1="{x(low * 10 ** i):.1f}" y1="{TOP}" x2="{x(low * 10 ** i):.1f}" '
                   f'y2="{high}" stroke="#ddd"/><text x="{x(low * 10 ** i):.1f}" y="{high + 16}" '
                   f'text-anchor="middle">{low * 10 ** i:g}</text>' for i in range(decades + 1))
    bars = "".join(f'<text x="{LEFT - 8}" y="{TOP + ROW * i + 15}" text-anchor="end">{label}</text>'
                   f'<rect x="{LEFT}" y="{TOP + ROW * i + 4}" width="{x(value) - LEFT:.1f}" '
                   f'height="{ROW - 8}" fill="{colour}"/><text x="{x(value) + 5:.1f}" '
                   f'y="{TOP + ROW * i + 15}">{value:.3g}</text>'
                   for i, (label, value, colour) in enumerate(rows))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high + FLOOR}" '
            'font-family="sans-serif" font-size="12">'
            f'<rect width="{WIDE}" height="{high + FLOOR}" fill="white"/>{grid}{bars}'
            f'<text x="{(LEFT + WIDE - SIDE) / 2}" y="{high + 36}" text-anchor="middle">{caption}'
            '</text></svg>\n')
