"""A log whose states are entries: pairs of state and action, next states under a policy, rows of data frames.

`Problem.from_transitions` asks for the features of entries by their numbers, in blocks, each entry once. So expected
features are formed a block at a time, and where a log visits few states there are few entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks, distinct
from valuate.estimator import mapping, policies
from valuate.estimator.frames import take
from valuate.estimator.policies import Decisions
from valuate.transitions import Transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.estimator.inputs import Given
    from valuate.estimator.policies import Policy

    Index = NDArray[np.int64]


class Entries:
    """The entries of a log, those of states first, and the log over their numbers.

    Attributes
    ----------
    log : Transitions
        As the given one, with numbers of entries for states.
    """

    def __init__(self, given: Given, kind: str, map: Any, policy: Policy | None) -> None:
        self.given, self.kind, self.map, self.policy = given, kind, map, policy
        n = len(given)
        #: The row of the log that stands for each entry of a state, and of a next state.
        self.heads, self.nexts = np.arange(n), np.arange(n)
        here, there = np.arange(n), np.arange(n)
        if kind == "action" and given.frames is None:
            found = self._few()
            if found is not None:
                (self.heads, here), (self.nexts, there) = found
        log = given.log
        self.log = Transitions(
            here,
            log.rewards,
            len(self.heads) + there,
            terminated=log.terminated,
            truncated=log.truncated,
            ratios=log.ratios,
            weights=log.weights,
            episodes=log.episodes,
        )

    def rows(self, numbers: Any) -> Any:
        """Features of entries by their numbers: (m, d), dense or sparse."""
        of_next = numbers >= len(self.heads)
        if not of_next.any():
            return self._heads(self.heads[numbers])
        if of_next.all():
            return self._nexts(self.nexts[numbers - len(self.heads)])
        parts = self._heads(self.heads[numbers[~of_next]]), self._nexts(self.nexts[numbers[of_next] - len(self.heads)])
        order = np.empty(len(numbers), np.int64)
        order[np.flatnonzero(~of_next)] = np.arange(len(numbers) - of_next.sum())
        order[np.flatnonzero(of_next)] = np.arange(len(numbers) - of_next.sum(), len(numbers))
        if _checks.is_sparse(parts[0]):
            from scipy import sparse

            return sparse.vstack(parts, format="csr")[order]
        return np.concatenate(parts)[order]

    def _heads(self, rows: Index) -> Any:
        """Features of the states of these rows, with their actions."""
        return self.map.rows(take(self.given.states, rows), self.given.actions_for(rows))

    def _nexts(self, rows: Index) -> Any:
        """Features of the next states of these rows, with what happens in them."""
        states = take(self.given.next_states, rows)
        if self.kind == "state":
            return self.map.rows(states)
        return mapping.decided(self.map, states, self._decisions(states, rows), rows)

    def _decisions(self, states: Any, rows: Index) -> Decisions:
        given = self.given
        if given.next_probabilities is not None:
            return Decisions(given.next_probabilities[rows], None)
        if self.policy is not None and not given.chosen:
            return self.policy(states, rows)
        following = given.next_actions[rows]
        if given.numbers is None:
            return Decisions(None, following)
        found = policies.numbered(following)
        if found is None:
            raise policies.not_numbered("next_actions")
        return Decisions(None, found)

    def _few(self) -> tuple[tuple[Index, Index], tuple[Index, Index]] | None:
        """For states and for next states, a row for each distinct entry and the entry of each row; None: not few."""
        given = self.given
        found = None if given.numbers is None else distinct.few_states(given.log, given.ended)
        if found is None:
            return None
        assert given.numbers is not None
        state, follower = (np.asarray(part, dtype=np.int64) for part in found[1:])
        everything = np.arange(len(given))
        heads = _firsts(state * (int(given.numbers.max()) + 1) + given.numbers, everything)
        goes_on = np.flatnonzero(~given.ended)
        if not len(goes_on):
            return heads, (everything[:1], np.zeros(len(given), np.int64))
        if given.next_probabilities is None and (self.policy is None or given.chosen):
            after = policies.numbered(given.next_actions[goes_on])
            if after is None:
                raise policies.not_numbered("next_actions")
            follower[goes_on] = follower[goes_on] * (int(after.max()) + 1) + after
        nexts = _firsts(follower, goes_on)
        if given.next_probabilities is not None:
            same = given.next_probabilities[nexts[0]][nexts[1]] == given.next_probabilities
            if not same[goes_on].all():
                return None
        return heads, nexts


def _firsts(codes: Index, rows: Index) -> tuple[Index, Index]:
    """For codes of some rows: the first row of each, and the place of every row's code among them; 0 for other rows."""
    _, first, found = np.unique(codes[rows], return_index=True, return_inverse=True)
    places = np.zeros(len(codes), np.int64)
    places[rows] = found.reshape(-1)
    return rows[first], places
