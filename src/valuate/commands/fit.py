"""``valuate fit``: from a log to a number with an interval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from valuate.commands import options
from valuate.commands.wording import as_typed

if TYPE_CHECKING:
    from valuate.commands.evaluating import Evaluation


def fit(
    log: options.Log,
    discount: options.Discount = 0.99,
    features: options.Features = "auto",
    policy: Annotated[
        str | None,
        typer.Option(help='Evaluate another policy: "uniform", or a file with its probabilities in the next states.'),
    ] = None,
    initial_policy: Annotated[
        str | None,
        typer.Option(help="With a file as --policy: another, with what it does in each episode's first state."),
    ] = None,
    chain: Annotated[
        bool, typer.Option("--chain", help="All rows are one long chain in the order of time, without episodes.")
    ] = False,
    solver: Annotated[str, typer.Option(help='"auto" chooses; or lstd, gmres, svrg, ...')] = "auto",
    ridge: options.Ridge = 0.0,
    intercept: Annotated[bool, typer.Option(help="Fit a constant beside the features.")] = True,
    confidence: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help="Write the model here, for valuate predict.", dir_okay=False)] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page (HTML) here.", dir_okay=False)] = None,
    column: options.Columns = None,
    format: options.Format = None,
    done: options.Done = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Estimate the value of the policy that wrote a log (or another), with an interval.

    \b
    Exit codes:
      0  the number can be used
      1  the log or the answer should not be trusted; the number is printed all the same
      2  something that you can mend: files, columns, options

    \b
    Examples:
      valuate fit log.parquet --discount 0.99 --report page.html
      valuate fit visits.csv --column states=age,pulse --column rewards=score
      valuate fit log.parquet --policy next.csv --initial-policy first.csv
    """  # noqa: D301  # a backspace keeps the lines of a paragraph
    from valuate.commands.evaluating import evaluate

    tables = {"file of --policy": None if policy == "uniform" else policy, "file of --initial-policy": initial_policy}
    options.require_free(force, {"--out": out, "--report": report}, {"log": log, **tables})
    with options.steps(5 + (report is not None), quiet=as_json) as tell:
        tell("Reading")
        read = options.read_log(log, column, format, done)
        found = evaluate(
            read, features=features, discount=discount, solver=solver, ridge=ridge, policy=policy,
            initial_policy=initial_policy, chain=chain, confidence=confidence, seed=seed, intercept=intercept,
            tell=tell,
        )  # fmt: skip
        if report is not None:
            tell("Drawing")
            _write_page(found, report, log, force)
        if out is not None:
            found.model.save(out, force=force)
    if as_json:
        options.print_json(found.as_dict() | {"model": out and str(out), "report": report and str(report)})
    else:
        Console().print(_shown(found, confidence))
        for what, path in (("Model", out), ("Report", report)):
            if path is not None:
                typer.echo(f"{what}: {path}")
    if not found.findings.ok or found.value.standing.name != "DETERMINED":
        raise typer.Exit(1)


def _write_page(found: Evaluation, path: Path, source: str, force: bool) -> None:
    from valuate.report.fit import fit_page

    fit_page(
        found.model, found.findings, found.value, path,
        log=found.log, comparisons=found.beside, settings={"log": Path(source).name}, force=force,
    )  # fmt: skip


def _shown(found: Evaluation, confidence: float) -> Group:
    """The number first, then what stands beside it, then what to know."""
    value, solution = found.value, found.model.solution_
    low, high = value.interval
    head = Text.assemble(
        ("Value ", "bold"), (f"{value.value:.6g}", "bold green"),
        f"   {confidence:.0%} interval [{low:.6g}, {high:.6g}]",
        f"   standard error {value.standard_error:.3g}, {value.episodes:,} {value.method}",
    )  # fmt: skip
    parts: list[Any] = [Panel(head, expand=False)]
    if found.beside:
        table = Table("beside it", "value", "interval", box=None, pad_edge=False, header_style="dim")
        for name, number in found.beside.items():
            table.add_row(
                name, f"{number.value:.6g}", f"[{number.interval[0]:.6g}, {number.interval[1]:.6g}]".replace("[", r"\[")
            )
        parts.append(Padding(table, (0, 1)))
    lines = [
        ("evaluates", found.model.evaluates_),
        ("features", found.model.features_note_ or f"{len(found.model.coef_):,}"),
        ("solver", solution.message),
        *_read(found),
        ("log", found.findings.verdict),
    ]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in lines:
        table.add_row(name, Text(as_typed(str(text))))
    parts.append(Padding(table, (0, 1)))
    parts += [Padding(Text(f"- {as_typed(text)}"), (0, 1)) for text in _said(found)]
    return Group(*parts)


def _read(found: Evaluation) -> Iterator[tuple[str, str]]:
    """What was taken for what, and what was left out."""
    from valuate.io.report import several

    reading = found.log.reading
    if reading is None:
        return
    dropped = f", {reading.n_dropped:,} dropped" if reading.dropped else ""
    yield "rows", f"{reading.rows:,}{dropped}"
    yield "columns", "; ".join(f"{ours} from {several(theirs)}" for ours, theirs in reading.columns.items())
    if reading.unused:
        yield "not used", several(reading.unused)


def _said(found: Evaluation) -> Iterable[str]:
    """What to know, each sentence once: of the log, of the number, of the numbers beside it."""
    reading, value = found.log.reading, found.value
    said = [str(finding) for finding in found.findings if finding.severity != "note"]
    if reading is not None:
        said += [f"{count:,} row{'s' * (count != 1)} dropped: {why}." for why, count in reading.dropped.items()]
        said += reading.notes
    said += value.notes
    # A warning that says again what the number says is left out.
    said += [note for note in found.notes if not any(own in note for own in value.notes)]
    said += [f"{name}: {note}" for name, number in found.beside.items() for note in number.notes]
    return dict.fromkeys(said)
