"""The paper's four tasks (section 7 and the appendix), and how a data set of one becomes a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import environments, features
from valuate.control import pairs
from valuate.experiments.plan import Data, Run, seed_of
from valuate.problem import Problem
from valuate.transitions import Transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Features below this are stored as 0: float32 holds 7 digits, and columns of nothing but dust are refused.
DUST = 1e-12
#: Stored rows times squared features up to which C is made as soon as the rows are there: more than solvers make it
#: for unasked, and less than the large data of Table 3 have, where nobody asks for it.
FORMED = 1e10


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of the paper.

    Parameters
    ----------
    title : str
    environment : callable
        From the time limit (None: its own).
    features : callable, optional
        Makes the features of states; None where the environment has its own.
    pair_features : callable, optional
        The same, where action values are estimated.
    discount, ridge : float
    dim : int
        Features of a state.
    n_actions : int
    """

    title: str
    environment: Callable[..., Any]
    features: Callable[[], Any] | None = None
    pair_features: Callable[[], Any] | None = None
    discount: float
    ridge: float = 0.0
    dim: int
    n_actions: int


#: Empirical A and C are singular in all tasks but the first: there the paper adds 1e-5 I to both and to every row's.
TASKS: dict[str, Task] = {
    "random-mdp": Task(
        title="Random MDP",
        environment=environments.RandomMDP,
        discount=0.95,
        dim=201,
        n_actions=10,
    ),
    "mountain-car": Task(
        title="Mountain Car",
        environment=environments.MountainCar,
        features=features.mountain_car,
        pair_features=features.mountain_car,
        discount=0.99,
        ridge=1e-5,
        dim=100,
        n_actions=3,
    ),
    "cart-pole": Task(
        title="Cart Pole",
        environment=lambda **options: environments.CartPole(reward="failure", **options),
        features=features.cart_pole,
        pair_features=features.cart_pole,
        discount=0.99,
        ridge=1e-5,
        dim=81,
        n_actions=2,
    ),
    "acrobot": Task(
        title="Acrobot",
        environment=environments.Acrobot,
        # Cosines and sines, as the text says, where values of states are estimated; with them no policy swings up, and
        # the control scores come about with cosines and velocities.
        features=lambda: features.acrobot((0, 1, 2, 3)),
        pair_features=lambda: features.acrobot((0, 2, 4, 5)),
        discount=0.9,
        ridge=1e-5,
        dim=81,
        n_actions=3,
    ),
}


@dataclass(slots=True)
class Loaded:
    """A data set in memory.

    Attributes
    ----------
    environment : environment
    problem : Problem
    feature_map : feature map
        Of pairs where action values are estimated.
    facts : dict
        Rows, features, and how many rows ended, for the record.
    """

    environment: Any
    problem: Problem
    feature_map: Any
    facts: dict[str, Any]


def load(data: Data, root: int, run: int) -> Loaded:
    """Collect the data set of a run and make the problem of it."""
    task = TASKS[data.task]
    seed = seed_of(root, "data", data.key(run))
    if task.features is None:
        return _load_tabular(data, task, root, seed)
    environment = task.environment() if data.limit is None else task.environment(limit=data.limit)
    log = environment.collect(data.rows, seed=seed, next_actions=data.pairs)
    facts = {
        "rows": data.rows,
        "dim": task.dim * (task.n_actions if data.pairs else 1),
        "terminated": int(log.terminated.sum()),
        "truncated": int(log.truncated.sum()),
    }
    if data.pairs:
        assert task.pair_features is not None
        feature_map: Any = features.StateActionBlocks(task.pair_features(), task.n_actions, sparse_output=False)
        read = pairs(log)
    else:
        feature_map = task.features()
        read = log
    if not data.right_ends:
        read = _without_ends(read)
    transform = _Single(feature_map) if data.pairs else feature_map
    problem = settled(Problem.from_transitions(read, transform, discount=task.discount, ridge=task.ridge))
    return Loaded(environment, problem, feature_map, facts)


def _load_tabular(data: Data, task: Task, root: int, seed: int) -> Loaded:
    """A task with finitely many states: the process is the same in all experiments of a root seed."""
    environment = task.environment(seed=seed_of(root, "process", data.task))
    log = environment.collect(data.rows, seed=seed)
    problem = Problem.from_table(
        environment.table, log.states, log.rewards, log.next_states, discount=task.discount, ridge=task.ridge
    )
    facts = {"rows": data.rows, "dim": task.dim, "terminated": 0, "truncated": int(log.truncated.sum())}
    return Loaded(environment, settled(problem), environment.features, facts)


def settled(problem: Problem) -> Problem:
    """The problem, knowing b and C (without its matrix where that is large) from the start.

    What it knows decides how A and C are rounded, in which norm solvers measure and how many visits that costs. Left
    to the runs, a record would depend on those that were made before it in the same process.
    """
    _ = problem.b, problem.diagonal
    if problem.rows.n_stored * problem.dim**2 <= FORMED:
        problem.metric()
    return problem


def _without_ends(log: Transitions) -> Transitions:
    """The log as if no episode ever ended: each row goes on from its own last observation."""
    return Transitions(log.states, log.rewards, log.next_states)


class _Single:
    """Features of pairs in float32: a million rows of 300 features fit in 1.2 GB."""

    def __init__(self, feature_map: features.StateActionBlocks) -> None:
        self.feature_map = feature_map

    def transform(self, given: Any) -> NDArray[np.float32]:
        """One block an action, (m, n_actions * d)."""
        states, actions = self.feature_map.split(given)
        rows = self.feature_map.state_features(states)
        rows[rows < DUST] = 0.0
        out = np.zeros((len(rows), self.feature_map.n_actions, rows.shape[1]), np.float32)
        out[np.arange(len(rows)), actions] = rows
        return out.reshape(len(rows), -1)


def effort(run: Run) -> float:
    """About how many seconds a run takes, for a progress bar."""
    data, task = run.cell.data, TASKS[run.cell.task]
    dim = task.dim * (task.n_actions if data.pairs else 1)
    passes = run.cell.passes if run.cell.epochs is None else 1.6 * run.cell.epochs
    visits = data.rows * (1.0 if passes is None else passes)
    own = data.rows * dim * 2e-8 / 6 if data.fresh else 0.0
    return 0.02 + visits * (20 + 0.3 * dim) * 1e-9 + own + 1e-3 * run.cell.episodes
