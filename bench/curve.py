"""The curves of the benchmarks' pages, as SVG."""
import math

WIDE, HIGH, LEFT, TOP, SIDE, FLOOR = 700, 360, 100, 30, 130, 50


def picture(points, across, caption, lines):
    """Fields of the points over the field `across`, on logarithmic axes: linear growth is the
    dashed line. A line is (field, colour, label, how far its first number is shifted)."""
    places = [point[across] for point in points]
    low_x, high_x = math.log2(places[0]), math.log2(places[-1])
    step = (HIGH - TOP - FLOOR) / (high_x - low_x + 1)  # one doubling is as high as it is wide

    def x(place):
        return LEFT + (math.log2(place) - low_x) / (high_x - low_x) * (WIDE - LEFT - SIDE)

    def line(field, colour, label, shift):
        values = [point[field] for point in points]

        def y(value):
            return HIGH - FLOOR - (math.log2(value) - math.log2(values[0])) * step - step / 2
        path = " ".join(f"{x(p[across]):.1f},{y(p[field]):.1f}" for p in points)
        dots = "".join(f'<circle cx="{x(p[across]):.1f}" cy="{y(p[field]):.1f}" r="3" '
                       f'fill="{colour}"/>' for p in points)
        first, last = values[0], values[-1]
        return (f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'
                f'<text x="{x(places[0]) - 8:.0f}" y="{y(first) + 4 + shift:.0f}" '
                f'text-anchor="end" fill="{colour}">{first:.3g} {label}</text>'
                f'<text x="{x(places[-1]) + 8:.0f}" y="{y(last) + 4:.0f}" fill="{colour}">'
                f'{last:.5g} {label}</text>')

    guide = (f'<line x1="{x(places[0])}" y1="{HIGH - FLOOR - step / 2:.1f}" x2="{x(places[-1])}" '
             f'y2="{HIGH - FLOOR - step / 2 - (high_x - low_x) * step:.1f}" stroke="#bbb" '
             'stroke-dasharray="5 4"/>')
    ticks = "".join(f'<text x="{x(place):.0f}" y="{HIGH - 28}" text-anchor="middle">{place}</text>'
                    for place in places)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" '
            'font-family="sans-serif" font-size="12">'
            f'<rect width="{WIDE}" height="{HIGH}" fill="white"/>{guide}{ticks}'
            f'<text x="{(LEFT + WIDE - SIDE) / 2}" y="{HIGH - 8}" text-anchor="middle">{caption} '
            '(logarithmic; dashed: linear growth)</text>'
            + "".join(line(*one) for one in lines) + "</svg>\n")
