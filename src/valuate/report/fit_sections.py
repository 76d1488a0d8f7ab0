"""The sections of the page on a fit, as HTML."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import __version__
from valuate.experiments.machine import describe
from valuate.experiments.results import Curve
from valuate.inference import Standing
from valuate.inference.value import count
from valuate.report import fit_errors, fit_values, plots
from valuate.report.page import figure_html, table_html
from valuate.report.parts import Chart, Entry, Series, Table, listed, number, span
from valuate.solvers import LSTD
from valuate.verdict import Limit

if TYPE_CHECKING:
    from valuate.inference import Difference, PolicyValue
    from valuate.inspecting import Findings
    from valuate.report.fitted import Fitted

#: How each limit of an answer is shown: a class of the style sheet, a sign and a word.
LIMITS = {
    Limit.DATA: ("good", "&#10003;", "at statistical accuracy"),
    Limit.OPTIMISER: ("fair", "&#8776;", "limited by the optimiser"),
    Limit.RATIOS: ("fair", "&#8776;", "limited by the importance ratios"),
    Limit.INDEFINITE: ("fair", "&#8776;", "A is indefinite"),
    Limit.SINGULAR: ("bad", "&#10007;", "singular"),
    Limit.UNUSABLE: ("bad", "&#10007;", "not usable"),
}
#: The same for severities.
SEVERITIES = {"wrong": ("bad", "&#10007;"), "warning": ("fair", "!"), "note": ("quiet", "i")}
#: Packages whose versions are named.
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pyarrow")


@dataclass(frozen=True, slots=True)
class Part:
    """A section: its name for links, the words of the link, its HTML and the charts in it that answer to a pointer."""

    name: str
    words: str
    html: str
    charts: list[Chart] = field(default_factory=list)


def value(
    fit: Fitted,
    found: PolicyValue | None,
    beside: Sequence[tuple[str, PolicyValue]],
    findings: Findings | None,
) -> Part:
    """The number and its interval, what it is of, and other numbers beside it."""
    gap = None if found is None else fit.beyond_features(found)
    badges = _badges(fit, findings, gap)
    if found is None:
        return Part("value", "Value", _section("value", f'<div class="wide"><h2>Values</h2>{badges}</div>'))
    left = f"<h2>The number</h2>{_headline(found)}{badges}"
    right = ""
    rows = [plots.Interval("this fit", found.value, *found.interval, first=True)]
    # On one axis only what is an interval of the same thing: the policy's value.
    rows += [plots.Interval(_short(name), one.value, *one.interval) for name, one in beside if one.complete]
    if any(np.isfinite(x) for row in rows for x in (row.low, row.high)):
        drawn = plots.intervals(f"{100 * found.confidence:g}% intervals", rows)
        right = _figure(drawn, _caption(beside, len(rows) > 1))
    said = [fit.sentence, _initial(found), *found.notes]
    if found.estimator == "fixed point" and found.standing is Standing.DETERMINED:
        said.append(
            "The interval is that of the fixed point which these features would reach on an endless log. How far that "
            "lies from the true value is another thing, and grows with what the features cannot tell."
        )
    words = "".join(f"<li>{escape(text)}</li>" for text in said if text)
    table = ""
    if beside:
        lines: list[list[Entry]] = [_row("this fit", found), *(_row(name, one) for name, one in beside)]
        columns = ("", "Value", "Standard error", "From", "To", "Draws")
        notes = _notes(beside, found.notes)
        table = table_html(Table("beside", "Beside it", columns, lines, "<br>".join(notes)), "<h3>Beside it</h3>")
    warned = f'<div class="warning">{escape(_of_features(gap))}</div>' if gap is not None and _differs(gap) else ""
    body = f'<div>{left}</div><div>{right}</div><div class="wide">{warned}<ul class="said">{words}</ul>{table}</div>'
    return Part("value", "Value", _section("value", body))


def verdict(fit: Fitted) -> Part:
    """The certificate."""
    found = fit.certificate
    kind, sign, words = LIMITS[found.limit]
    lines = [line.strip().split("  ", 1) for line in str(found).splitlines()[1:-1]]
    body = (
        f'<p class="verdict"><span class="v {kind}">{sign} {words}</span><br>{escape(found.verdict)}</p>'
        f"{_facts(lines)}"
        '<p class="note">The MSPBE is half the squared length of A theta - b in the norm of C^-1; its floor is what '
        "the noise of so many rows leaves at the right answer.</p>"
    )
    return Part("verdict", "Verdict", _section("verdict", f"<h2>How good is the solution?</h2>{body}"))


def convergence(fit: Fitted) -> Part:
    """The MSPBE against passes over the rows."""
    solution = fit.solution
    out = [f"<h2>How the solver got there</h2><p>{escape(solution.message)}</p>"]
    cost = [
        ["solver", str(solution.solver)],
        ["status", solution.status.value],
        [
            "passes over the rows",
            f"{solution.passes:,.4g}, and {solution.setup_visits / fit.problem.n_rows:,.4g} that measured",
        ],
        ["time", span(solution.seconds)],
    ]
    charts: list[Chart] = []
    drawn = ""
    trace = fit.trace
    if trace is not None and (trace.mspbe > 0).any():
        kept = np.isfinite(trace.mspbe)
        x, y = trace.passes[kept], trace.mspbe[kept]
        series = [Series("fit", "this fit", Curve(x, y, y, y))]
        floor = fit.certificate.floor
        if floor > 0 and fit.certificate.norm == "C^-1":
            level = np.full(len(x), floor)
            series.append(Series("floor", "statistical floor", Curve(x, level, level, level), dashed=True))
        charts.append(Chart("convergence", "MSPBE along the run", "passes", "MSPBE", series))
        note = '<p class="note">Below the floor only the noise of this log is fitted.</p>' if len(series) > 1 else ""
        drawn = f"<div>{figure_html(charts[0], False)}{note}</div>"
    elif isinstance(solution.solver, LSTD):
        out.append("<p>The equations were solved directly: there is no path to show.</p>")
    else:
        out.append(
            "<p>No path was recorded. Fit with a solver that records one, or "
            "<code>solver.solve(problem, record=1)</code>, to see it.</p>"
        )
    out.append(f'<div class="columns">{drawn}{_facts(cost)}</div>')
    return Part("convergence", "Convergence", _section("convergence", "".join(out)), charts)


def function(fit: Fitted, names: list[str] | None) -> Part:
    """The value function."""
    if names is None:
        taken = getattr(getattr(fit.log, "reading", None), "columns", {}).get("states")
        names = list(taken) if isinstance(taken, list | tuple) else [taken] if isinstance(taken, str) else None
    drawings, said = fit_values.drawings(fit, names)
    wide, small = (
        "".join(_figure(drawn, caption) for drawn, caption in drawings if (f'"0 0 {plots.SMALL.width} ' in drawn) == of)
        for of in (False, True)
    )
    body = f'<h2>The value function</h2><p class="lead">{escape(said)}</p><div class="charts">{wide}</div>'
    body += f'<div class="charts small">{small}</div>' if small else ""
    return Part("function", "Value function", _section("function", body))


def errors(fit: Fitted) -> Part:
    """Temporal-difference errors."""
    drawings = [fit_errors.histogram(fit), fit_errors.by_position(fit), fit_errors.calibration(fit)]
    figures = "".join(_figure(*drawing) for drawing in drawings if drawing is not None)
    table = table_html(fit_errors.largest(fit), "<h3>The largest errors</h3>")
    lead = (
        "What a row brought, minus what its value said: reward + discount * next value - value. At the fixed point "
        "these errors are 0 on average in every direction of the features; what is left is noise, and what features "
        "cannot tell."
    )
    body = f'<h2>Temporal-difference errors</h2><p class="lead">{lead}</p><div class="charts">{figures}</div>{table}'
    return Part("errors", "Errors", _section("errors", body))


def doctor(findings: Findings | None) -> Part:
    """What the doctor found."""
    if findings is None:
        body = "<h2>The log</h2><p>The log was not looked at: <code>valuate inspect</code> does that.</p>"
        return Part("log", "The log", _section("log", body))
    out = [f'<h2>The log</h2><p class="verdict">{escape(findings.verdict)}</p>']
    items = []
    for one in findings:
        kind, sign = SEVERITIES[one.severity.value]
        where = f" &middot; {escape(one.where)}" if one.where else ""
        advice = f'<p class="advice">{escape(one.advice)}</p>' if one.advice else ""
        head = f"{sign} {one.severity.value} <code>{escape(one.code)}{where}</code>"
        items.append(f'<li class="{kind}"><span class="head">{head}</span><p>{escape(one.message)}</p>{advice}</li>')
    if items:
        out.append(f'<ul class="findings">{"".join(items)}</ul>')
    lines = findings.lines()
    half = (len(lines) + 1) // 2
    out.append(f'<div class="columns">{_facts(lines[:half])}{_facts(lines[half:])}</div>')
    return Part("log", "The log", _section("log", "".join(out)))


def about(fit: Fitted, settings: Mapping[str, Any]) -> Part:
    """Settings, versions and machine."""
    problem, machine = fit.problem, describe()
    asked = [*((name, str(text)) for name, text in settings.items()), *fit.settings.items()]
    asked.append(
        ("problem", f"{problem.n_rows:,} rows, {problem.dim:,} features, {problem.layout}, ridge {problem.ridge:g}")
    )
    memory = f", {machine['memory_gigabytes']} GB of memory" if machine["memory_gigabytes"] else ""
    made = [
        ("valuate", __version__),
        ("Python", platform.python_version()),
        *((name, found) for name in PACKAGES if (found := _version(name)) is not None),
        ("machine", f"{machine['cpu']}, {machine['cores']} cores{memory}"),
        ("system", machine["system"]),
    ]
    body = f'<h2>How it was made</h2><div class="columns"><div>{_facts(asked)}</div><div>{_facts(made)}</div></div>'
    return Part("about", "Settings", _section("about", body))


def _headline(found: PolicyValue) -> str:
    if found.standing is Standing.UNDETERMINED:
        return (
            '<p class="big">not determined</p><p class="range">This log does not determine the value: its interval has '
            "no bounds.</p>"
        )
    low, high = (_rounded(end, found) for end in found.interval)
    error = number(found.standard_error, 2) if _counts(found) else "0"
    unsolved = (
        '<p class="v bad">The equations were not solved well enough for this interval to be used.</p>'
        if found.standing is Standing.UNSOLVED
        else ""
    )
    return (
        f'<p class="big">{_rounded(found.value, found)}</p><p class="range">{100 * found.confidence:g}% interval '
        f"<b>{low} to {high}</b></p>{unsolved}"
        f'<p class="label">standard error {error}, from {found.episodes:,} {escape(found.method)} '
        f"(Student&rsquo;s t, {count(found.degrees)} degrees)</p>"
    )


def _counts(found: PolicyValue) -> bool:
    """Whether the standard error is more than rounding."""
    return found.standard_error > 1e-12 * abs(found.value)


def _rounded(value: float, found: PolicyValue) -> str:
    """A number with as many decimals as give the standard error two digits, and a true minus sign."""
    if not _counts(found):
        return f"{value:,.6g}".replace("-", "\u2212")
    decimals = max(0, 1 - int(np.floor(np.log10(found.standard_error))))
    if decimals > 9 or abs(value) >= 1e12:
        return f"{value:.6g}".replace("-", "\u2212")
    return f"{value:,.{decimals}f}".replace("-", "\u2212")


def _differs(gap: Difference) -> bool:
    """Whether returns and value differ by more than chance."""
    return not gap.interval[0] <= 0.0 <= gap.interval[1]


def _of_features(gap: Difference) -> str:
    more = "more" if gap.value > 0 else "less"
    low, high = (number(size) for size in sorted(abs(end) for end in gap.interval))
    return (
        f"The same episodes brought {number(gap.first, 4)} on average, {number(abs(gap.value))} {more} than this fit "
        f"says ({low} to {high}, with 99% confidence). Their returns need no features: the difference is what these "
        "features cannot tell. Richer ones would bring the two together."
    )


def _badges(fit: Fitted, findings: Findings | None, gap: Difference | None = None) -> str:
    kind, sign, words = LIMITS[fit.certificate.limit]
    out = [f'<li class="badge {kind}"><a href="#verdict">{sign} solution: {words}</a></li>']
    if findings is not None:
        worst = "wrong" if not findings.ok else "warning" if findings.of("warning") else None
        kind, sign = SEVERITIES[worst] if worst else ("good", "&#10003;")
        count = len(findings.of(worst)) if worst else 0
        words = (
            f"{count} {'thing' if worst == 'wrong' else 'warning'}{'s' * (count != 1)}" if worst else "nothing wrong"
        )
        words += " would make it wrong" if worst == "wrong" else ""
        out.append(f'<li class="badge {kind}"><a href="#log">{sign} log: {words}</a></li>')
    if gap is not None:
        kind, sign, words = ("fair", "&#8776;", "miss") if _differs(gap) else ("good", "&#10003;", "agree with")
        out.append(f'<li class="badge {kind}"><a href="#errors">{sign} features: {words} what followed</a></li>')
    return f'<ul class="badges">{"".join(out)}</ul>'


def _notes(beside: Sequence[tuple[str, PolicyValue]], known: Sequence[str]) -> list[str]:
    """The remarks of several numbers, each once, with the names of those that it is about."""
    about: dict[str, list[str]] = {}
    for name, one in beside:
        for note in one.notes:
            if note not in known:
                about.setdefault(note, []).append(name)
    return [escape(f"{listed(names)}: {note}") for note, names in about.items()]


def _initial(found: PolicyValue) -> str:
    initial = getattr(found.source, "initial", "")
    return {
        "first states": "The mean over the first states of the episodes, which are themselves a sample.",
        "given": "The mean over initial states that were given.",
        "sample": "The mean over initial states that were given, taken as a sample.",
    }.get(initial, "")


def _short(name: str) -> str:
    """As there is room for beside a drawing."""
    return name.replace(", continued by the model", " +")


def _caption(beside: Sequence[tuple[str, PolicyValue]], drawn: bool) -> str:
    left = listed([name for name, one in beside if not one.complete])
    words = ["Shaded: the interval of this fit."] if drawn else []
    words += (
        ["+: continued by the model."] if any(one.complete and name != _short(name) for name, one in beside) else []
    )
    words += [f"Not drawn, because episodes were cut short: {left}."] if left else []
    return " ".join(words)


def _row(name: str, found: PolicyValue) -> list[Entry]:
    low, high = found.interval
    ends: list[Entry] = [float(end) if np.isfinite(end) else "no bound" for end in (low, high)]
    error: Entry = float(found.standard_error) if np.isfinite(found.standard_error) else "unknown"
    return [name, float(found.value), error, *ends, f"{found.episodes:,} {found.method}"]


def _facts(lines: Sequence[Sequence[str]]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(line[0])}</th><td>{escape(line[1].strip()) if len(line) > 1 else ""}</td></tr>'
        for line in lines
    )
    return f'<div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div>'


def _figure(drawn: str, caption: str) -> str:
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{drawn}{below}</figure>"


def _section(name: str, body: str) -> str:
    return f'<section id="{name}">{body}</section>'


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
