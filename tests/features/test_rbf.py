import re
from math import pi

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from valuate import features
from valuate.environments import Acrobot, CartPole, MountainCar
from valuate.errors import InputError, InputTypeError
from valuate.features import RBFGrid


def formula(states, centres, sigma, normalize, distance="euclidean"):
    """exp(-r / sigma) state by state and centre by centre."""
    power = 1 if distance == "euclidean" else 2
    out = np.empty((len(states), len(centres)))
    for i, state in enumerate(states):
        for j, centre in enumerate(centres):
            out[i, j] = np.exp(-(np.sqrt(((state - centre) ** 2).sum()) ** power) / sigma)
        if normalize:
            out[i] /= out[i].sum()
    return out


def refuses(kind, message):
    return pytest.raises(kind, match=re.escape(message))


@pytest.mark.parametrize("distance", ["euclidean", "squared"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("k", "per"), [(1, 5), (2, (4, 3)), (3, 2), (2, (1, 3)), (4, 3)])
def test_the_formula(k, per, normalize, distance):
    rng = np.random.default_rng(k)
    low, high = np.array([-2.0, 0.0, 10.0, -1.0])[:k], np.array([1.0, 0.5, 30.0, 1.0])[:k]
    states = rng.uniform(low - 0.1, high + 0.1, (50, k))
    counts = np.broadcast_to(per, k)
    axes = [np.linspace(0, 1, count) if count > 1 else [0.5] for count in counts]
    centres = np.array(np.meshgrid(*axes, indexing="ij")).reshape(k, -1).T
    grid = RBFGrid(low, high, per, 0.3, normalize=normalize, distance=distance)
    found = grid.transform(states)
    unit = (states - low) / (high - low)
    np.testing.assert_allclose(found, formula(unit, centres, 0.3, normalize, distance), rtol=1e-12)
    assert grid.n_features == found.shape[1] == len(grid.centres)
    np.testing.assert_allclose((grid.centres - low) / (high - low), centres, atol=1e-14)


def test_distances_between_the_numbers_as_they_are():
    states = np.random.default_rng(0).normal(size=(30, 2))
    grid = RBFGrid([-0.1, -1.0], [0.1, 1.0], 3, 0.5, scale=False, normalize=False)
    centres = [[x, y] for x in (-0.1, 0.0, 0.1) for y in (-1.0, 0.0, 1.0)]
    np.testing.assert_allclose(grid.centres, centres, atol=1e-15)
    np.testing.assert_allclose(grid.transform(states), formula(states, np.array(centres), 0.5, False), rtol=1e-12)


@pytest.mark.parametrize("distance", ["euclidean", "squared"])
def test_far_from_every_centre_the_features_still_sum_to_one(distance):
    grid = RBFGrid([0.0], [1.0], 3, 1e-4, distance=distance)
    found = grid.transform([[50.0], [-50.0], [0.5]])
    np.testing.assert_allclose(found, [[0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_long_input_goes_block_by_block():
    states = np.random.default_rng(1).uniform(size=(5000, 2))
    grid = RBFGrid([0, 0], [1, 1], 8, 0.1)
    whole = grid.transform(states)
    np.testing.assert_array_equal(whole, np.concatenate([grid.transform(part) for part in np.split(states, 5)]))
    sparse = RBFGrid([0, 0], [1, 1], 8, 0.1, sparse_below=1e-3).transform(states)
    assert sparse.shape == (5000, 64) and sparse.nnz < 0.7 * sparse.shape[0] * 64


@pytest.mark.parametrize("distance", ["euclidean", "squared"])
def test_where_all_is_small_the_largest_is_kept(distance):
    states = np.random.default_rng(3).uniform(size=(40, 2))
    dense = RBFGrid([0, 0], [1, 1], 6, 0.2, distance=distance).transform(states)
    cutoff = float(np.median(dense.max(axis=1)))
    found = RBFGrid([0, 0], [1, 1], 6, 0.2, sparse_below=cutoff, distance=distance).transform(states)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    small = dense.max(axis=1) < cutoff
    assert 10 < small.sum() < 30
    expected = np.where(dense >= cutoff, dense, 0.0)
    expected[small, dense[small].argmax(axis=1)] = 1.0
    np.testing.assert_allclose(found.toarray(), expected / expected.sum(axis=1, keepdims=True))
    bare = RBFGrid([0, 0], [1, 1], 6, 0.2, normalize=False, sparse_below=2.0, distance=distance).transform(states)
    assert bare.nnz == 0  # not normalized, nothing has to be there


@given(cutoff=st.sampled_from([0.0, 1e-9, 1e-4, 0.01]), normalize=st.booleans(), sigma=st.sampled_from([0.01, 0.2]))
def test_what_is_small_is_left_out(cutoff, normalize, sigma):
    states = np.random.default_rng(2).uniform(size=(40, 2))
    dense = RBFGrid([0, 0], [1, 1], 6, sigma, normalize).transform(states)
    found = RBFGrid([0, 0], [1, 1], 6, sigma, normalize, sparse_below=cutoff).transform(states)
    assert sp.issparse(found) and found.format == "csr" and found.has_canonical_format
    expected = np.where(dense >= cutoff, dense, 0.0)
    assert (found.data > 0).all()
    if normalize:
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12, atol=1e-300)


class TestThePapersFeatures:
    def test_mountain_car(self):
        states = MountainCar().collect(50, copies=10).states
        unit = (states - [-1.2, -0.07]) / [1.8, 0.14]
        ten = np.arange(10) / 9
        centres = np.array([[x, y] for x in ten for y in ten])
        found = features.mountain_car().transform(states)
        np.testing.assert_allclose(found, formula(unit, centres, 0.01, True, "squared"), rtol=1e-9, atol=1e-300)

    def test_cart_pole(self):
        states = CartPole().collect(50, copies=3).states
        three = np.array([-1.0, 0.0, 1.0])
        centres = np.array([[x / 10, v, a / 10, w] for x in three for v in three for a in three for w in three])
        found = features.cart_pole().transform(states)
        np.testing.assert_allclose(found, formula(states, centres, 0.5, True, "squared"), rtol=1e-10)

    def test_acrobot(self):
        seen = Acrobot().collect(200, copies=3).states
        unit = (seen[:, [0, 2, 4, 5]] / [1, 1, 4 * pi, 9 * pi] + 1) / 2
        centres = np.array(np.meshgrid(*[[0, 0.5, 1]] * 4, indexing="ij")).reshape(4, -1).T
        found = features.acrobot().transform(seen)
        np.testing.assert_allclose(found, formula(unit, centres, 0.1, True, "squared"), rtol=1e-9)
        found = features.acrobot(distance="euclidean").transform(seen)
        np.testing.assert_allclose(found, formula(unit, centres, 0.1, True), rtol=1e-9)

    def test_acrobot_by_the_papers_text(self):
        seen = Acrobot().collect(200, copies=3).states
        centres = np.array(np.meshgrid(*[[0, 0.5, 1]] * 4, indexing="ij")).reshape(4, -1).T
        found = features.acrobot((0, 1, 2, 3)).transform(seen)
        np.testing.assert_allclose(found, formula((seen[:, :4] + 1) / 2, centres, 0.1, True, "squared"), rtol=1e-9)

    def test_acrobot_has_six_numbers(self):
        with refuses(InputError, "columns must be among 0 to 5"):
            features.acrobot((0, 1, 2, 6))

    def test_sizes(self):
        sizes = [made().n_features for made in (features.mountain_car, features.cart_pole, features.acrobot)]
        assert sizes == [100, 81, 81]
        assert features.acrobot(sparse_below=1e-6).sparse_below == 1e-6


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"low": [0.0]}, InputError, "low has 1 entries and high 2"),
        ({"low": [0.0, 2.0]}, InputError, "in dimension 1 they are 2 and 1"),
        ({"per_dimension": 0}, InputError, "per_dimension must be at least 1"),
        ({"per_dimension": (2, 2, 2)}, InputError, "per_dimension has 3 entries"),
        ({"per_dimension": 2000}, InputError, "4e+06 centres"),
        ({"per_dimension": 2.0}, InputTypeError, "whole number"),
        ({"sigma": 0.0}, InputError, "sigma must be"),
        ({"sparse_below": -1.0}, InputError, "sparse_below must be"),
        ({"distance": "manhattan"}, InputError, "'euclidean' or 'squared', not 'manhattan'"),
        ({"columns": (0, 1, 2)}, InputError, "columns has 3 entries"),
        ({"columns": (0, 5)}, InputError, "number 5 of states that have 2"),
    ],
)
def test_bad_parameters_are_refused_when_used(options, kind, message):
    grid = RBFGrid(**{"low": [0.0, 0.0], "high": [1.0, 1.0]} | options)
    with refuses(kind, message):
        grid.transform([[0.5, 0.5]])
    with refuses(kind, message):
        grid.fit([[0.5, 0.5]])


def test_bad_states():
    grid = RBFGrid([0.0, 0.0], [1.0, 1.0])
    with refuses(InputError, "states have 3 numbers and the grid 2 dimensions"):
        grid.transform(np.ones((4, 3)))
    with refuses(InputError, "NaN"):
        grid.transform([[0.0, np.nan]])
    with refuses(InputError, "2 dimensions"):
        grid.transform([0.5, 0.5])
