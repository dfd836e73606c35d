"""Bars as SVG: one a row, as long as its median, with a line over what the rounds spread."""
from xml.sax.saxutils import escape

WIDTH = 760
LABEL = 250
VALUE = 130
BAR = 22
GAP = 10
TOP = 44
OURS = "#2b6cb0"
THEIRS = "#a0aec0"


def _bar(row, y, scale):
    middle = y + BAR / 2
    low, high = LABEL + min(row.values) * scale, LABEL + max(row.values) * scale
    color = OURS if row.ratio is None else THEIRS
    value = f"{row.median:,.0f} {row.unit}" if row.median >= 100 else f"{row.median:.2f} {row.unit}"
    return [
        f'<text x="{LABEL - 8}" y="{middle + 4}" text-anchor="end">{escape(row.name)}</text>',
        f'<rect x="{LABEL}" y="{y}" width="{row.median * scale:.1f}" height="{BAR}" '
        f'fill="{color}"/>',
        f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 4}v8M{high:.1f} {middle - 4}v8" '
        'stroke="#1a202c" fill="none"/>',
        f'<text x="{high + 8:.1f}" y="{middle + 4}">{escape(value)}</text>',
    ]


def bars(scenario):
    """None when the rows have no common unit to draw."""
    rows = [row for row in scenario.rows if row.values]
    if len(rows) < 2 or len({row.unit for row in rows}) != 1:
        return None
    most = max(max(row.values) for row in rows) or 1
    scale = (WIDTH - LABEL - VALUE) / most
    height = TOP + len(rows) * (BAR + GAP)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
             'font-family="sans-serif" font-size="13" fill="#1a202c">',
             f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
             f'<text x="10" y="24" font-weight="bold">{escape(scenario.title)}</text>']
    for number, row in enumerate(rows):
        lines += _bar(row, TOP + number * (BAR + GAP), scale)
    return "\n".join(lines + ["</svg>", ""])
