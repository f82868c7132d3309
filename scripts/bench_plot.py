"""The medians of scripts/bench as horizontal bars: an SVG that is read on a light and on a dark page."""
from statistics import median
from xml.sax.saxutils import escape

WIDTH, NAME_WIDTH, VALUE_WIDTH = 760, 130, 90
ROW, BAR, GAP, TITLE = 22, 14, 26, 24
STYLE = """\
<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; }
  .fgsync { fill: #1f6feb; } .other { fill: #8c959f; } .floor { fill: none; stroke: #8c959f; }
  .range { stroke: #24292f; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .fgsync { fill: #58a6ff; } .other { fill: #6e7681; } .floor { stroke: #8b949e; }
    .range { stroke: #e6edf3; }
  }
</style>"""


def kind(name):
    return name.split()[0] if name.startswith(("fgsync", "floor")) else "other"


def rows(document_set):
    """[(name, least, median, most)] of the speeds, in the order measured."""
    found = []
    for name, runs in document_set["runs"].items():
        if speeds := [document_set["amount"] / run["seconds"] for run in runs]:
            found.append((name, min(speeds), median(speeds), max(speeds)))
    return found


def panel(name, document_set, top):
    """The lines of one data set's bars, and where the next one may begin."""
    figures, unit = rows(document_set), document_set["unit"]
    longest = max((most for _, _, _, most in figures), default=1)
    scale = (WIDTH - NAME_WIDTH - VALUE_WIDTH) / longest
    lines = [f'<text class="title" x="0" y="{top + 14}">{escape(name)}, {escape(unit)}</text>']
    y = top + TITLE
    for competitor, least, middle, most in figures:
        centre = y + BAR / 2
        text = f"{middle:,.0f}" if unit == "files/s" else f"{middle:.2f}"
        lines += [
            f'<text x="{NAME_WIDTH - 8}" y="{centre + 4.5}" text-anchor="end">{escape(competitor)}</text>',
            f'<rect class="{kind(competitor)}" x="{NAME_WIDTH}" y="{y}" width="{middle * scale:.1f}" height="{BAR}"/>',
            f'<path class="range" d="M{NAME_WIDTH + least * scale:.1f} {centre}H{NAME_WIDTH + most * scale:.1f}"/>',
            f'<text x="{NAME_WIDTH + most * scale + 8:.1f}" y="{centre + 4.5}">{text}</text>']
        y += ROW
    return lines, y + GAP


def svg(document):
    """`document` is what --json writes."""
    body, top = [], 4
    for name, document_set in document["sets"].items():
        lines, top = panel(name, document_set, top)
        body += lines
    note = "bars: medians; lines: slowest to fastest run; longer is faster"
    body.append(f'<text x="0" y="{top}">{note}</text>')
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 12}" width="{WIDTH}">'
    return "\n".join([opening, STYLE, *body, "</svg>", ""])


def write(path, document):
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg(document))
