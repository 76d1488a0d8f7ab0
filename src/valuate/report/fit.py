"""The page on a fit: a number with its interval, what limits it, and everything that was looked at on the way.

::

    from valuate.report.fit import fit_page

    fit_page(model, va.inspect(log), model.policy_value(), "report.html", log=log)
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from valuate.errors import InputError
from valuate.report import fit_sections as sections
from valuate.report.fitted import Fitted
from valuate.report.page import asset, document

if TYPE_CHECKING:
    from valuate.inference import PolicyValue
    from valuate.inspecting import Findings
    from valuate.transitions import Transitions

__all__ = ["fit_page"]


def fit_page(
    model: Any,
    findings: Findings | None,
    policy_value: PolicyValue | None,
    path: str | os.PathLike[str],
    *,
    log: Transitions | None = None,
    comparisons: Mapping[str, PolicyValue] | Sequence[PolicyValue] | None = None,
    names: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    title: str = "The value of a policy",
    force: bool = False,
) -> Path:
    """Write a page on a fit: one HTML file that needs nothing else, no network among it.

    Parameters
    ----------
    model : fitted LinearValue, or Fitted
        `Fitted` (problem, solution) for what was fitted without the estimator.
    findings : Findings or None
        Of `valuate.inspect`. None: the page says that the log was not looked at.
    policy_value : PolicyValue or None
        Of `LinearValue.policy_value`. None: the page begins with the verdict.
    path : path
    log : Transitions, optional
        That the model was fitted to. Without it there is no drawing over states and no step in an episode.
    comparisons : PolicyValue by name, or a sequence of them, optional
        What stands beside the number: logged returns, importance sampling; see `valuate.inference.baselines`. Or the
        true value, with an interval of no width.
    names : sequence of str, optional
        Of the numbers of a state. None: those that the log was read with.
    settings : mapping, optional
        What else belongs among the settings: the file, the command.
    title : str
    force : bool
        Whether a file of that name is written over.

    Returns
    -------
    Path
        Of the page.

    Raises
    ------
    InputError
        Where the file exists, or cannot be written, or model and log do not belong together.
    """
    target = Path(path)
    if target.exists() and not force:
        raise InputError(f"{target} exists. Choose another name, or give force=True to write over it.")
    fit = Fitted.of(model, log)
    beside = list(comparisons.values()) if isinstance(comparisons, Mapping) else list(comparisons or ())
    labels = list(comparisons) if isinstance(comparisons, Mapping) else [number.estimator for number in beside]
    parts = [
        sections.value(fit, policy_value, list(zip(labels, beside, strict=True)), findings),
        sections.verdict(fit),
        sections.convergence(fit),
        sections.function(fit, None if names is None else list(names)),
        sections.errors(fit),
        sections.doctor(findings),
        sections.about(fit, settings or {}),
    ]
    rows = f"{fit.problem.n_rows:,} rows"
    if fit.look is not None and fit.look.known:
        rows += f" of {len(fit.look.last):,} episodes"
    source = getattr(getattr(log, "reading", None), "source", None)
    lead = escape(f"{rows}{f' from {source}' if source else ''}; discount {fit.discount:g}. ")
    lead += f"Written {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC by valuate."
    page = document(
        title,
        lead,
        [(part.name, part.words) for part in parts],
        "\n".join(part.html for part in parts),
        [chart for part in parts for chart in part.charts],
        style=asset("fit.css"),
    )
    _write(target, page)
    return target


def _write(target: Path, text: str) -> None:
    """Whole or not at all."""
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"The page cannot be written to {target}: {error.strerror or error}.") from None
