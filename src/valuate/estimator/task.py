"""What is evaluated on a log: state values or action values, of which policy; and the problem that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.errors import InputError
from valuate.estimator import inputs, mapping, policies
from valuate.estimator.coordinates import WithConstant
from valuate.estimator.entries import Entries
from valuate.estimator.frames import take
from valuate.estimator.policies import Policy
from valuate.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.estimator.inputs import Given
    from valuate.estimator.mapping import Blocks, Pairs, States

    Vector = NDArray[np.float64]
    Map = States | Pairs | Blocks

#: States that a policy is asked about at a time.
BLOCK = 1 << 14


@dataclass(slots=True, eq=False)
class Task:
    """A log, features and what happens in the next states.

    Attributes
    ----------
    given : Given
        Its log has the ratios that are used.
    map : States, Pairs or Blocks
    kind : {"state", "action"}
    policy : Policy or None
        That is evaluated, where it is a function.
    sentence : str
        What is evaluated.
    note : str
        What was chosen for the features.
    """

    given: Given
    map: Map
    kind: str
    policy: Policy | None
    sentence: str
    note: str = ""

    def problem(self, unit: float, discount: float, ridge: float) -> Problem:
        """The problem, with a constant column of this value behind the features; none for 0."""
        log, rows = self._rows()
        wrapped: Callable[[Any], Any] = WithConstant(rows, unit) if unit else rows
        return Problem.from_transitions(log, wrapped, discount=discount, ridge=ridge)

    def sample(self, most: int = 64) -> Any:
        """Features of some rows spread over the log."""
        places = np.unique(np.linspace(0, len(self.given) - 1, most).astype(np.int64))
        return self.map.rows(self.given.some_states(places), self.given.actions_for(places))

    def initial(self, places: Any) -> Any:
        """Features of the states of these rows; for action values with the policy's actions, else the rows' own."""
        states = self.given.some_states(places)
        if self.kind == "state" or self.policy is None:
            return self.map.rows(states, self.given.actions_for(places))
        return mapping.decided(self.map, states, self.policy(states, places), places)

    def ending(self, discount: float) -> float:
        """Weighted mean of ratio * (1 - discount), the discount being 0 where a row ended."""
        log = self.given.log
        share = np.where(log.terminated, 1.0, 1.0 - discount)
        if log.ratios is not None:
            share = share * log.ratios
        return float(np.average(share, weights=log.weights))

    def _rows(self) -> tuple[Any, Callable[[Any], Any]]:
        """A log, and what makes feature rows of its states."""
        given = self.given
        if self.kind == "state" and given.frames is None:
            return given.log, self.map.rows
        entries = Entries(given, self.kind, self.map, self.policy)
        return entries.log, entries.rows


def plan(model: Any, given: Given, *, fit: bool, map: Map | None = None) -> Task:
    """Decide what is evaluated.

    Parameters
    ----------
    model : LinearValue
    given : Given
    fit : bool
        Whether features may be fitted.
    map : optional
        Features that are there already.
    """
    kind = _kind(model, given) if map is None else model.kind_
    discrete = given.actions is None or given.numbers is not None
    asked = None if model.policy is None else Policy(model.policy, discrete=discrete)
    if kind == "state":
        given, sentence = _ratios(given, asked, model, fit)
        found, note = (map, "") if map is not None else mapping.of_states(given, model.features, fit=fit)
        return Task(given, found, "state", asked, sentence, note)
    if map is not None and not (model._follows or asked or given.chosen or given.next_probabilities is not None):
        raise InputError(
            "the model was fitted with the next actions of another policy than the log's: give them again, with "
            "next_probabilities= or next_actions=, or set its policy."
        )
    if given.actions is None:
        raise InputError("action values need the actions of the log: give actions=, or a log that has them.")
    n_actions = None if given.numbers is None else _n_actions(given, asked, model.features, map)
    found, note = (map, "") if map is not None else mapping.of_pairs(given, model.features, n_actions, fit=fit)
    if isinstance(found, mapping.Blocks) and given.numbers is None:
        raise InputError(
            "actions must be whole numbers from 0 for one block of features an action. Number them with "
            "np.unique(actions, return_inverse=True)[1], or give features of pairs: a function of (states, actions)."
        )
    if given.numbers is not None and found.n_actions is not None:
        policies.require_known("actions", given.numbers, found.n_actions)
        if given.next_probabilities is not None and given.next_probabilities.shape[1] != found.n_actions:
            count = given.next_probabilities.shape[1]
            raise InputError(f"next_probabilities are of {count} actions and there are {found.n_actions}.")
    return Task(given, found, "action", asked, _actions_sentence(given, asked, found), note)


def _kind(model: Any, given: Given) -> str:
    """Whether state values or action values are evaluated, where the model leaves it open."""
    if model.values not in ("auto", "state", "action"):
        raise InputError(f'values must be "auto", "state" or "action", not {model.values!r}.')
    if model.values != "auto":
        return str(model.values)
    if given.next_probabilities is not None or (given.chosen and given.actions is not None):
        return "action"
    if mapping.form_of(model.features) and given.actions is not None:
        return "action"
    if model.policy is not None and given.actions is not None and given.logged is None:
        return "action"
    return "state"


def _ratios(given: Given, asked: Policy | None, model: Any, whole: bool) -> tuple[Given, str]:
    """For state values: the log with the ratios that lead from its policy to the one asked for, and a sentence.

    ``whole`` says that the log is all there is; a batch or a fold may lack an action by chance.
    """
    log, form = given.log, getattr(model.solver, "ratio_on", "row")
    where = "on the next value" if form == "next" else "on its row"
    if given.next_probabilities is not None:
        raise InputError('next_probabilities are for action values: values="action".')
    if asked is None:
        if log.ratios is None:
            return given, "State values of the policy that wrote the log."
        return given, f"State values by the importance ratios of the log, each {where}."
    if log.ratios is not None:
        raise InputError(
            'the log has ratios already, and policy= would make others. Give one of them (or values="action", where '
            "a policy needs no ratios)."
        )
    if given.logged is None or given.actions is None:
        lacks = "actions" if given.actions is None else "probabilities"
        raise InputError(
            f"state values of another policy need importance ratios, and the log has no {lacks}. Give actions= and "
            "probabilities= (with which the logging policy took them), or ratios=; or evaluate action values, "
            'which need actions alone: values="action".'
        )
    if given.numbers is None:
        raise InputError("importance ratios of a policy need actions that are whole numbers from 0; or give ratios=.")
    ratios, unseen = np.empty(len(given)), policies.Unseen(given.numbers, log.weights)
    for first in range(0, len(given), BLOCK):
        rows = np.arange(first, min(first + BLOCK, len(given)))
        decisions = asked(take(given.states, rows), rows)
        if decisions.probabilities is not None:
            policies.require_known("actions", given.numbers[rows], decisions.probabilities.shape[1], rows)
        unseen.look(decisions, rows)
        ratios[rows] = decisions.of(given.numbers[rows]) / given.logged[rows]
    if whole and not ratios.any():
        raise InputError(
            f"the policy takes the logged action in none of the {len(given):,} rows, so that every importance ratio is "
            f"0 and the log says nothing of it. {unseen.taken()} Do both number the actions alike?"
        )
    unseen.tell(whole)
    given.log = inputs.with_ratios(log, ratios)
    squares = float(np.square(ratios).sum())
    effective = float(ratios.sum()) ** 2 / squares if squares > 0 else 0.0
    return given, (
        "State values of the given policy, by importance ratios from the logged probabilities, each "
        f"{where}; {effective:,.0f} of {len(given):,} rows are effective."
    )


def _n_actions(given: Given, asked: Policy | None, wanted: Any, map: Map | None) -> int:
    """How many actions there are: what features or probabilities say, else one more than the largest that is seen."""
    assert given.numbers is not None
    known = getattr(map, "n_actions", None) or getattr(wanted, "n_actions", None)
    if known is not None:
        return _checks.whole("n_actions", known, low=1)
    if given.next_probabilities is not None:
        return int(given.next_probabilities.shape[1])
    most = int(given.numbers.max())
    if asked is not None and not given.chosen:
        goes_on = np.flatnonzero(~given.ended)
        for first in range(0, len(goes_on), BLOCK):
            rows = goes_on[first : first + BLOCK]
            decisions = asked(take(given.next_states, rows), rows)
            if decisions.probabilities is not None:
                return int(decisions.probabilities.shape[1])
            most = max(most, int(decisions.actions.max()))
    elif given.next_actions is not None:
        following = policies.numbered(given.next_actions[~given.ended])
        most = most if following is None else max(most, int(following.max()))
    return most + 1


def _actions_sentence(given: Given, asked: Policy | None, map: Any) -> str:
    extra = "" if given.log.ratios is None else " Rows count by the ratios of the log, which action values do not need."
    if given.next_probabilities is not None:
        return f"Action values, next features expected over the {map.n_actions} actions by next_probabilities.{extra}"
    if asked is not None and not given.chosen:
        over = f", next features expected over its {map.n_actions} actions" if map.n_actions is not None else ""
        return f"Action values of the given policy{over}.{extra}"
    if given.next_actions is None and not given.ended.all():
        raise InputError(
            "action values need to know what happens in the next states: give policy=, next_probabilities= or "
            "next_actions=. (For the policy that wrote the log, next_actions are those of the following rows.)"
        )
    return f"Action values of the policy that took the next actions.{extra}"
