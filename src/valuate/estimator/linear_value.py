"""The estimator: a log in, values out, in scikit-learn's ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from valuate import _checks
from valuate.errors import InputError
from valuate.estimator import fitting, inputs, pipelines, pricing, running, saving, task

if TYPE_CHECKING:
    import os

    from valuate.inference import PolicyValue


class LinearValue(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The value of states, or of actions in states, as a linear function of features, from a log.

    The weights solve the linear TD equations of the log, A theta = b: LSTD's fixed point, by whatever solver. An
    intercept is fitted beside them, which the ridge never shrinks.

    Parameters
    ----------
    features : None, str, transformer or callable
        What turns states into rows of numbers. None: the states, vectors of numbers, as they are. "auto": chosen from
        the log; ``features_note_`` says what. Another text: a short description as "tiles:8x16"; see
        `valuate.features.from_text`. A transformer, or a Pipeline of them: a copy is fitted on the states (not on the
        next states). A callable from m states to (m, d). For action values, features of states are put into one block
        for each action; features of pairs are a `valuate.features.StateActionBlocks`, a callable of (states, actions),
        or a transformer of tuples with ``takes_pairs = True``; where actions are no whole numbers, a transformer of
        states gets their numbers behind those of the states.
    discount : float
        In [0, 1]. Nothing is discounted beyond a row that terminated.
    solver : str or solver
        "auto", a name such as "lstd" or "gmres", or a solver such as ``va.SVRG(step_theta=1e-3)``.
    ridge : float
        On the weights and not on the intercept. Where every row ends, the model is scikit-learn's
        ``Ridge(alpha=n * ridge)``, n the sum of the weights of the rows.
    fit_intercept : bool
        Whether the constant is among the features. Where there is no ridge and the features contain it already, as
        indicators and tiles do, nothing is added and ``intercept_`` is 0.
    policy : callable, optional
        The policy that is evaluated; None: the one that wrote the log (or, for action values, that took the next
        actions). From m states to probabilities (m, n_actions) or actions (m,), each state by itself; or a classifier
        with ``predict_proba``.
    random_state : int, Generator, RandomState or None
        Of the solver, where it draws.
    values : {"auto", "state", "action"}
        Whether the features are those of states or of states and actions. "auto": "action" where the features take
        pairs, where next probabilities or next actions are given to `fit`, or where there is a policy, and actions
        without the probabilities with which they were taken; "state" otherwise.
    tolerance : float, None or "auto"
        Relative residual at which the solver may stop. "auto": 1e-8; ``solver="auto"`` stops by itself, a hundredth of
        a standard error from the answer of the log, in the norm of the MSPBE. Of what is left, `policy_value` takes
        out what the value sees of it. None leaves the end to the solver.
    passes : float or None
        The solver's budget, over the rows; None: its own.

    Attributes
    ----------
    coef_ : (d,) array
    intercept_ : float
    solution_ : Solution
        How the solver ended, in the coordinates of ``problem_``.
    problem_ : Problem
        What was solved, rows and all: features and, where one was fitted, a constant column. Not there after
        `partial_fit`, nor in a model from a file.
    n_iter_ : int
        Epochs of the solver.
    features_ : as ``features``
        Fitted; a `StateActionBlocks` where states' features were put into blocks.
    features_note_, evaluates_ : str
        What "auto" chose; what is evaluated, with the form of importance ratios.
    kind_ : {"state", "action"}
    reference_ : Reference
        The space that `score` measures in.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where states came in a data frame.
    reading_ : Reading or None
        Where it was fitted to a log: how that was read. In a model from a file, what concerns states and actions: the
        names of their columns, and what the numbers of texts stand for.

    Examples
    --------
    >>> import valuate as va
    >>> log = va.environments.RandomWalk().collect(5_000, seed=0)  # doctest: +SKIP
    >>> model = va.LinearValue(features=va.features.Tabular(5), discount=1.0).fit(log)  # doctest: +SKIP
    >>> model.predict(np.arange(5))  # doctest: +SKIP
    """

    def __init__(
        self,
        features: Any = None,
        discount: float = 0.99,
        solver: Any = "auto",
        ridge: float = 0.0,
        fit_intercept: bool = True,
        policy: Any = None,
        random_state: Any = 0,
        values: str = "auto",
        tolerance: float | str | None = "auto",
        passes: float | None = None,
    ) -> None:
        self.features = features
        self.discount = discount
        self.solver = solver
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.policy = policy
        self.random_state = random_state
        self.values = values
        self.tolerance = tolerance
        self.passes = passes

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        next_states: Any = None,
        terminated: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ratios: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        truncated: ArrayLike | None = None,
        actions: Any = None,
        next_actions: Any = None,
        next_probabilities: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
    ) -> Self:
        """Fit to a log.

        Parameters
        ----------
        X : Transitions, or array, sparse matrix or data frame (n, ...)
            A log, which has all that follows but ``next_probabilities``; or the state of each row.
        y : (n,) array
            Rewards.
        next_states : like X, optional
            None: every row ends, whatever its place, and the fit is a ridge regression of the rewards.
        terminated, truncated : (n,) flags, optional
            As in `Transitions`.
        sample_weight, ratios : (n,) array, optional
            Multiplicities and importance ratios.
        groups : (n,) labels, optional
            Which episode each row belongs to.
        actions, next_actions : (n, ...) array, optional
        next_probabilities : (n, n_actions) array, optional
            What the evaluated policy does in the next states, in the place of ``policy``; and so are ``next_actions``
            where they are given here. Rows that terminated are not looked at. A log's own next actions are those of
            the policy that wrote it, and used where there is no other.
        probabilities : (n,) array, optional
            With which the logging policy took the logged actions. With ``policy``, state values are evaluated by the
            importance ratios policy / probabilities.

        Returns
        -------
        LinearValue

        Raises
        ------
        SolverError
            The solver diverged. It warns (scikit-learn's ConvergenceWarning) where it ended otherwise than converged.
        """
        given = inputs.read(self, X, y, _extras(locals()), reset=True)
        if next_states is not None:
            pipelines.require_same_space(self, given, "fit")
        running.tell(fitting.fit(self, given))
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        next_states: Any = None,
        terminated: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ratios: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        truncated: ArrayLike | None = None,
        actions: Any = None,
        next_actions: Any = None,
        next_probabilities: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
    ) -> Self:
        """Take in a further batch of a log; the arguments are those of `fit`.

        Up to 4,096 features the moments A, b and C of all batches are added up, and the weights are those of one fit of
        LSTD to all rows together, whatever the solver. Beyond, each batch gets one pass of averaged TD in the log's
        order, which starts from the answer to the batch before, and the weights are the mean of these answers, by the
        batches' rows; its status is "budget spent" and no warning.

        Features must need no fitting, or be fitted already (they are then used as they are), because what they learn
        from one batch would not hold for the others. After `fit`, batches go on from it with the features it fitted.
        """
        first = not hasattr(self, "coef_")
        given = inputs.read(self, X, y, _extras(locals()), reset=first)
        if next_states is not None:
            pipelines.require_same_space(self, given, "fit")
        solution, told = fitting.add(self, given, first=first)
        if told:
            running.tell(solution)
        return self

    def predict(self, X: Any, actions: Any = None) -> NDArray[np.float64]:
        """The value of states, or of actions in them.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (m, ...)
            States.
        actions : (m, ...) array, optional
            For action values: one action a state, or the probabilities of all of them, (m, n_actions). None: the value
            of the states under the policy, its actions' values weighted with their probabilities.

        Returns
        -------
        (m,) array
        """
        check_is_fitted(self, "coef_")
        states = inputs.states(self, X)
        return np.asarray(np.concatenate(fitting.in_blocks(self, states, actions, self._values)) + self.intercept_)

    def feature_rows(self, X: Any, actions: Any = None) -> Any:
        """Rows of states, as in ``problem_``, (m, dim): their product with ``solution_.theta`` is the value.

        Parameters
        ----------
        X, actions
            As in `predict`.
        """
        check_is_fitted(self, "coef_")
        parts = fitting.in_blocks(self, inputs.states(self, X), actions, self._coordinates.rows)
        if _checks.is_sparse(parts[0]):
            from scipy import sparse

            return sparse.vstack(parts, format="csr")
        return np.concatenate(parts)

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        next_states: Any = None,
        terminated: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ratios: ArrayLike | None = None,
        actions: Any = None,
        next_actions: Any = None,
        next_probabilities: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
    ) -> float:
        """Minus the MSPBE on a log, in a reference space that is the same for all models; higher is better, 0 the most.

        Temporal-difference errors delta are projected on ``reference_``: indicators of the training states where there
        are up to 200, else a constant and 100 random waves cos(w.s + c) over the standardised states, for action values
        in one block for each action. It is made of the training log and a seed of its own, and does not depend on
        features, ridge or ``random_state``: models that were fitted to the same rows are compared by the same
        questions. With psi the features of that space the score is

            - 1/2 g' C^+ g,    g = mean w rho delta psi,    C = mean w psi psi'.

        On few rows noise adds about (features of the space) / (2 rows) of the errors' variance, to all models alike.

        Parameters
        ----------
        X, y and the others
            As in `fit`; rows that the model was not fitted to. A log needs the columns that the fit had.

        Returns
        -------
        float
        """
        check_is_fitted(self, "coef_")
        self.reference_.require()
        if self._bootstraps and next_states is None and not hasattr(X, "next_states"):
            raise InputError(
                "the model was fitted with next states and is to be scored without: every row would count as an end. "
                "Give next_states (with scikit-learn's tools: set_score_request(next_states=True, ...)), or a log."
            )
        given = inputs.read(self, X, y, _extras(locals()), reset=False)
        if next_states is not None:
            pipelines.require_same_space(self, given, "score")
        what = task.plan(self, given, fit=False, map=self._map)
        return -float(self.reference_.mspbe(what.given, fitting.errors(self, what)))

    def policy_value(
        self,
        initial_states: Any = None,
        initial_actions: Any = None,
        confidence: float = 0.95,
        *,
        episodes: Any = None,
        initial_episodes: Any = None,
        fixed_initial: bool | None = None,
        blocks: int | bool | str | None = None,
        deletion: bool | None = None,
        bootstrap: int | None = None,
        seed: int | np.random.Generator = 0,
    ) -> PolicyValue:
        """The mean value of initial states, with its standard error and interval.

        Parameters
        ----------
        initial_states : (m, ...) array, optional
            None: the first states of the log's episodes, which are then a part of the sample.
        initial_actions : (m, ...) array, optional
            For action values: one action an initial state, or the probabilities of all of them, (m, n_actions). None:
            the policy's, which must then be a function.
        confidence : float
        episodes, initial_episodes, fixed_initial, blocks, deletion, bootstrap, seed
            As in `valuate.inference.policy_value`, which says what the interval covers.

        Returns
        -------
        PolicyValue
        """
        check_is_fitted(self, "coef_")
        asked = {name: value for name, value in locals().items() if name not in ("self", "initial_states")}
        del asked["initial_actions"]
        return pricing.policy_value(self, initial_states, initial_actions, asked)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model to a file of text, whole or not at all; `load_model` reads it.

        Parameters
        ----------
        path : path
        force : bool
            Whether a file of that name is written over.

        Notes
        -----
        Saved are parameters, weights, features, the names of columns and how the solver ended; the rows (``problem_``)
        and a policy are not.
        Features of other packages go through skops, where it is installed; functions are refused.
        """
        check_is_fitted(self, "coef_")
        saving.save(self, path, force=force)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # The score is no R^2: it is at most 0, and 0 is the best there is.
        tags.regressor_tags.poor_score = True
        return tags

    def _values(self, rows: Any) -> Any:
        return rows @ self.coef_


def load_model(path: str | os.PathLike[str], *, trusted: tuple[str, ...] | list[str] = ()) -> LinearValue:
    """Read a model that `LinearValue.save` wrote. Nothing in the file is run.

    Parameters
    ----------
    path : path
    trusted : names of types
        That features of other packages may be made of, beside those that skops trusts by itself.

    Returns
    -------
    LinearValue
        That predicts and scores; without the rows it was fitted to, and without a policy.

    Raises
    ------
    InputError
        Where the file is another's, newer or damaged, or holds types that are not trusted.
    """
    model: LinearValue = saving.load(path, LinearValue, trusted)
    return model


def _extras(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `fit` behind X and y."""
    return {name: value for name, value in given.items() if name not in ("self", "X", "y") and not name.startswith("_")}
