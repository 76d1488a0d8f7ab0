"""Indicators, state-action blocks, and the ways that all feature maps share."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp

from valuate import features
from valuate.environments import CartPole, Garnet, MountainCar
from valuate.errors import InputError
from valuate.features import RBFGrid, StateActionBlocks, Tabular
from valuate.problem import Problem
from valuate.transitions import Transitions

STATES = np.random.default_rng(0).uniform(size=(20, 2))
ACTIONS = np.random.default_rng(1).integers(3, size=20)
GRID = RBFGrid([0, 0], [1, 1], 3, 0.2)


def refuses(kind, message):
    return pytest.raises(kind, match=re.escape(message))


class TestTabular:
    def test_indicators(self):
        found = Tabular(4).transform([2, 0, 3])
        assert sp.issparse(found)
        np.testing.assert_array_equal(found.toarray(), np.eye(4)[[2, 0, 3]])
        np.testing.assert_array_equal(Tabular(4, sparse_output=False).transform([2, 0, 3]), np.eye(4)[[2, 0, 3]])

    @pytest.mark.parametrize("states", [[[1], [0]], [1.0, 0.0], np.array([[1.0], [0.0]]), np.array([1, 0], np.uint8)])
    def test_states_in_other_forms(self, states):
        np.testing.assert_array_equal(Tabular(2).transform(states).toarray(), [[0, 1], [1, 0]])

    def test_the_number_of_states_is_learned(self):
        map_ = Tabular()
        with refuses(InputError, "call fit first"):
            map_.transform([0])
        assert not map_.__sklearn_is_fitted__()
        assert map_.fit([5, 2]).n_states_ == 6
        assert map_.__sklearn_is_fitted__() and map_.transform([0]).shape == (1, 6)
        assert map_.n_states is None  # a parameter stays what it was

    def test_bad_states(self):
        with refuses(InputError, "states must be in [0, 3)"):
            Tabular(3).transform([1, 3])
        with refuses(InputError, "states must be in [0, 3)"):
            Tabular(3).fit([-1])
        with refuses(InputError, "at least 0"):
            Tabular().fit([-1])
        with refuses(InputError, "states must be whole numbers; row 1 has 0.5"):
            Tabular(3).transform([1.0, 0.5])

    def test_in_a_problem(self):
        env = Garnet(6, 2, 3, 4)
        log = env.collect(3000)
        a, b, c = Problem.from_transitions(log, Tabular(6), discount=0.9).moments()
        counts = np.zeros((6, 6))
        np.add.at(counts, (log.states, log.next_states), 1)
        np.testing.assert_allclose(c, np.diag(counts.sum(axis=1)) / 3000)
        np.testing.assert_allclose(a, c - 0.9 * counts / 3000)
        np.testing.assert_allclose(b, np.bincount(log.states, log.rewards, 6) / 3000)


def expected_blocks(rows, actions, n_actions):
    out = np.zeros((len(rows), n_actions * rows.shape[1]))
    for i, action in enumerate(actions):
        out[i, action * rows.shape[1] : (action + 1) * rows.shape[1]] = rows[i]
    return out


class TestStateActionBlocks:
    @pytest.mark.parametrize("cutoff", [None, 0.01])
    @pytest.mark.parametrize("sparse_output", [True, False])
    def test_one_block_an_action(self, cutoff, sparse_output):
        grid = RBFGrid([0, 0], [1, 1], 3, 0.2, sparse_below=cutoff)
        blocks = StateActionBlocks(grid, 3, sparse_output)
        rows = grid.transform(STATES)
        rows = rows if cutoff is None else rows.toarray()
        found = blocks.transform((STATES, ACTIONS))
        assert sp.issparse(found) == (sparse_output or cutoff is not None)
        found = found.toarray() if sp.issparse(found) else found
        np.testing.assert_array_equal(found, expected_blocks(rows, ACTIONS, 3))

    def test_the_three_forms_of_pairs(self):
        blocks = StateActionBlocks(GRID, 3)
        both = blocks.transform((STATES, ACTIONS))
        assert (blocks.transform(np.column_stack([STATES, ACTIONS])) != both).nnz == 0
        tabular = StateActionBlocks(Tabular(5), 3)
        states = np.arange(5).repeat(3)
        actions = np.tile(np.arange(3), 5)
        expected = expected_blocks(np.eye(5)[states], actions, 3)
        for pairs in ((states, actions), np.column_stack([states, actions]), states * 3 + actions):
            np.testing.assert_array_equal(tabular.transform(pairs).toarray(), expected)

    def test_stored_are_the_states_features_only(self):
        found = StateActionBlocks(GRID, 3).transform((STATES, ACTIONS))
        assert found.nnz == 20 * 9 and found.has_canonical_format and found.indices.dtype == np.int32

    def test_callables_and_lists(self):
        found = StateActionBlocks(np.sin, 2, sparse_output=False).transform((STATES.tolist(), [0] * 20))
        np.testing.assert_array_equal(found, np.hstack([np.sin(STATES), np.zeros((20, 2))]))

    def test_the_papers_sizes(self):
        for env, made, size in ((MountainCar(), features.mountain_car, 300), (CartPole(), features.cart_pole, 162)):
            log = env.collect(10)
            blocks = StateActionBlocks(made(), env.n_actions)
            assert blocks.transform((log.states, log.actions)).shape == (10, size)

    def test_fitting_reaches_the_states_features(self):
        blocks = StateActionBlocks(Tabular(), 2)
        assert not blocks.__sklearn_is_fitted__()
        blocks.fit(([0, 4], [1, 0]))
        assert blocks.__sklearn_is_fitted__() and blocks.transform(([1], [1])).shape == (1, 10)

    def test_what_was_given_is_left_alone(self):
        from sklearn.frozen import FrozenEstimator
        from sklearn.preprocessing import StandardScaler

        given = Tabular(), StandardScaler()
        blocks = [StateActionBlocks(inner, 2) for inner in given]
        blocks[0].fit(([0, 4], [1, 0]))
        blocks[1].fit((STATES, ACTIONS % 2))
        assert not hasattr(given[0], "n_states_") and not hasattr(given[1], "mean_")
        np.testing.assert_allclose(blocks[1].features.mean_, STATES.mean(axis=0))
        blocks[0].fit(([0, 1], [1, 0]))  # again, from other states
        assert blocks[0].transform(([1], [1])).shape == (1, 4)
        frozen = FrozenEstimator(StandardScaler().fit(STATES + 1))
        assert StateActionBlocks(frozen, 2).fit((STATES, ACTIONS % 2)).features is frozen
        again = features.load(blocks[0].to_dict())
        np.testing.assert_array_equal(again.transform(([1], [1])).toarray(), [[0, 0, 0, 1]])

    def test_bad_pairs(self):
        blocks = StateActionBlocks(GRID, 3)
        with refuses(InputError, "There are 20 states and 19 actions"):
            blocks.transform((STATES, ACTIONS[1:]))
        with refuses(InputError, "actions must be in [0, 3)"):
            blocks.transform((STATES, ACTIONS + 1))
        with refuses(InputError, "actions must be whole numbers; row 0 has 0.5"):
            blocks.transform((STATES, np.full(20, 0.5)))
        with refuses(InputError, "has 3 parts"):
            blocks.transform((STATES, ACTIONS, ACTIONS))
        with refuses(InputError, "the last, which has the action; the shape is (20, 1)"):
            blocks.transform(ACTIONS[:, None])


class TestParameters:
    def test_get_and_set(self):
        blocks = StateActionBlocks(RBFGrid([0], [1], sigma=0.5), 3)
        assert blocks.get_params(deep=False).keys() == {"features", "n_actions", "sparse_output"}
        assert blocks.get_params()["features__sigma"] == 0.5
        assert blocks.set_params(n_actions=2, features__sigma=0.1) is blocks
        assert blocks.n_actions == 2 and blocks.features.sigma == 0.1
        with refuses(InputError, "Tabular has no parameter 'size'. It has: n_states, sparse_output."):
            Tabular(3).set_params(size=4)

    def test_text_and_pickles(self):
        assert repr(Tabular(3)) == "Tabular(n_states=3, sparse_output=True)"
        again = pickle.loads(pickle.dumps(GRID))
        np.testing.assert_array_equal(again.transform(STATES), GRID.transform(STATES))

    def test_fit_transform(self):
        np.testing.assert_array_equal(GRID.fit_transform(STATES), GRID.transform(STATES))


class TestWithScikitLearn:
    sklearn = pytest.importorskip("sklearn")

    @pytest.mark.parametrize(
        "map_", [GRID, Tabular(4), StateActionBlocks(GRID, 3), features.acrobot(sparse_below=1e-6)]
    )
    def test_clone(self, map_):
        from sklearn.base import clone

        copy = clone(map_)
        assert copy is not map_ and type(copy) is type(map_)
        assert repr(copy) == repr(map_)

    def test_in_a_pipeline(self):
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline

        y = STATES.sum(axis=1)
        line = make_pipeline(RBFGrid([0, 0], [1, 1], 4, 0.3), Ridge(1e-6))
        assert line.fit(STATES, y).score(STATES, y) > 0.99
        line.set_params(rbfgrid__sigma=0.2)
        assert line.named_steps["rbfgrid"].sigma == 0.2
        repr(line)

    def test_behind_a_scaler_and_alone(self):
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import MinMaxScaler

        line = make_pipeline(MinMaxScaler(), RBFGrid([0, 0], [1, 1], 3, 0.2)).fit(STATES * 7)
        np.testing.assert_allclose(line.transform(STATES * 7).sum(axis=1), 1.0)
        alone = make_pipeline(Tabular()).fit(np.arange(4)[:, None])
        assert alone.transform(np.arange(4)[:, None]).shape == (4, 4)

    @pytest.mark.parametrize(
        ("map_", "X"),
        [
            (GRID, STATES),
            (Tabular(sparse_output=False), np.arange(4)[:, None]),
            (StateActionBlocks(GRID, 3, sparse_output=False), np.column_stack([STATES, ACTIONS])),
            (StateActionBlocks(np.sin, 3, sparse_output=False), np.column_stack([STATES, ACTIONS])),
            (features.Identity(), STATES),
            (features.ByColumn([(features.Identity(), 0), (np.cos, [0, 1])]), STATES),
            (features.Polynomial(2), STATES),
            (features.Fourier(3), STATES),
            (features.RandomFourier(7), STATES),
            (features.OneHot(sparse_output=False), np.arange(4)[:, None]),
        ],
        ids=lambda part: type(part).__name__,
    )
    def test_names_and_data_frames(self, map_, X):
        import pandas
        import polars
        from sklearn.base import clone

        map_ = clone(map_)
        rows = map_.fit_transform(X)
        names = map_.get_feature_names_out()
        name = type(map_).__name__.lower()
        assert names.tolist() == [f"{name}{k}" for k in range(rows.shape[1])] and names.dtype == object
        framed = clone(map_.set_output(transform="pandas")).fit(X)
        index = np.arange(len(X)) + 7
        found = framed.transform(pandas.DataFrame(X, index=index))
        assert isinstance(found, pandas.DataFrame) and found.columns.tolist() == names.tolist()
        np.testing.assert_array_equal(found.index, index)
        np.testing.assert_array_equal(found.to_numpy(), rows)
        other = framed.set_output(transform="polars").transform(X)
        assert isinstance(other, polars.DataFrame) and other.columns == names.tolist()
        np.testing.assert_array_equal(other.to_numpy(), rows)
        rewards, framed = np.ones(len(X)), framed.set_output(transform="pandas")
        problem = Problem.from_transitions(Transitions(X, rewards, X), framed, discount=0.5)
        np.testing.assert_allclose(problem.b, rows.mean(axis=0))
        assert type(framed.set_output(transform="default").transform(X)) is np.ndarray
        with refuses(InputError, "must be 'default', 'pandas' or 'polars', not 'arrow'"):
            framed.set_output(transform="arrow")

    def test_sparse_rows_fit_into_no_data_frame(self):
        for map_ in (Tabular(4), features.TileCoding(), RBFGrid([0], [3], sparse_below=0.01)):
            map_ = map_.fit(np.arange(4)[:, None]).set_output(transform="pandas")
            assert len(map_.get_feature_names_out()) > 1
            with refuses(InputError, f"{type(map_).__name__} gives sparse rows, which no data frame holds"):
                map_.transform(np.arange(4)[:, None])

    def test_names_that_are_not_known_yet(self):
        for map_ in (Tabular(), features.Identity(), StateActionBlocks(np.sin, 2), features.Polynomial()):
            with pytest.raises(InputError, match="fit"):
                map_.get_feature_names_out()

    def test_in_a_column_transformer(self):
        from sklearn.base import clone
        from sklearn.compose import ColumnTransformer

        # It tells the maps that it is given what to put out: not that of other tests.
        parts = [("grid", clone(GRID), [0, 1]), ("kind", Tabular(3, sparse_output=False), [2])]
        X = np.column_stack([STATES, ACTIONS])
        both = ColumnTransformer(parts).fit(X)
        names = [f"grid__rbfgrid{k}" for k in range(9)] + [f"kind__tabular{k}" for k in range(3)]
        assert both.get_feature_names_out().tolist() == names
        framed = ColumnTransformer(parts).set_output(transform="pandas").fit_transform(X)
        assert framed.columns.tolist() == names
        np.testing.assert_array_equal(framed.to_numpy(), both.transform(X))

    def test_grid_search(self):
        from sklearn.linear_model import Ridge
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline

        search = GridSearchCV(make_pipeline(GRID, Ridge()), {"rbfgrid__sigma": [0.1, 0.5]}, cv=2)
        assert search.fit(STATES, STATES.sum(axis=1)).best_params_.keys() == {"rbfgrid__sigma"}
