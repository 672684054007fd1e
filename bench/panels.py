"""What pages of several benchmarks share: bars, as SVG, and whether a target is held."""


def is_held(sign, bound, value):
    return value >= bound if sign == "≥" else value <= bound


def panel(top, title, bars, lines, unit):
    """Bars to the right, one below the other; lines: (value, what it is)."""
    left, wide, step = 210, 380, 22
    most = max([value for _, value in bars] + [value for value, _ in lines]) * 1.05
    bottom = top + 24 + step * len(bars)
    text = [f'<text x="8" y="{top + 14}" font-weight="bold">{title}</text>']
    for i, (name, value) in enumerate(bars):
        y = top + 24 + step * i
        colour = "#1f6feb" if name.startswith("Weir") else "#9aa4b2"
        text.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{name}</text>'
                    f'<rect x="{left}" y="{y}" width="{value / most * wide:.1f}" height="16" '
                    f'fill="{colour}"/><text x="{left + value / most * wide + 5:.1f}" '
                    f'y="{y + 13}">{value:.2f}{unit}</text>')
    for value, name in lines:
        x = left + value / most * wide
        text.append(f'<line x1="{x:.1f}" y1="{top + 20}" x2="{x:.1f}" y2="{bottom}" '
                    'stroke="#d1570c" stroke-width="2" stroke-dasharray="5 4"/>'
                    f'<text x="{x:.1f}" y="{top + 14}" text-anchor="middle" fill="#d1570c">'
                    f'{name}</text>')
    return "".join(text), bottom + 16


def drawing(panels, high):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 {high}" '
            'font-family="sans-serif" font-size="12">'
            f'<rect width="660" height="{high}" fill="white"/>{"".join(panels)}</svg>\n')
