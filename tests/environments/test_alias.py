import numpy as np
import pytest

from valuate.environments._alias import AliasTables


def chances(tables, m, k):
    """What the tables draw, added up over their places."""
    threshold, alias = tables._threshold.reshape(m, k), tables._alias.reshape(m, k).astype(int)
    out = threshold.copy()
    for row in range(m):
        np.add.at(out[row], alias[row], 1.0 - threshold[row])
    return out / k


@pytest.mark.parametrize("k", [2, 3, 7, 64, 257, 400])
def test_the_tables_hold_the_probabilities(k):
    rng = np.random.default_rng(k)
    p = np.concatenate(
        [
            rng.random((20, k)),
            rng.random((20, k)) * (rng.random((20, k)) < 0.3) + 1e-3 * np.eye(k)[np.arange(20) % k],
            rng.exponential(size=(20, k)) ** 8,
            np.eye(k)[:20],
            np.full((3, k), 1.0 / k),
        ]
    )
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances(AliasTables(p), len(p), k), p, rtol=0, atol=1e-13)


def test_an_outcome_without_a_chance_is_never_drawn():
    p = np.array([[0.0, 0.3, 0.0, 0.7], [1.0, 0.0, 0.0, 0.0], [1 / 3, 1 / 3, 0.0, 1 / 3]])
    tables, rng = AliasTables(p), np.random.default_rng(0)
    rows = np.repeat(np.arange(3), 100_000)
    drawn = tables.draw(rows, rng)
    assert (p[rows, drawn] > 0).all()
    for row in range(3):
        share = np.bincount(drawn[rows == row], minlength=4) / 100_000
        np.testing.assert_allclose(share, p[row], atol=0.006)


def test_equal_chances_and_one_outcome_need_no_tables():
    rng = np.random.default_rng(0)
    assert set(AliasTables(np.full((2, 3), 1 / 3)).draw(np.zeros(100, int), rng)) == {0, 1, 2}
    assert not AliasTables(np.ones((2, 1))).draw(np.ones(5, int), rng).any()


class Highest:
    """A generator whose draws are the largest below 1."""

    def random(self, size):
        return np.full(size, 1.0 - 2.0**-53)


@pytest.mark.parametrize("k", [3, 255, 257, 1025, 4097])
def test_the_largest_draw_stays_in_the_table(k):
    p = np.zeros((1, k))
    p[0, [0, -1]] = 0.25, 0.75
    assert AliasTables(p).draw(np.zeros(4, int), Highest()).tolist() == [k - 1] * 4
