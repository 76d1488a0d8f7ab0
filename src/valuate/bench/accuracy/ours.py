"""Our solvers, at their defaults."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from valuate import solvers
from valuate.bench.accuracy.contestants import Bout, Contestant, Needs, Outcome

if TYPE_CHECKING:
    from valuate.bench.accuracy.recording import Recorder

#: Passes that are never spent: the recorder ends runs.
ENDLESS = 1e6


def iterative(bout: Bout, recorder: Recorder, *, solver: Any) -> Outcome:
    """A run that shows its points as it goes; it is not told how far to go."""
    problem = bout.fresh()
    recorder.start()
    solution = solver.solve(problem, passes=ENDLESS, callback=recorder.watch)
    return Outcome(setting=repr(solution.solver), message=solution.message)


def direct(bout: Bout, recorder: Recorder) -> Outcome:
    """LSTD, on its own clock, which stands still while it measures its residual."""
    if isinstance(needs := bout.known.get("LSTD"), Needs):  # ours takes as much
        return Outcome(message=needs.why, needs=needs)
    problem = bout.fresh()
    recorder.start()
    solution = solvers.LSTD().solve(problem)
    recorder.look(solution.theta, seconds=solution.seconds, passes=solution.passes)
    return Outcome(message=solution.message)


def auto(bout: Bout, recorder: Recorder) -> Outcome:
    """`Auto` as it is called: once for each accuracy, asked for it; the whole call is on the clock.

    It is the only one that has to find out by itself when it is there.
    """
    said = []
    asked = {
        "residual": (solvers.Auto(), 1e-6),
        "tenth": (solvers.Auto(), None),
        "one": (solvers.Auto(standard_errors=1.0), None),
    }
    for name, (solver, tolerance) in asked.items():
        problem = bout.fresh()
        recorder.start()
        solution = solver.solve(problem, tolerance=tolerance)
        # What else the point would do is not what was asked for.
        recorder.look(solution.theta, passes=solution.passes, only=name)
        said.append(f"{name}: {solution.message}")
    return Outcome(message="\n".join(said))


def _iterative(name: str, solver: Any, *, small: bool = True) -> Contestant:
    return Contestant(name, "ours", partial(iterative, solver=solver), small)


OURS = (
    Contestant("Auto", "ours", auto),
    Contestant("LSTD", "ours", direct),
    _iterative("GMRES", solvers.GMRES()),
    _iterative("GMRES, subsample", solvers.GMRES(preconditioner="subsample")),
    _iterative("BiCGSTAB", solvers.BiCGSTAB()),
    _iterative("LSMR", solvers.LSMR()),
    _iterative("GCR", solvers.GCR()),
    _iterative("TD, averaged", solvers.TD(average=True, sampling="log")),
    _iterative("TD", solvers.TD(), small=False),
    _iterative("SVRG, td", solvers.SVRG(direction="td")),
    _iterative("SAGA, td", solvers.SAGA(direction="td")),
    _iterative("SCSG, td", solvers.SCSG(direction="td")),
    _iterative("Batching SVRG, td", solvers.BatchingSVRG(direction="td"), small=False),
    _iterative("SVRG", solvers.SVRG(), small=False),
    _iterative("SAGA", solvers.SAGA(), small=False),
    _iterative("SCSG", solvers.SCSG(), small=False),
    _iterative("GTD2", solvers.GTD2(), small=False),
    _iterative("TDC", solvers.TDC(), small=False),
)
