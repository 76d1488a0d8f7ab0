"""Values from returns alone: what the log's policy earned, and importance sampling for another one.

No model is fitted here. What practitioners compare a fitted value with, on the same log, by the same draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.errors import InputError
from valuate.inference.clusters import digest
from valuate.inference.trajectories import Trajectories, read_ratios
from valuate.inference.value import PolicyValue, Source, Standing, read_confidence, student

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.transitions import Transitions

    Vector = NDArray[np.float64]

#: Importance weights that leave fewer effective episodes than this, or this share of them, deserve a remark.
FEW, SHARE = 10, 0.1


def logged_return(
    log: Transitions,
    discount: ArrayLike = 0.99,
    *,
    after: ArrayLike | None = None,
    episodes: Any = None,
    confidence: float = 0.95,
) -> PolicyValue:
    """The mean discounted return of the log's episodes: the value of the policy that collected it.

    Parameters
    ----------
    log : Transitions
        Rows of an episode one after the other, in time.
    discount : float or (n,) array
    after : (n,) array, optional
        Values of the next states, with which episodes go on that were cut short. They count as exact: where they are
        a model's of the same log, `continued_return` has an interval with the model's own error. None: what would
        have followed is left out, and a note says how many episodes that concerns and whether it makes a bound.
    episodes : (n,) labels, optional
        None: those of the log.
    confidence : float
    """
    runs = Trajectories.read(log, discount, episodes, after)
    values = runs.backward(runs.discounts, runs.rewards)[runs.first]
    return _mean(values, runs, log, confidence, "logged return")


def pdis(
    log: Transitions,
    discount: ArrayLike = 0.99,
    *,
    ratios: ArrayLike | None = None,
    after: ArrayLike | None = None,
    episodes: Any = None,
    confidence: float = 0.95,
) -> PolicyValue:
    """Per-decision importance sampling (Precup, Sutton and Singh, ICML 2000): unbiased, and of large variance.

    The mean over episodes of the sum over t of discount^t (rho_0 ... rho_t) r_t. Parameters as in `logged_return`;
    ``ratios`` (n,) are the log's where none are given.
    """
    runs, rho = Trajectories.read(log, discount, episodes, after), read_ratios(log, ratios)
    values = runs.backward(rho * runs.discounts, rho * runs.rewards)[runs.first]
    notes = _effective(runs.products(rho)[runs.last] * runs.weights)
    return _mean(values, runs, log, confidence, "PDIS", notes)


def weighted_is(
    log: Transitions,
    discount: ArrayLike = 0.99,
    *,
    per_decision: bool = True,
    ratios: ArrayLike | None = None,
    after: ArrayLike | None = None,
    episodes: Any = None,
    confidence: float = 0.95,
) -> PolicyValue:
    """Weighted importance sampling: weights are divided by their sum, which costs a bias that fades and saves variance.

    Per decision (Thomas, PhD thesis, 2015): the sum over t of discount^t times the weighted mean of r_t over episodes,
    with weights rho_0 ... rho_t. An episode that has ended stays in the mean, with its last weight and no reward.
    Otherwise the weighted mean of whole returns, with the products of all ratios of an episode. The standard error is
    that of the delta method. Parameters as in `pdis`.
    """
    runs, rho = Trajectories.read(log, discount, episodes, after), read_ratios(log, ratios)
    weights = runs.products(rho)
    final = weights[runs.last] * runs.weights
    name = "weighted PDIS" if per_decision else "weighted IS"
    if per_decision:
        value, influence = _per_decision(runs, weights)
    else:
        values = runs.backward(runs.discounts, runs.rewards)[runs.first]
        total = _positive(float(final.sum()))
        value = float(final @ values) / total
        influence = final * (values - value) / total
    return _answer(value, influence, runs, log, confidence, name, _effective(final))


def doubly_robust(
    log: Transitions,
    values: ArrayLike,
    next_values: ArrayLike,
    discount: ArrayLike = 0.99,
    *,
    action_values: ArrayLike | None = None,
    ratios: ArrayLike | None = None,
    episodes: Any = None,
    confidence: float = 0.95,
) -> PolicyValue:
    """The doubly robust estimator (Jiang and Li, ICML 2016): importance sampling of what a model leaves unexplained.

    From the end of each episode, D_t = V(s_t) + rho_t (r_t + discount D_{t+1} - Q(s_t, a_t)); where the recording was
    cut short D goes on with V of the last state. Any V and Q leave it unbiased with true ratios, but for the cut ends,
    and good ones take the variance away. That they were fitted on the same log does not matter to first order, for
    the same reason.

    Parameters
    ----------
    log : Transitions
    values, next_values : (n,) array
        The model's values of each row's state and next state under the target policy.
    discount : float or (n,) array
    action_values : (n,) array, optional
        The model's values of the logged actions. None: those of the states, which takes away less variance.
    ratios, episodes, confidence
        As in `pdis`.
    """
    n = len(log)
    state = _checks.column("values", values, n)
    own = state if action_values is None else _checks.column("action_values", action_values, n)
    runs, rho = Trajectories.read(log, discount, episodes, next_values), read_ratios(log, ratios)
    found = runs.backward(rho * runs.discounts, state + rho * (runs.rewards - own))[runs.first]
    notes = _effective(runs.products(rho)[runs.last] * runs.weights)
    return _mean(found, runs, log, confidence, "doubly robust", notes)


def baselines(
    log: Transitions,
    discount: ArrayLike = 0.99,
    *,
    ratios: ArrayLike | None = None,
    values: ArrayLike | None = None,
    next_values: ArrayLike | None = None,
    action_values: ArrayLike | None = None,
    episodes: Any = None,
    confidence: float = 0.95,
) -> dict[str, PolicyValue]:
    """What can be said of the log beside a fitted value, by name.

    The logged return always; PDIS and weighted PDIS where there are ratios; doubly robust where there are ratios and a
    model's ``values`` and ``next_values``. All but the last are as logged: what would have followed episodes that were
    cut short is left out. The doubly robust estimator is nothing without the model, and goes on with its values.
    """
    given: dict[str, Any] = {"episodes": episodes, "confidence": confidence}
    off_policy = ratios is not None or log.ratios is not None
    found = [logged_return(log, discount, **given)]
    if off_policy:
        given["ratios"] = ratios
        found += [estimator(log, discount, **given) for estimator in (pdis, weighted_is)]
        if values is not None and next_values is not None:
            found.append(doubly_robust(log, values, next_values, discount, action_values=action_values, **given))
    return {number.estimator: number for number in found}


def _per_decision(runs: Trajectories, weights: Vector) -> tuple[float, Vector]:
    """The value, and its derivative by the weight of each episode: (m,)."""
    step, longest = runs.steps(), int((runs.last - runs.first).max()) + 1
    lengths = runs.last - runs.first + 1
    counted = np.repeat(runs.weights, lengths)
    rows = counted * weights
    gone = np.bincount(lengths, rows[runs.last], longest + 1)[:longest]
    totals = np.bincount(step, rows, longest) + np.cumsum(gone)
    _positive(float(totals.min()))
    worth = runs.discounting()
    means = np.bincount(step, rows * worth * runs.rewards, longest) / totals
    # Discounts may differ between rows: the mean at a step is that of discounted rewards.
    own = rows * (worth * runs.rewards - means[step]) / totals[step]
    influence = np.add.reduceat(own, runs.first)
    later = np.append(np.cumsum((means / totals)[::-1])[::-1], 0.0)
    return float(means.sum()), influence - rows[runs.last] * later[lengths]


def _positive(total: float) -> float:
    if not total > 0:
        raise InputError("every episode has an importance weight of 0: the target never acts as the log does.")
    return total


def _effective(weights: Vector) -> list[str]:
    total, squares = float(weights.sum()), float(weights @ weights)
    effective = total**2 / squares if squares > 0 else 0.0
    if effective >= max(FEW, SHARE * len(weights)):
        return []
    return [
        f"The products of ratios leave {effective:.2g} effective of {len(weights):,} episodes: a few episodes decide, "
        "and the interval is likely to be too short."
    ]


def _mean(
    values: Vector, runs: Trajectories, log: Transitions, confidence: float, name: str, notes: Any = ()
) -> PolicyValue:
    total = float(runs.weights.sum())
    value = float(runs.weights @ values) / total
    return _answer(value, runs.weights * (values - value) / total, runs, log, confidence, name, notes)


def _answer(
    value: float, influence: Vector, runs: Trajectories, log: Transitions, confidence: float, name: str, notes: Any
) -> PolicyValue:
    confidence = read_confidence(confidence)
    label = runs.draws.codes[runs.first]
    present = np.bincount(label, runs.weights, runs.draws.count) > 0
    influence = np.asarray(np.bincount(label, influence, runs.draws.count)[present], dtype=np.float64)
    count = len(influence)
    said = [*runs.notes(), *notes]
    if count < 2:
        said.append("One episode says nothing of how episodes vary: there is no interval.")
    deviations = influence * np.sqrt(count / max(1, count - 1))
    error = float(np.sqrt(deviations @ deviations)) if count > 1 else np.inf
    return PolicyValue(
        value=value,
        standard_error=error,
        interval=student(value, error, count - 1, confidence),
        confidence=confidence,
        episodes=count,
        degrees=float(count - 1),
        method="episodes",
        estimator=f"{name}, continued by the model" if runs.cut and runs.bootstrapped else name,
        complete=not runs.cut,
        standing=Standing.DETERMINED if count > 1 else Standing.UNDETERMINED,
        notes=tuple(said),
        influence=influence,
        deviations=deviations,
        source=Source(digest(log.rewards), runs.draws.digest(), runs.discount, "first states"),
    )
