"""Folds of whole episodes, and scores of a model over them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from valuate import _checks, _columns
from valuate.errors import InputError
from valuate.transitions import Transitions

__all__ = ["cross_score", "episode_folds"]

Index = NDArray[np.int64]


def episode_folds(
    log: Transitions | ArrayLike, folds: int = 5, *, seed: int | np.random.Generator = 0
) -> list[tuple[Index, Index]]:
    """Rows to train on and rows to test on, with whole episodes on either side.

    Rows of one episode depend on each other: a fold that splits an episode tests a model on what it has nearly seen.

    Parameters
    ----------
    log : Transitions or (n,) array
        A log with episodes, or a label a row.
    folds : int
        At least 2, at most as many as there are episodes.
    seed : int or numpy.random.Generator
        Of the order of the episodes, which go to the fold with the fewest rows, the longest first.

    Returns
    -------
    list of (train, test)
        Row numbers, in increasing order: what scikit-learn's tools take as ``cv``.
    """
    labels = log.episodes if isinstance(log, Transitions) else _columns.labels(log, len(np.asarray(log)))
    if labels is None:
        raise InputError("the log does not say which episode a row belongs to: give Transitions(..., episodes=...).")
    places: dict[Any, int] = {}
    codes = np.array([places.setdefault(label, len(places)) for label in labels.tolist()])
    count, folds = len(places), _checks.whole("folds", folds, low=2)
    if count < folds:
        raise InputError(f"there are {count} episodes, too few for {folds} folds of whole episodes.")
    lengths = np.bincount(codes)
    order = np.random.default_rng(seed).permutation(count)
    order = order[np.argsort(-lengths[order], kind="stable")]
    fold_of, sizes = np.empty(count, np.int64), np.zeros(folds, np.int64)
    for k, episode in enumerate(order):
        # The first so many go to one fold each, so that none stays empty.
        fold = k if k < folds else int(sizes.argmin())
        fold_of[episode] = fold
        sizes[fold] += lengths[episode]
    fold_of_row = fold_of[codes]
    return [(np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)) for fold in range(folds)]


def cross_score(
    model: Any, log: Transitions, folds: int = 5, *, seed: int | np.random.Generator = 0
) -> NDArray[np.float64]:
    """The model's score on each fold of whole episodes, fitted on the others: (folds,).

    The model itself is left as it is. Scores of several models compare fold by fold: with one seed they are tested on
    the same rows, in the same reference space; see `LinearValue.score`.
    """
    return np.array(
        [clone(model).fit(log[train]).score(log[test]) for train, test in episode_folds(log, folds, seed=seed)]
    )
