"""LSTD(lambda): both off-policy forms against explicit loops, Monte Carlo returns, episodes that are not known."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from valuate import LSTD, Problem, Status, Transitions, gathering
from valuate.episodes import Episodes
from valuate.errors import InputError, InputTypeError, SolverError

LAYOUTS = ("dense", "indexed", "sparse")
FORMS = ("row", "next")


def refuses(kind, message):
    return pytest.raises(kind, match=re.escape(message))


class Log:
    """Random episodes of 1 to 20 rows over 9 states, with everything that a row can have."""

    def __init__(self, n=150, dim=4, seed=0, ratios=True, weights=True, dtype=np.float64):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(1, 21, n)
        self.episodes = np.repeat(np.arange(n), lengths)[:n]
        self.table = (rng.normal(size=(9, dim)) * (rng.random((9, dim)) < 0.8)).astype(dtype)
        self.states, self.followers = rng.integers(0, 9, (2, n))
        inside = self.episodes[1:] == self.episodes[:-1]
        self.followers[:-1][inside] = self.states[1:][inside]
        self.rewards = rng.normal(size=n)
        self.terminated = np.append(~inside, True) & (rng.random(n) < 0.6)
        self.discounts = np.where(self.terminated, 0.0, rng.uniform(0.6, 0.99, n))
        self.ratios = rng.choice([0.0, 0.6, 1.4], n) if ratios else np.ones(n)
        self.weights = rng.choice([0.5, 1.0, 3.0], n) if weights else np.ones(n)

    def problem(self, layout="dense", ridge=0.0, **changes):
        scalars = {"discount": self.discounts, "ratios": self.ratios, "weights": self.weights}
        scalars |= {"episodes": self.episodes, "ridge": ridge, **changes}
        if layout == "indexed":
            return Problem.from_table(self.table, self.states, self.rewards, self.followers, **scalars)
        phi, following = self.table[self.states], self.table[self.followers]
        if layout == "sparse":
            phi, following = sp.csr_array(phi), sp.csr_array(following)
        return Problem.from_arrays(phi, self.rewards, following, **scalars)

    def loop(self, decay, form, ridge=0.0):
        """A and b, one row after the other as they are printed."""
        dim = self.table.shape[1]
        a, b, trace = np.zeros((dim, dim)), np.zeros(dim), np.zeros(dim)
        for t in range(len(self.states)):
            phi = self.table[self.states[t]].astype(float)
            ahead = self.table[self.followers[t]].astype(float)
            if t == 0 or self.episodes[t] != self.episodes[t - 1]:
                trace = np.zeros(dim)
            else:
                trace = self.discounts[t - 1] * decay * self.ratios[t - 1] * trace
            trace = trace + phi
            rho, weight = self.ratios[t], self.weights[t] / self.weights.sum()
            if form == "row":
                a += weight * rho * np.outer(trace, phi - self.discounts[t] * ahead)
            else:
                a += weight * np.outer(trace, phi - self.discounts[t] * rho * ahead)
            b += weight * rho * self.rewards[t] * trace
        return a + ridge * np.eye(dim), b


@pytest.mark.parametrize("decay", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_forms_are_their_loops(layout, form, decay):
    log = Log()
    for ridge in (0.0, 0.05):
        a, b = log.loop(decay, form, ridge)
        solution = LSTD(trace_decay=decay, ratio_on=form).solve(log.problem(layout, ridge))
        np.testing.assert_allclose(solution.theta, np.linalg.solve(a, b), rtol=1e-9)
        assert solution.status is Status.CONVERGED and solution.relative_residual < 1e-12
        assert (solution.row_visits, solution.passes, solution.setup_visits) == (150, 1.0, 0)
        assert solution.solver == LSTD(trace_decay=decay, ratio_on=form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_blocks_carry_the_trace_on(form, threads, monkeypatch):
    """Blocks of 16 rows cut through episodes, threads share the columns, single precision is summed in double."""
    monkeypatch.setattr(gathering, "FEWEST", 16)
    monkeypatch.setattr(gathering, "ENTRIES", 16)
    monkeypatch.setattr(gathering, "WORTH", 8)
    monkeypatch.setattr(gathering, "NARROW", 1)
    monkeypatch.setenv("VALUATE_NUM_THREADS", threads)
    log = Log(n=400, dim=27, dtype=np.float32)
    for layout in LAYOUTS:
        problem = log.problem(layout)
        sums = problem.rows.traced(problem.episodes.starts(), 0.8, form)
        a, b = log.loop(0.8, form)
        np.testing.assert_allclose(sums.A / 400, a, rtol=0, atol=1e-14 * 400)
        np.testing.assert_allclose(sums.b / 400, b, rtol=0, atol=1e-14 * 400)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_decay_it_is_lstd(layout):
    problem = Log().problem(layout)
    wanted = LSTD().solve(problem)
    found = LSTD(trace_decay=0.0).solve(problem)
    np.testing.assert_array_equal(found.theta, wanted.theta)
    # The general way, with a decay too small to count, ends at the same point.
    near = LSTD(trace_decay=1e-300).solve(problem)
    np.testing.assert_allclose(near.theta, wanted.theta, rtol=1e-11)


def test_without_decay_the_other_form_needs_no_episodes():
    log = Log()
    solution = LSTD(ratio_on="next").solve(log.problem(episodes=None))
    np.testing.assert_allclose(solution.theta, np.linalg.solve(*log.loop(0.0, "next")), rtol=1e-9)
    assert np.abs(solution.theta - LSTD().solve(log.problem()).theta).max() > 1e-3


@pytest.mark.parametrize("decay", [0.0, 0.7, 1.0])
def test_on_policy_the_forms_are_one(decay):
    problem = Log(ratios=False).problem()
    one, other = (LSTD(trace_decay=decay, ratio_on=form).solve(problem).theta for form in FORMS)
    np.testing.assert_allclose(one, other, rtol=1e-11)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_with_decay_1_it_regresses_on_the_returns(layout):
    log = Log(ratios=False, weights=False)
    ends = np.append(log.episodes[1:] != log.episodes[:-1], True)
    log.discounts = np.where(ends, 0.0, 0.9)
    returns = np.zeros(len(ends))
    after = 0.0
    for t in reversed(range(len(ends))):
        after = returns[t] = log.rewards[t] + log.discounts[t] * after
    wanted = np.linalg.lstsq(log.table[log.states], returns, rcond=None)[0]
    found = LSTD(trace_decay=1.0).solve(log.problem(layout)).theta
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_the_forms_meet_as_the_log_grows():
    """Two actions in three states; the ratio corrects a fair coin to one of .8. What they meet at is the value."""
    rng = np.random.default_rng(5)
    table, gamma, decay = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), 0.8, 0.6
    differences = []
    for n in (2_000, 200_000):
        actions = rng.integers(0, 2, n)
        states = np.cumsum(np.append(0, np.where(actions, 1, 2)))[:n] % 3
        following = np.append(states[1:], 0)
        ratios, rewards = np.where(actions, 1.6, 0.4), states + actions
        problem = Problem.from_table(
            table, states, rewards, following, discount=gamma, ratios=ratios, episodes=np.zeros(n, int)
        )
        one, other = (LSTD(trace_decay=decay, ratio_on=form).solve(problem).theta for form in FORMS)
        differences.append(np.abs(one - other).max())
    assert differences[1] < 0.3 * differences[0] and differences[1] < 0.05
    # The fixed point in expectation: the coin visits all states alike.
    step = np.array([[0.0, 0.8, 0.2], [0.2, 0.0, 0.8], [0.8, 0.2, 0.0]])
    sums = np.linalg.inv(np.eye(3) - gamma * decay * step)
    a = table.T @ sums @ (np.eye(3) - gamma * step) @ table
    wanted = np.linalg.solve(a, table.T @ sums @ (np.arange(3) + 0.8))
    np.testing.assert_allclose(one, wanted, atol=0.1)
    np.testing.assert_allclose(other, wanted, atol=0.1)


def test_weights_of_episodes_repeat_them():
    log = Log(weights=False)
    counts = np.random.default_rng(1).integers(0, 4, log.episodes.max() + 1)
    log.weights = counts[log.episodes].astype(float)
    rows = np.concatenate([np.tile(np.flatnonzero(log.episodes == k), counts[k]) for k in range(len(counts))])
    again = Log(weights=False)
    for name in ("states", "followers", "rewards", "discounts", "ratios"):
        setattr(again, name, getattr(log, name)[rows])
    lengths = np.repeat(np.bincount(log.episodes), counts)
    again.episodes, again.weights = np.repeat(np.arange(len(lengths)), lengths), np.ones(len(rows))
    for form in FORMS:
        one, other = (LSTD(trace_decay=0.7, ratio_on=form).solve(each.problem()).theta for each in (log, again))
        np.testing.assert_allclose(one, other, rtol=1e-9)


# ---- episodes


def test_a_log_knows_its_episodes():
    rng = np.random.default_rng(2)
    episodes = [(rng.normal(size=(k + 1, 3)), None, rng.normal(size=k), bool(k % 2)) for k in (5, 1, 8, 3)]
    log = Transitions.from_episodes(episodes)
    problem = Problem.from_transitions(log, discount=0.9)
    np.testing.assert_array_equal(np.flatnonzero(problem.episodes.starts()), [0, 5, 6, 14])
    discounts = np.where(log.terminated, 0.0, 0.9)
    same = Problem.from_arrays(log.states, log.rewards, log.next_states, discount=discounts, episodes=log.episodes)
    one, other = (LSTD(trace_decay=0.8).solve(each) for each in (problem, same))
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-12)
    assert problem.with_ridge(0.1).episodes is problem.episodes


def test_flags_end_an_episode_whatever_its_label():
    states = np.arange(6.0)[:, None]
    truncated = [False, True, False, False, False, False]
    log = Transitions(states, np.ones(6), states + 1, truncated=truncated, episodes=["a"] * 4 + ["b"] * 2)
    assert list(np.flatnonzero(Problem.from_transitions(log).episodes.starts())) == [0, 2, 4]


def test_labels_of_any_kind():
    for labels in ([1, 1, 2], ["x", "x", "y"], [("x", 1), ("x", 1), ("x", 2)], [1, 1, "a"], np.array([0.5, 0.5, 1.5])):
        assert list(Episodes.read(labels, 3).starts()) == [True, False, True]


def test_unknown_episodes_are_refused():
    log = Log()
    with refuses(InputError, "trace_decay above 0 needs to know where episodes start, and this problem does not."):
        LSTD(trace_decay=0.5).solve(log.problem(episodes=None))
    plain = Transitions(log.table[log.states], log.rewards, log.table[log.followers])
    with refuses(InputError, "episodes = np.cumsum(ends) - ends"):
        LSTD(trace_decay=0.5).solve(Problem.from_transitions(plain))
    with refuses(InputError, "episodes has 3 entries and the log has 150 rows"):
        log.problem(episodes=[1, 2, 3])
    mixed = log.episodes.copy()
    mixed[100] = 0
    with refuses(InputError, "episode 0 goes on at row 100 after rows of another one. Traces need"):
        LSTD(trace_decay=0.5).solve(log.problem(episodes=mixed))
    LSTD().solve(log.problem(episodes=mixed))  # where the order does not matter
    with refuses(InputError, "episode ('b',) goes on at row 2 after"):
        Episodes.read([("b",), "a", ("b",)], 3).starts()


def test_weights_of_0_inside_an_episode_are_refused():
    log = Log()
    row = int(np.flatnonzero(log.episodes[1:] == log.episodes[:-1])[3])
    log.weights[row] = 0.0
    with refuses(InputError, f"row {row} has weight 0 and its episode goes on with weights above 0"):
        LSTD(trace_decay=0.5).solve(log.problem())
    log.weights[log.episodes == log.episodes[row]] = 0.0
    found = LSTD(trace_decay=0.5).solve(log.problem())
    np.testing.assert_allclose(found.theta, np.linalg.solve(*log.loop(0.5, "row")), rtol=1e-9)


def test_traces_that_grow_for_ever_are_refused():
    n = 4000
    states = np.arange(n) % 2
    problem = Problem.from_table(
        np.eye(2), states, np.ones(n), 1 - states, discount=0.9, ratios=np.full(n, 3.0), episodes=np.zeros(n, int)
    )
    for decay in (0.9, 1.0):
        with refuses(
            InputError, f"the traces grow beyond float64: discount * ratio * trace_decay {decay:g} is above 1"
        ):
            LSTD(trace_decay=decay).solve(problem)
    assert np.isfinite(LSTD(trace_decay=0.3).solve(problem).theta).all()


# ---- statuses and arguments


def test_singular_equations_say_so():
    """A closed loop without a discount: the values of its states are known up to a number."""
    for rewards, status, word in (
        ([1.0, -1.0, 0.0], Status.CONVERGED, "the equations hold, the weights are the smallest"),
        ([1.0, 0.0, 0.0], Status.SINGULAR, "A theta = b has no solution"),
    ):
        problem = Problem.from_table(np.eye(3), [0, 1, 2], rewards, [1, 2, 0], discount=1.0, episodes=[0, 1, 2])
        solution = LSTD(trace_decay=0.5).solve(problem)
        assert solution.status is status and "A has rank 2 of 3" in solution.message and word in solution.message
        np.testing.assert_allclose(solution.theta, LSTD().solve(problem).theta, atol=1e-12)
    with pytest.raises(SolverError, match="Not determined"):
        solution.require()


def test_settings():
    for decay in (-0.1, 1.1, np.nan):
        with refuses(InputError, "trace_decay must be"):
            LSTD(trace_decay=decay)
    with refuses(InputTypeError, "trace_decay must be a real number"):
        LSTD(trace_decay="all")
    with refuses(InputError, 'ratio_on must be "row" or "next", not "both"'.replace('"both"', "'both'")):
        LSTD(ratio_on="both")
    assert repr(LSTD(trace_decay=0.5, ratio_on="next")) == "LSTD(trace_decay=0.5, ratio_on='next')"
    assert LSTD(trace_decay=0) == LSTD() and LSTD(trace_decay=0.5) != LSTD()


def test_all_rewards_zero():
    log = Log()
    log.rewards = np.zeros(150)
    solution = LSTD(trace_decay=0.5).solve(log.problem())
    assert solution.status is Status.CONVERGED and not solution.theta.any()
