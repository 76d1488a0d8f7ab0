"""The report as one HTML page that needs nothing else: a chart and a table for each cell."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from valuate.bench.accuracy.report import AUTO, end, entry, note, seconds, summed, total
from valuate.bench.accuracy.theirs import BASELINE
from valuate.bench.accuracy.yardstick import ACCURACIES

if TYPE_CHECKING:
    from valuate.bench.accuracy.contestants import Run
    from valuate.bench.accuracy.report import AccuracyReport, CellResult

#: Colours that are told apart without red and green (M. Okabe and K. Ito, 2008), from tight to loose.
COLOURS = dict(zip((one.name for one in ACCURACIES), ("#0072b2", "#e69f00", "#009e73"), strict=True))
WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM = 760, 170, 18, 46, 21, 40
RADIUS = 5
FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"
STYLE = """
body { margin: 0 auto; max-width: 1100px; padding: 24px; color: #1f2933; background: #f6f8fa;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
section { background: #fff; border: 1px solid #dde3ea; border-radius: 10px; padding: 18px 24px; margin: 24px 0; }
h1 { font-size: 28px; margin: 0; } h2 { font-size: 19px; margin: 0 0 8px; }
svg { width: 100%; max-width: 860px; height: auto; display: block; }
.scroll { overflow-x: auto; } details { margin-top: 10px; } summary { cursor: pointer; font-weight: 600; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th { text-align: left; color: #616e7c; border-bottom: 2px solid #dde3ea; padding: 4px 12px 4px 0; }
td { border-bottom: 1px solid #dde3ea; padding: 4px 12px 4px 0; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } p.note { color: #616e7c; font-size: 13px; margin: 6px 0; }
tr.theirs td:first-child { font-style: italic; }
"""


def html(report: AccuracyReport) -> str:
    """The page."""
    body = "\n".join(_section(report, cell) for cell in report.cells)
    machine = "".join(f'<p class="note">{escape(text)}</p>' for text in report.header())
    left_out = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in report.left_out.items())
    left_out = f"<section><h2>Not measured</h2><ul>{left_out}</ul></section>" if left_out else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Seconds to an accuracy</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Seconds to an accuracy</h1>
<p>{escape(report.summary())} Times of ours include building the problem; filled marks are ours, open ones others'.</p>
{machine}
<section><h2>In short</h2>{_summary(report)}</section>
{body}
{left_out}
</body>
</html>
"""


def svg(result: CellResult) -> str:
    """A line for each solver that reached anything, a mark for each accuracy, over a logarithmic axis of seconds."""
    runs = [run for run in result.order() if run.reached]
    height = TOP + ROW * max(1, len(runs)) + BOTTOM
    label = escape(f"{result.name}: seconds to an accuracy, by solver", quote=True)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}" '
        f'font-family="{FONT}" font-size="12" fill="#333">',
        _legend(),
    ]
    times = [total(run, name) for run in runs for name in run.reached]
    if not times:
        return f'{parts[0]}<text x="{LEFT}" y="{TOP}">Nobody reached an accuracy.</text></svg>'
    low, high = math.log10(min(times)) - 0.08, math.log10(max(times)) + 0.08
    bottom = height - BOTTOM

    def place(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - RIGHT - LEFT)

    for value in _ticks(low, high):
        x = place(value)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}" stroke="#e6e6e6"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{bottom + 33}" text-anchor="middle">seconds</text>')
    for k, run in enumerate(runs):
        parts.append(_row(run, TOP + ROW * k + 6, place))
    return "\n".join([*parts, "</svg>"])


def _row(run: Run, y: float, place: object) -> str:
    assert callable(place)
    weight = ' font-weight="700"' if run.solver == AUTO else ""
    style = ' font-style="italic"' if run.side == "theirs" else ""
    out = [f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end"{weight}{style}>{escape(run.solver)}</text>']
    ends = [place(total(run, name)) for name in run.reached]
    out.append(f'<line x1="{min(ends):.1f}" x2="{max(ends):.1f}" y1="{y}" y2="{y}" stroke="#bbb"/>')
    for accuracy in ACCURACIES:
        if accuracy.name in run.reached:
            colour = COLOURS[accuracy.name]
            fill = colour if run.side == "ours" else "#fff"
            time = seconds(total(run, accuracy.name))
            out.append(
                f'<circle cx="{place(total(run, accuracy.name)):.1f}" cy="{y}" r="{RADIUS}" fill="{fill}" '
                f'stroke="{colour}" stroke-width="2"><title>{escape(run.solver)}: {accuracy.what}, {time}</title>'
                "</circle>"
            )
    return "".join(out)


def _legend() -> str:
    out, at = [], float(LEFT)
    for accuracy in ACCURACIES:
        out.append(f'<circle cx="{at + 6:.0f}" cy="14" r="{RADIUS}" fill="{COLOURS[accuracy.name]}"/>')
        out.append(f'<text x="{at + 16:.0f}" y="18">{escape(accuracy.what)}</text>')
        at += 40 + 6.6 * len(accuracy.what)
    return "".join(out)


def _ticks(low: float, high: float) -> list[float]:
    """Round values along the axis, fewer where it is long."""
    for marks in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
        powers = range(math.floor(low), math.ceil(high) + 1)
        found = [m * 10.0**p for p in powers for m in marks if low <= math.log10(m * 10.0**p) <= high]
        if len(found) >= 3:
            break
    return found


def _summary(report: AccuracyReport) -> str:
    head = "<th>cell</th>" + "".join(
        f'<th class="n">{escape(one.what)}</th><th class="n">{BASELINE}</th><th class="n">{AUTO}</th>'
        for one in ACCURACIES
    )
    rows = "".join(
        f"<tr><td>{escape(cell.name)}</td>"
        + "".join(f'<td class="n">{escape(text)}</td>' for one in ACCURACIES for text in summed(cell, one.name))
        + "</tr>"
        for cell in report.cells
        if not cell.failed
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _section(report: AccuracyReport, result: CellResult) -> str:
    if result.failed:
        return f"<section><h2>{escape(result.name)}</h2><p>{escape(result.failed)}</p></section>"
    head = "<th>solver</th>" + "".join(f'<th class="n">{escape(one.what)}</th>' for one in ACCURACIES)
    rows = "".join(
        f'<tr class="{run.side}"><td>{escape(run.solver)}</td>'
        + "".join(f'<td class="n">{escape(entry(result, run, one.name))}</td>' for one in ACCURACIES)
        + f'<td class="n">{escape(end(run))}</td><td>{escape(note(run))}</td></tr>'
        for run in result.order()
    )
    notes = "".join(f'<p class="note">{escape(text)}</p>' for text in (result.heading(), *result.notes))
    return (
        f"<section><h2>{escape(result.name)}</h2>{notes}{svg(result)}<details><summary>All numbers</summary>"
        f'<div class="scroll"><table><thead><tr>{head}<th class="n">ended at</th><th></th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details></section>"
    )
