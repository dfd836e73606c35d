"""Bars as SVG: one a figure, as long as its median, with a line over what the rounds spread. Light or dark as the
reader's system is; without one, on whatever it stands on."""
from xml.sax.saxutils import escape

WIDTH = 760
LABEL = 250
VALUE = 130
BAR = 20
GAP = 8
HEAD = 40
BETWEEN = 12
NOTE = 18
STYLE = """<style>
text{fill:#1a202c}.note{fill:#5a6472;font-size:11px}.ours{fill:#2b6cb0}.theirs{fill:#a0aec0}.spread{stroke:#1a202c;fill:none}
@media (prefers-color-scheme:dark){text{fill:#e2e8f0}.note{fill:#9aa5b4}.ours{fill:#63a4e8}.theirs{fill:#5b6778}
.spread{stroke:#e2e8f0}}
</style>"""


class Figure:
    """A row's median and extremes."""

    def __init__(self, name, unit, median, low, high, is_ours):
        self.name = name
        self.unit = unit
        self.median = median
        self.low = low
        self.high = high
        self.is_ours = is_ours


class Panel:
    """Figures of one unit under a title."""

    def __init__(self, title, figures):
        self.title = title
        self.figures = figures

    @property
    def height(self):
        return HEAD + len(self.figures) * (BAR + GAP) + BETWEEN


def _bar(figure, y, scale):
    middle = y + BAR / 2
    low, high = LABEL + figure.low * scale, LABEL + figure.high * scale
    digits = 0 if figure.median >= 100 else 2
    lines = [
        f'<text x="{LABEL - 8}" y="{middle + 4}" text-anchor="end">{escape(figure.name)}</text>',
        f'<rect class="{"ours" if figure.is_ours else "theirs"}" x="{LABEL}" y="{y}" width="{figure.median * scale:.1f}" '
        f'height="{BAR}"/>',
        f'<text x="{high + 8:.1f}" y="{middle + 4}">{figure.median:,.{digits}f} {escape(figure.unit)}</text>',
    ]
    if low < high:
        lines.append(f'<path class="spread" d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 4}v8M{high:.1f} '
                     f'{middle - 4}v8"/>')
    return lines


def _panel(panel, top):
    scale = (WIDTH - LABEL - VALUE) / (max(figure.high for figure in panel.figures) or 1)
    lines = [f'<text x="10" y="{top + 24}" font-weight="bold">{escape(panel.title)}</text>']
    for number, figure in enumerate(panel.figures):
        lines += _bar(figure, top + HEAD + number * (BAR + GAP), scale)
    return lines


def drawing(panels, notes=()):
    """The picture's text; notes stand below, a line each."""
    height = sum(panel.height for panel in panels) + len(notes) * NOTE
    lines, top = [], 0
    for panel in panels:
        lines += _panel(panel, top)
        top += panel.height
    for number, note in enumerate(notes):
        lines.append(f'<text class="note" x="10" y="{top + number * NOTE + 8}">{escape(note)}</text>')
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                      f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">', STYLE, *lines,
                      "</svg>", ""])


def bars(scenario):
    """None when the rows have no common unit to draw."""
    rows = [row for row in scenario.rows if row.values]
    if len(rows) < 2 or len({row.unit for row in rows}) != 1:
        return None
    return drawing([Panel(scenario.title, [
        Figure(row.name, row.unit, row.median, min(row.values), max(row.values), row.ratio is None) for row in rows])])
