"""Pages for readers: on a reproduction of the paper, its charts also as SVG and its numbers as CSV; and on a fit.

::

    from valuate import report

    report.make_report("reproduction-paper")
    report.fit_page(model, va.inspect(log), model.policy_value(), "report.html", log=log)

Each is one file that needs no other. Everything on it is computed, the sentences too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from valuate.errors import InputError
from valuate.experiments.published import SOURCE
from valuate.experiments.results import Results
from valuate.experiments.store import Store
from valuate.report import charts, control, costs, figures, page, tables
from valuate.report.about import about, finished, headline, progress, wall_seconds
from valuate.report.fit import fit_page
from valuate.report.fitted import Fitted
from valuate.report.parts import Section, Sentence, span

__all__ = ["Fitted", "fit_page", "in_short", "make_report", "sections"]

#: What makes the section of each experiment.
_SECTIONS: dict[str, Callable[[Results], Section]] = {
    "figure-1": figures.figure_1,
    "figure-1-grid": figures.grid,
    "figure-2": figures.figure_2,
    "table-1": costs.table_1,
    "table-2": costs.table_2,
    "table-3": lambda results: control.table_3(results, "table-3"),
    "table-3-right-termination": lambda results: control.table_3(results, "table-3-right-termination"),
}

TITLE = "SVRG for policy evaluation with fewer gradient evaluations: reproduced"


def make_report(folder: str | Path) -> Path:
    """Write the report of a reproduction into its folder.

    Parameters
    ----------
    folder : path
        As `valuate.experiments.reproduce` made it; it need not be complete.

    Returns
    -------
    Path
        Of ``report.html``. Beside it are ``summary.md``, ``charts`` and ``tables``.
    """
    store = Store.read(folder)
    results = Results(store.records)
    parts = sections(store, results)
    scale = store.manifest["scale"]
    lead = (
        f"The experiments of {SOURCE}, run again by valuate. Scale {scale}, {len(results.all()):,} runs, "
        f"{span(wall_seconds(store))}; written {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC."
    )
    warnings = progress(store, results)
    if scale == "smoke":
        warnings.insert(0, "This is the smoke scale: few runs, and less data than in the paper where that is large.")
    root = Path(folder)
    try:
        for part in parts:
            for chart in part.charts:
                _write(root / "charts" / f"{chart.name}.svg", charts.svg(chart, standalone=True) + "\n")
                _write(root / "tables" / f"{chart.name}.csv", tables.chart_csv(chart))
            for table in part.tables:
                _write(root / "tables" / f"{table.name}.csv", tables.table_csv(table))
        _write(root / "summary.md", page.markdown(TITLE, lead, warnings, parts))
        _write(root / "report.html", page.html(TITLE, lead, warnings, parts))
    except OSError as error:
        raise InputError(
            f"The report cannot be written to {folder}: {error.strerror or error}. The finished runs are kept: once it "
            f"can be written to, 'valuate report {folder}' makes it."
        ) from None
    return root / "report.html"


def in_short(folder: str | Path) -> str:
    """A sentence on the time that the runs of a folder took, and the authors' way would take."""
    store = Store.read(folder)
    return headline(store, Results(store.records))


def sections(store: Store, results: Results) -> list[Section]:
    """What there is to say: a section for each experiment that has runs, and one on how they were made."""
    parts = [
        _so_far(make(results), *finished(store, results, name))
        for name, make in _SECTIONS.items()
        if results.cells(name)
    ]
    return [*parts, about(store, results)]


def _so_far(part: Section, have: int, wanted: int) -> Section:
    """The section; without verdicts on the whole where runs are missing, as they may yet turn out otherwise."""
    if have < wanted:
        lead = (
            f"{have:,} of {wanted:,} runs are finished. What follows is said of these and is no verdict on the whole."
        )
        part.sentences = [Sentence(lead), *(Sentence(said.text) for said in part.sentences)]
    return part


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
