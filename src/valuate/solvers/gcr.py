"""GCR around stochastic epochs: an epoch proposes a direction, the rows say how far to go."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.linalg as la

from valuate import _checks
from valuate._kernels import loop
from valuate.errors import InputError, InputTypeError
from valuate.problem import Problem
from valuate.solvers.directions import DIRECTIONS, Maxima
from valuate.solvers.driver import CHUNK, Reference
from valuate.solvers.iterating import Iteration, Iterative, Process, Turn
from valuate.solvers.methods import SVRG, Stochastic
from valuate.solvers.points import point_for
from valuate.solvers.scaling import units
from valuate.solvers.watch import OVERFLOW

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: Inner steps are divided by this where an epoch diverges, so many times at most; after that there are no epochs.
SMALLER, RETRIES = 4.0, 8
#: An epoch that left the residual so many times longer, by itself, has diverged, if its direction was of little use:
#: what is left of the residual is more than this share.
GREW, LITTLE = 1.5, 0.95
#: Such epochs in a row after which the steps are made smaller; and the length with which one is enough.
PATIENCE, EXPLODED = 3, 1e3
#: A direction that leaves more than this share of the residual is followed by one for its own image, as in GMRES.
ACROSS = 0.99
#: What is left of a direction's image after orthogonalising, below this share of it, is rounding.
USELESS = 1e-10
#: And so is an image that is shorter than its direction by this factor more than images are at most.
ROUNDING = 1e-13
#: Directions in a row of which nothing was left, after which there are no more.
MISSES = 3
#: Iterations after which the residual is computed from the rows.
RENEWED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GCR(Iterative):
    """Generalised conjugate residuals (Eisenstat, Elman and Schultz 1983) with a stochastic epoch as preconditioner.

    At theta with residual g = b - A theta, one epoch of the inner method is taken from theta; its mean gradient is -g
    and is known. The displacement z is a direction, of which only what is new is used: its image A z, which takes a
    pass, is made orthogonal to those kept, in diag(C)^-1, and theta goes along it as far as the residual falls. The
    residual never grows, whatever the epoch does: it converges off-policy where the inner method alone diverges.

    Two passes an iteration: the epoch and the product. Without a ridge, and with steps that are chosen, epochs run on
    columns that are scaled alike. A direction that leaves more than 95% of the residual is followed
    by one of the other kind: the scaled residual itself, which takes no epoch and minds no units.

    Parameters
    ----------
    inner : SVRG or another method with an anchor
        Its number of inner steps and their sizes are used; its means are not taken. Steps that diverge are divided by
        4, and the message says so.
    directions : int
        How many directions are kept, two vectors of dim numbers each; the oldest goes first.
    """

    inner: Any = field(default_factory=lambda: SVRG(direction="td"))
    directions: int = 30
    advice: ClassVar[str] = "Use GMRES or LSMR, LSTD, or a small ridge."

    def __post_init__(self) -> None:
        object.__setattr__(self, "directions", _checks.whole("directions", self.directions, low=1))
        if not isinstance(self.inner, Stochastic):
            raise InputTypeError(f"inner must be a method such as SVRG(), not {type(self.inner).__name__}.")
        if self.inner.reference is not Reference.ANCHOR:
            raise InputError(f"inner must be a method with an anchor, such as SVRG, not {type(self.inner).__name__}.")
        if "theory" in (self.inner.step_theta, self.inner.step_omega):
            raise InputError('inner must have numbers for steps, or "auto": the theory\'s are for the method alone.')

    def process(self, run: Iteration) -> Process:
        """See `Iterative`."""
        return Flexible(run, self.inner, self.directions)


class Flexible:
    """GCR at work."""

    def __init__(self, run: Iteration, inner: Any, directions: int) -> None:
        assert run.system is not None
        self.run, self.problem, self.system = run, run.problem, run.system
        self.direction, self.n = DIRECTIONS[inner.direction], run.problem.n_rows
        # Epochs run on columns scaled alike, where a step that suits the largest is not tiny for the others.
        self.units = units(inner, run.problem)
        self.scaled = run.problem if self.units is None else Problem(run.problem.rows.scaled(self.units))
        self.rows = self.scaled.rows.for_steps()
        self.inner = self._with_steps(inner)
        self.retries = self.age = self.kept = self.misses = self.grown = 0
        #: Whether the next direction is taken without an epoch.
        self.plain = False
        #: The last image, where the last direction lay across the residual.
        self.across: Vector | None = None
        most = min(directions, run.problem.dim)
        self.moves, self.images = (np.empty((most, run.problem.dim)) for _ in range(2))
        self._set_out()

    def visits(self) -> int:
        """See `Process`. An epoch that the budget cuts has one step at least."""
        return self.n + (self.retries <= RETRIES and not self.plain)

    def begin(self, theta: Vector, residual: Vector) -> None:
        """See `Process`. The directions and their images stay: they hold wherever theta is."""
        self.theta, self.age = theta.copy(), 0
        self.residual = self.system.left * residual
        for k in range(min(self.kept, len(self.images))):
            self._go(k)
        self.gap = float(la.norm(self.residual))

    def step(self) -> Turn:
        """See `Process`."""
        target = self.residual / self.gap if self.across is None else self.across
        proposed = None if self.plain or self.retries > RETRIES else self._epoch(target)
        move = self.system.right * target if proposed is None else proposed
        image, before = self.system.image(move), self.gap
        own = np.inf if proposed is None else float(la.norm(target - image))
        self.age += 1
        if not self._take(move, image):
            return self._missed()
        share = self.gap / before
        # What helped little is exchanged for the other: the residual itself as a direction minds no units.
        self.plain ^= share > LITTLE
        self.across = self.images[(self.kept - 1) % len(self.images)] if share > ACROSS else None
        self.misses = 0
        if proposed is not None:
            self._judge(own, share)
        return Turn.RENEW if self.age >= RENEWED else Turn.GOES_ON

    def answer(self) -> Vector:
        """See `Process`."""
        return self.theta.copy()

    def left_over(self) -> Vector:
        """See `Process`."""
        return self.residual

    def rounding(self) -> float:
        """See `Process`."""
        return np.inf

    def _judge(self, own: float, share: float) -> None:
        """Smaller steps where epochs make the residual longer by themselves and help little."""
        self.grown = self.grown + 1 if own > GREW and share > LITTLE else 0
        if self.grown >= PATIENCE or not own < EXPLODED:
            self._shrink()

    def _missed(self) -> Turn:
        """Nothing was new in a direction."""
        self.misses += 1
        if self.misses < MISSES:
            self._shrink()
            return Turn.GOES_ON
        self.kept = self.misses = 0
        self.across = None
        return Turn.STUCK

    def _epoch(self, target: Vector) -> Vector | None:
        """The displacement of an epoch whose mean is minus ``target``, scaled; None where it is of no use."""
        left = self.run.room()
        steps = self.inner.plan(self.n, self.run.epoch, self.run.rng).steps
        steps = max(1, steps if left is None else min(steps, left - self.n))
        mean = -target / np.where(self.system.left > 0, self.system.left, 1.0)
        if self.units is not None:
            mean = mean * self.units
        self.point.place(None, None)
        self.point.drift(*((None, mean) if self.direction.moves_omega else (mean, None)))
        reference, bound = loop.Fixed(0.0), OVERFLOW[4 if self.rows.dtype.itemsize == 4 else 8]
        while steps > 0:
            order = self.run.rng.integers(0, self.n, size=min(steps, CHUNK), dtype=np.int32)
            view, local = self.rows.chunk(order)
            pulled = self.point.advance(view, reference, local, order)
            self.run.steps += len(order)
            steps -= len(order)
            if not pulled < bound:
                self._shrink()
                return None
        move = self.point.read()[0]
        if self.units is not None:
            move = move * self.units
        return move if np.isfinite(move).all() and move.any() else None

    def _take(self, move: Vector, image: Vector) -> bool:
        """Keep what is new of a direction and go along it; whether there was anything."""
        count = min(self.kept, len(self.images))
        before = float(la.norm(image))
        for _ in range(2):  # twice: the images stay orthogonal to rounding
            factors = self.images[:count] @ image
            image = image - factors @ self.images[:count]
            move = move - factors @ self.moves[:count]
        size = float(la.norm(image))
        least = max(USELESS * before, ROUNDING * self.system.largest * float(la.norm(move / self.system.right)))
        if not least < size < np.inf:
            return False
        slot = self.kept % len(self.images)
        self.images[slot], self.moves[slot] = image / size, move / size
        self.kept += 1
        self._go(slot)
        self.gap = float(la.norm(self.residual))
        return True

    def _go(self, slot: int) -> None:
        """Along a kept direction, as far as the residual falls."""
        length = float(self.images[slot] @ self.residual)
        self.theta += length * self.moves[slot]
        self.residual -= length * self.images[slot]

    def _with_steps(self, inner: Any) -> Any:
        """The inner method with numbers for steps."""
        given = {"step_theta": inner.step_theta, "step_omega": inner.step_omega}
        if "auto" not in given.values():
            return inner
        self.run.setup_visits += self.n
        safe = dict(zip(given, self.direction.steps(Maxima.of(self.scaled)), strict=True))
        return replace(inner, **{name: safe[name] if value == "auto" else value for name, value in given.items()})

    def _set_out(self) -> None:
        kernel = self.direction.for_kernels(self.inner.step_theta, self.inner.step_omega, self.problem.ridge)
        self.point = point_for(self.rows, kernel, single=True)
        self.run.method = replace(self.run.method, inner=self.inner)

    def _shrink(self) -> None:
        """Smaller inner steps, and a note of it."""
        self.retries, self.grown = self.retries + 1, 0
        smaller = {name: getattr(self.inner, name) / SMALLER for name in ("step_theta", "step_omega")}
        self.inner = replace(self.inner, **smaller)
        note = f"Epochs diverged or were of no use: their steps were divided by 4, {self.retries} times"
        note += "." if self.retries <= RETRIES else ", and then left out."
        self.run.notes[:] = [old for old in self.run.notes if not old.startswith("Epochs")] + [note]
        self._set_out()
