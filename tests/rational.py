"""Small problems in rational arithmetic, to the bit: rank, consistency and the smallest minimiser of the MSPBE."""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

Matrix = list[list[Fraction]]


class Exact(NamedTuple):
    """What LSTD should find."""

    rank: int
    consistent: bool
    theta: np.ndarray
    relative_residual: float


def solve(
    phi: Any,
    next_phi: Any,
    rewards: Any,
    discounts: Any,
    *,
    ratios: Any = None,
    weights: Any = None,
    ridge: float = 0.0,
) -> Exact:
    """Solve from rows, all of whose numbers are taken at their exact value."""
    n, dim = np.shape(phi)
    phi, next_phi = matrix(phi), matrix(next_phi)
    rewards, discounts = vector(rewards), vector(np.broadcast_to(discounts, n))
    ratios = vector(np.ones(n) if ratios is None else ratios)
    weights = vector(np.ones(n) if weights is None else weights)
    total = sum(weights)
    delta = [
        [p - discount * q for p, q in zip(*rows, strict=True)]
        for rows, discount in zip(zip(phi, next_phi, strict=True), discounts, strict=True)
    ]
    both = [weight * ratio for weight, ratio in zip(weights, ratios, strict=True)]
    e = Fraction(ridge)

    def mean(factors: Any, left: Matrix, right: Matrix, diagonal: Fraction) -> Matrix:
        return [
            [
                sum(f * x[i] * y[j] for f, x, y in zip(factors, left, right, strict=True)) / total
                + (diagonal if i == j else 0)
                for j in range(len(right[0]))
            ]
            for i in range(dim)
        ]

    a, c = mean(both, phi, delta, e), mean(weights, phi, phi, e)
    b = [row[0] for row in mean(both, phi, [[r] for r in rewards], Fraction(0))]
    kept = independent(c)
    inner = [[c[i][j] for j in kept] for i in kept]
    # A and b lie in the range of C, so that a choice of independent rows says it all.
    rows, target = [a[i] for i in kept], [b[i] for i in kept]
    weighted = [gauss(inner, [row[j] for row in rows]) for j in range(dim)]  # columns of C^-1 A
    squares = [[dot(weighted[i], [row[j] for row in rows]) for j in range(dim)] for i in range(dim)]
    right = [dot(weighted[i], target) for i in range(dim)]
    # The smallest solution of squares theta = right is squares z with squares^2 z = right.
    twice = [[dot(squares[i], [row[j] for row in squares]) for j in range(dim)] for i in range(dim)]
    theta = [dot(row, gauss(twice, right)) for row in squares]
    left = [t - dot(row, theta) for row, t in zip(rows, target, strict=True)]
    norms = [dot(g, gauss(inner, g)) for g in (left, target)]
    return Exact(
        rank=len(independent(a)),
        consistent=not any(left),
        theta=np.array([float(x) for x in theta]),
        relative_residual=float(norms[0] / norms[1]) ** 0.5 if norms[1] else 0.0,
    )


def matrix(values: Any) -> Matrix:
    return [vector(row) for row in np.asarray(values)]


def vector(values: Any) -> list[Fraction]:
    return [Fraction(float(x)) for x in values]


def dot(one: list[Fraction], other: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(one, other, strict=True)), Fraction(0))


def independent(rows: Matrix) -> list[int]:
    """The first rows that span the others."""
    kept: list[int] = []
    basis: list[tuple[int, list[Fraction]]] = []
    for k, row in enumerate(rows):
        row = list(row)
        for pivot, base in basis:
            if row[pivot]:
                factor = row[pivot] / base[pivot]
                row = [x - factor * y for x, y in zip(row, base, strict=True)]
        pivot = next((j for j, x in enumerate(row) if x), None)
        if pivot is not None:
            basis.append((pivot, row))
            kept.append(k)
    return kept


def gauss(square: Matrix, right: list[Fraction]) -> list[Fraction]:
    """A solution of a consistent system; free unknowns are 0."""
    rows = [[*row, r] for row, r in zip(square, right, strict=True)]
    pivots: list[int] = []
    for column in range(len(square)):
        at = len(pivots)
        found = next((k for k in range(at, len(rows)) if rows[k][column]), None)
        if found is None:
            continue
        rows[at], rows[found] = rows[found], rows[at]
        head = rows[at] = [x / rows[at][column] for x in rows[at]]
        for k, row in enumerate(rows):
            if k != at and row[column]:
                factor = row[column]
                rows[k] = [x - factor * y for x, y in zip(row, head, strict=True)]
        pivots.append(column)
    assert not any(row[-1] for row in rows[len(pivots) :]), "the equations do not hold"
    out = [Fraction(0)] * len(square)
    for row, column in zip(rows, pivots, strict=False):
        out[column] = row[-1]
    return out
