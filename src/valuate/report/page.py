"""The report as one HTML page that needs nothing else, and as a short text for a repository."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from html import escape, unescape
from importlib.resources import files
from re import sub

from valuate.experiments.results import Spread
from valuate.report import charts
from valuate.report.parts import RULE, Chart, Compared, Entry, Section, Sentence, Table, Verdict, number

#: Names of verdicts for the style sheet.
CLASSES = {
    Verdict.AGREES: "agrees",
    Verdict.OVERLAPS: "overlaps",
    Verdict.DIFFERS: "differs",
    Verdict.OPEN: "open",
}
_COUNTED = {
    Verdict.AGREES: "numbers agree with the paper's",
    Verdict.OVERLAPS: "are within the spread",
    Verdict.DIFFERS: "differ",
    Verdict.OPEN: "are not compared",
}
SIGNS = {Verdict.AGREES: "&#10003;", Verdict.OVERLAPS: "&#8776;", Verdict.DIFFERS: "&#10007;", Verdict.OPEN: ""}


def html(title: str, lead: str, warnings: Sequence[str], sections: Sequence[Section]) -> str:
    """The page."""
    links = [("summary", "Summary"), *((part.name, part.title.split(":")[0]) for part in sections)]
    body = "\n".join([_summary(warnings, sections), *map(_section, sections)])
    return document(title, lead, links, body, [chart for part in sections for chart in part.charts])


def document(
    title: str, lead: str, links: Sequence[tuple[str, str]], body: str, drawn: Sequence[Chart], *, style: str = ""
) -> str:
    """A page that needs nothing else.

    Parameters
    ----------
    title : str
    lead : str
        HTML.
    links : sequence of (name, words)
        To sections of the body.
    body : str
        HTML: sections.
    drawn : sequence of Chart
        That are in the body; a pointer over them shows their numbers.
    style : str
        Rules beside those of all pages.
    """
    places = "".join(f'<a href="#{name}">{escape(words)}</a>' for name, words in links)
    scripts = "".join(
        f'<script type="application/json" id="data-{chart.name}">{_inside_script(charts.data(chart))}</script>'
        for chart in drawn
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{asset("page.css")}{style}</style>
</head>
<body>
<header><div><h1>{escape(title)}</h1><p>{lead}</p></div></header>
<nav aria-label="Sections"><div>{places}</div></nav>
<main>
{body}
</main>
{scripts}
<script>{asset("page.js")}</script>
</body>
</html>
"""


def markdown(title: str, lead: str, warnings: Sequence[str], sections: Sequence[Section]) -> str:
    """The same as text: sentences, charts by file name, tables but for those of settings."""
    out = [f"# {title}", _plain(lead), *(f"> {_plain(text)}" for text in warnings), f"How to read it. {_plain(RULE)}"]
    for part in sections:
        out.append(f"## {_plain(part.title)}")
        out += [_plain(part.lead)] if part.lead else []
        out += ["\n".join(f"- {_mark(said)}{_plain(said.text)}" for said in part.sentences)] if part.sentences else []
        out += [f"![{chart.title}](charts/{chart.name}.svg)" for chart in part.charts]
        out += [_plain(part.note)] if part.charts and part.note else []
        for table in part.tables:
            if not table.name.startswith("settings-"):
                out += [
                    f"**{_plain(table.title)}**",
                    _markdown_table(table),
                    *([_plain(table.note)] * bool(table.note)),
                ]
    return "\n\n".join(out) + "\n"


def _summary(warnings: Sequence[str], sections: Sequence[Section]) -> str:
    """What reproduces and what does not, from all sections."""
    cells = Counter(
        entry.verdict
        for part in sections
        for table in part.tables
        for row in table.rows
        for entry in row
        if isinstance(entry, Compared) and entry.paper is not None
    )
    counts = "".join(
        f'<div class="count {CLASSES[verdict]}"><b>{cells[verdict]}</b><span>{_COUNTED[verdict]}</span></div>'
        for verdict in Verdict
        if cells[verdict]
    )
    parts = [f'<div class="warning">{escape(text, quote=False)}</div>' for text in warnings]
    if counts:
        parts.append(f'<div class="counts">{counts}</div>')
    for heading, wanted in (
        ("What reproduces", (Verdict.AGREES,)),
        ("What reproduces within the spread", (Verdict.OVERLAPS,)),
        ("What does not", (Verdict.DIFFERS,)),
        ("Why, and what else the runs show", (None,)),
    ):
        said = [
            Sentence(f"<b>{escape(part.title.split(':')[0])}.</b> {sentence.text}", sentence.verdict)
            for part in sections
            for sentence in part.sentences
            if sentence.verdict in wanted and part.name != "about"
        ]
        if said:
            parts.append(f"<h3>{heading}</h3>{said_html(said)}")
    return f'<section id="summary"><h2>Summary</h2>{"".join(parts)}<p class="note">{RULE}</p></section>'


def _section(part: Section) -> str:
    out = [f'<section id="{part.name}"><h2>{escape(part.title)}</h2>']
    if part.lead:
        out.append(f'<p class="lead">{part.lead}</p>')
    if part.sentences:
        out.append(said_html(part.sentences))
    if part.charts:
        alone = len(part.charts) == 1
        inner = "".join(figure_html(chart, alone) for chart in part.charts)
        out.append(inner if alone else f'<div class="charts">{inner}</div>')
        out += [f'<p class="note">{part.note}</p>'] if part.note else []
    for table in part.tables:
        if table.name.startswith("settings-"):
            out.append(f"<details><summary>Settings: {escape(table.title)}</summary>{table_html(table, '')}</details>")
        else:
            out.append(table_html(table, f"<h3>{escape(table.title)}</h3>"))
    return "\n".join([*out, "</section>"])


def figure_html(chart: Chart, alone: bool) -> str:
    """A chart of lines, which takes a width of its own where it is alone."""
    drawn = charts.svg(chart, standalone=False)
    kind = " class=alone" if alone else ""
    return f'<figure{kind} data-chart="data-{chart.name}">{drawn}<div class="tip"></div></figure>'


def said_html(sentences: Sequence[Sentence]) -> str:
    """Sentences, HTML, as a list."""
    items = "".join(
        f'<li class="{CLASSES[said.verdict] if said.verdict else ""}">{said.text}</li>' for said in sentences
    )
    return f'<ul class="said">{items}</ul>'


def table_html(table: Table, heading: str) -> str:
    """A table under a heading, which is HTML."""
    numeric = [any(_is_number(row[k]) for row in table.rows) for k in range(len(table.columns))]
    kinds = ['class="n"' if right else "" for right in numeric]
    head = "".join(f"<th {kind}>{escape(name)}</th>" for name, kind in zip(table.columns, kinds, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td {kind}>{_entry(e)}</td>" for e, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{table.note}</p>' if table.note else ""
    return (
        f'{heading}<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note}'
    )


def _is_number(entry: Entry) -> bool:
    """Whether an entry is a number, or says that there is none."""
    return isinstance(entry, int | float) or (isinstance(entry, str) and entry.startswith("not in "))


def _entry(entry: Entry) -> str:
    if not isinstance(entry, Compared):
        return escape(_text(entry))
    ours = _spread(entry.ours, entry.digits)
    if entry.paper is None:
        return ours
    verdict = f'<span class="v {CLASSES[entry.verdict]}">{SIGNS[entry.verdict]} {entry.verdict.value}</span>'
    return f"{ours}<small>paper {_spread(entry.paper, 0)}</small>{verdict}"


def _text(entry: str | float | int | None) -> str:
    """An entry that is not compared, as text."""
    if entry is None:
        return ""
    if isinstance(entry, str):
        return entry
    if isinstance(entry, int):
        return f"{entry:,}"
    if entry != 0 and (abs(entry) >= 1e5 or abs(entry) < 1e-3):
        return number(entry, 2)
    return f"{entry:,.4g}"


def _spread(value: Spread, digits: int) -> str:
    """Mean and deviation: whole numbers where ``digits`` is 0, else so many significant digits."""
    if digits == 0:
        return f"{value.mean:.0f}" + ("" if value.sd is None else f" &plusmn; {value.sd:.0f}")
    if not math.isfinite(value.mean):
        return f"{value.mean}"
    return number(value.mean, digits) + (f" &plusmn; {number(value.sd, 2)}" if value.sd else "")


def _inside_script(text: str) -> str:
    return text.replace("</", "<\\/")


def asset(name: str) -> str:
    """A file of this package, as text."""
    return files("valuate.report").joinpath(name).read_text(encoding="utf-8")


def _markdown_table(table: Table) -> str:
    lines = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    for row in table.rows:
        lines.append(
            "| "
            + " | ".join(_plain(_entry(entry).replace("<small>", "; ").replace("<span", "; <span")) for entry in row)
            + " |"
        )
    return "\n".join(lines)


def _mark(said: Sentence) -> str:
    return "" if said.verdict is None else f"**{said.verdict.value}**: "


def _plain(text: str) -> str:
    """HTML as plain text."""
    return unescape(sub(r"<[^>]+>", "", text)).replace("  ", " ").strip()
