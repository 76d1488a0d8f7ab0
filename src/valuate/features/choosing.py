"""Features chosen from the data: what ``features="auto"`` means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.errors import InputError
from valuate.features import _inputs, _terms
from valuate.features import tiles as tiling
from valuate.features._base import FeatureMap
from valuate.features.by_column import ByColumn, Identity
from valuate.features.fourier import Fourier
from valuate.features.one_hot import OneHot
from valuate.features.polynomial import Polynomial
from valuate.features.random_fourier import RandomFourier
from valuate.features.tabular import Tabular
from valuate.features.tiles import TileCoding

if TYPE_CHECKING:
    from valuate.transitions import Transitions

__all__ = ["choose", "fitting_states"]

Choice: TypeAlias = tuple[FeatureMap, str]

#: Rows for each dense feature, at least. Logs of Cart Pole, Mountain Car and Acrobot were evaluated worse with fewer.
ROWS_A_FEATURE = 25
#: Episodes for each dense feature, at least: rows of one episode say much the same, and values that few episodes
#: decide are those of their ends.
EPISODES_A_FEATURE = 5
#: A longer episode counts as several of so many rows.
LONG = 100
#: Rows for each of the numbers themselves, at least; episodes, for numbers that stay the same all through an episode.
FEWEST_ROWS = 5
#: Rows for each state of a table, at least; and where a state is one whole number or text, and so a name.
ROWS_A_STATE, ROWS_A_NAME = 10, 3
#: Entries of dense features: 2 GB.
MOST_ENTRIES = 1 << 28
#: Dense features: forming A takes time with their square.
MOST_DENSE = 600
#: Up to so many columns the Fourier basis with pairs is taken, beyond it polynomials.
FEW_COLUMNS = 6
#: The share of states at each end of a column that is not looked at more closely.
TAILS = 0.005
#: States that are looked at to see whether they repeat.
SAMPLE = 4096
#: Entries of states that are gathered for fitting; of more, evenly spaced rows are taken.
GATHERED = 1 << 26


def choose(log: Transitions, *, random_state: int = 0) -> Choice:
    """A feature map that suits the states of a log, fitted, and a sentence that says which and why.

    - States that repeat get one feature each: the answer is then the exact one of a table.
    - Up to 6 numbers: a Fourier basis of single numbers and pairs, of the highest order that the rows carry.
    - More: all products of two; where the rows do not carry these, cosines of single numbers, or the numbers alone.
    - So many rows that dense features would take more than 2 GB: tile coding.
    - Columns of texts, or of their numbers by the log's reading: one feature a category, beside the other features.
    - Numbers that stay the same all through an episode, such as an age: themselves, beside the features of the others.
      There is one of them an episode, and products with it would be as many questions of few answers.

    There are at most as many dense features as a twenty-fifth of the rows and a fifth of the episodes, where these are
    known and more than one (of more than 100 rows each counts as several), or the numbers themselves. Constant columns
    are left out.

    Parameters
    ----------
    log : Transitions
        What is learned is learned from its states, whichever format they came in.
    random_state : int
        Seed of what is drawn: same log and seed, same features.

    Returns
    -------
    feature_map : FeatureMap
        Fitted, with `to_dict`.
    sentence : str
    """
    states, stride = _spaced_states(log)
    if _checks.is_sparse(states):
        return Identity().fit(states), f"The {states.shape[1]:,} numbers of the log's sparse states are the features."
    if states.ndim > 2:
        raise InputError(
            f"states have shape {states.shape[1:]} each, and features can be chosen for vectors only. Flatten them "
            "with states.reshape(len(states), -1), or give a feature map."
        )
    table = states[:, None] if states.ndim == 1 else states
    rows = len(log)
    found = _if_few(table, rows)
    if found is not None:
        return found
    draws = _Draws.of(log, table, stride)
    numbered = _numbered_texts(log, table.shape[1])
    if table.dtype.kind in "OUS" or numbered:
        return _of_mixed(table, numbered, draws, random_state)
    return _of_numbers(_inputs.numbers(table), draws, draws.most, random_state)


def fitting_states(log: Transitions) -> Any:
    """The states of a log that feature maps are fitted on: all rows, or evenly spaced ones of a very large log.

    They do not depend on how the log holds its next states, so that the same rows give the same features.
    """
    return _spaced_states(log)[0]


def _spaced_states(log: Transitions) -> tuple[Any, int]:
    """See `fitting_states`; and the row number of the second of them, all being so far apart."""
    owned = log.indexed_states()
    if owned is None or _checks.is_sparse(owned[0]):
        return log.states, 1
    table, rows, _ = owned
    if rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all():
        return table[rows[0] : rows[-1] + 1], 1
    entries = len(rows) * (table.size // len(table))
    stride = -(-entries // GATHERED)
    return table[rows[::stride]], stride


class _Draws(NamedTuple):
    """How much a log has: rows, episodes, and the columns of states that stay the same all through each episode."""

    rows: int
    #: None where they are not known, or only one.
    episodes: int | None
    #: How many features they carry.
    most: int
    still: NDArray[np.bool_]

    @classmethod
    def of(cls, log: Transitions, table: NDArray[Any], stride: int) -> _Draws:
        """Of a log, whose states ``table`` are rows ``stride`` apart."""
        rows, width = len(log), table.shape[1]
        most, still = rows // ROWS_A_FEATURE, np.zeros(width, bool)
        if log.episodes is None:
            return cls(rows, None, most, still)
        codes = _codes(log.episodes)
        lengths = np.bincount(codes)
        if len(lengths) < 2:
            return cls(rows, None, most, still)
        most = min(most, int(np.maximum(1.0, lengths / LONG).sum()) // EPISODES_A_FEATURE)
        codes = codes[::stride]
        order = np.argsort(codes, kind="stable")
        same = codes[order[1:]] == codes[order[:-1]]
        if same.any():
            columns = (table[order, j] for j in range(width))
            still = np.array([not (column[1:] != column[:-1])[same].any() for column in columns])
        return cls(rows, len(lengths), most, still)

    def __str__(self) -> str:
        of = "" if self.episodes is None else f" of {_many(self.episodes, 'episode')}"
        return f"{_many(self.rows, 'row')}{of}"

    def among(self, columns: list[int]) -> _Draws:
        """The same for some columns."""
        return self._replace(still=self.still[columns])


def _codes(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Labels as whole numbers from 0."""
    if labels.dtype.kind != "O":
        return np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)
    places: dict[Any, int] = {}  # labels of mixed kinds have no order
    return np.array([places.setdefault(label, len(places)) for label in labels.tolist()])


def _numbered_texts(log: Transitions, width: int) -> list[int]:
    """The columns of states that held texts before they were read: their numbers are names."""
    reading = log.reading
    if reading is None:
        return []
    names = reading.columns.get("states", ())
    names = (names,) if isinstance(names, str) else names
    if len(names) != width:
        return []
    known = {"states"} & set(reading.labels) if width == 1 else set()
    return [j for j, name in enumerate(names) if name in reading.labels or known]


def _if_few(table: NDArray[Any], rows: int) -> Choice | None:
    """One feature a state, where states are few."""
    named = table.shape[1] == 1 and table.dtype.kind in "biuOUS"
    most = rows // (ROWS_A_NAME if named else ROWS_A_STATE)
    sample = table[:: -(-len(table) // SAMPLE)]
    try:
        if OneHot(joint=True).fit(sample).n_features_ > max(1, min(most, len(sample) // 2)):
            return None
        found = OneHot(joint=True).fit(table)
    except InputError:
        return None
    count = found.n_features_
    if count > most or count < 2:
        return None
    why = f"{_many(rows, 'row')} visit {count:,} distinct states"
    if table.shape[1] == 1 and table.dtype.kind in "iu" and table.min() >= 0 and table.max() < 2 * count:
        tabular = Tabular().fit(table)
        return tabular, f"One feature a state: {why}."
    return found, f"One feature a state: {why}."


def _of_numbers(states: Any, draws: _Draws, most: int, random_state: int) -> Choice:
    """Features of states of numbers, ``most`` at most where they are dense."""
    values = _inputs.columns(states).values
    still, moving = (np.flatnonzero((values > 1) & kept).tolist() for kept in (draws.still, ~draws.still))
    if not still or not moving:
        return _of_moving(states, values, draws, most, random_state)
    assert draws.episodes is not None
    own, rest = states[:, moving], draws.among(moving)
    found, sentence = _of_moving(own, values[moving], rest, max(1, most - len(still)), random_state)
    if len(still) <= draws.episodes // FEWEST_ROWS:
        kept: FeatureMap = Polynomial(1)
        name = f"The standardised numbers, {_many(len(still), 'feature')}"
    else:
        kept = RandomFourier(max(1, draws.episodes // ROWS_A_FEATURE), random_state=random_state)
        name = f"Random Fourier features, {_many(kept.n_features, 'feature')}"
    why = f"{_many(len(still), 'number')} that stay{'s' * (len(still) == 1)} the same all through an episode."
    return ByColumn([(found, moving), (kept, still)]).fit(states), f"{sentence} {name}: {why}"


def _of_moving(states: Any, values: NDArray[np.int64], draws: _Draws, most: int, random_state: int) -> Choice:
    """As `_of_numbers`, without a look at which columns stay the same."""
    rows = draws.rows
    varying = int((values > 1).sum())
    constant = len(values) - varying
    left_out = f" ({_many(constant, 'constant column')} left out)" if constant else ""
    if not varying:
        return Polynomial(1).fit(states), f"One constant feature: in {draws} no number of the states varies."
    data = f"{draws}, {_many(varying, 'number')} each{left_out}"
    room, most = MOST_ENTRIES // rows, min(most, MOST_DENSE)
    crowded = False
    for candidate in _candidates(values):
        if candidate.size <= min(most, room) and (candidate.rich or not crowded):
            return candidate.map.fit(states), f"{candidate.name}, {_many(candidate.size, 'feature')}: {data}."
        crowded |= candidate.rich and candidate.size <= most
    if crowded:
        tiles = _tiles(varying, rows, random_state).fit(states)
        name = f"Tile coding, {tiles.tilings} tilings with {tiles.tiles} tiles a column"
        why = f"{data}, whose dense features would take more than {MOST_ENTRIES * 8 >> 30} GB"
        return tiles, f"{name}, {_many(tiles.n_features_, 'feature')}: {why}."
    if varying <= rows // FEWEST_ROWS:
        why = f"{data}, too few for more"
        return Polynomial(1).fit(states), f"The standardised numbers, {_many(varying, 'feature')}: {why}."
    drawn = RandomFourier(max(1, most), random_state=random_state).fit(states)
    name = f"Random Fourier features, {_many(drawn.n_features_, 'feature')}"
    return drawn, f"{name}: {data}, too few for a feature a number."


class _Candidate(NamedTuple):
    map: FeatureMap
    size: int
    name: str
    rich: bool  # whether it has more than a few features for pairs of columns


def _candidates(values: NDArray[np.int64]) -> Iterator[_Candidate]:
    """Dense maps for columns of so many values, those of most features first."""
    varying = int((values > 1).sum())

    def fourier(order: int, together: int) -> _Candidate:
        highest = [(0, 1, order)[count - 1] for count in values.tolist()]
        what = (
            " of single columns" if together == 1 < varying else " of single columns and pairs" if varying > 2 else ""
        )
        made = Fourier(order, coupled=together, tails=TAILS)
        return _Candidate(made, _terms.count(highest, together), f"Fourier basis of order {order}{what}", order > 1)

    if varying <= FEW_COLUMNS:
        yield from (fourier(order, 2) for order in range(9 if varying <= 2 else 5, 0, -1))
    else:
        squares = int((values > 2).sum())
        size = varying + varying * (varying - 1) // 2 + squares
        yield _Candidate(Polynomial(2), size, "Polynomial of degree 2", True)
    yield from (fourier(order, 1)._replace(rich=False) for order in (3, 2))
    yield _Candidate(Polynomial(1), varying, "The standardised numbers", False)


def _tiles(varying: int, rows: int, random_state: int) -> TileCoding:
    """Tilings of few columns each; more of them, and wider tiles, where the rows are fewer."""
    many = rows > 2_500_000
    tilings = max(8 if many else 16, -(-varying // tiling.TOGETHER))
    return TileCoding(tilings, 16 if many else 8, hash=1 << 16, random_state=random_state)


def _of_mixed(table: NDArray[Any], named: list[int], draws: _Draws, random_state: int) -> Choice:
    """Features of tables with columns of texts, or of numbers that are ``named`` as standing for texts."""
    texts = table.dtype.kind in "OUS"
    numbers = [j for j in range(table.shape[1]) if j not in named and (not texts or _is_numeric(table[:, j]))]
    kinds, left_out = [], []
    size = 0
    for j in sorted(set(range(table.shape[1])) - set(numbers)):
        count = OneHot().fit(table[:, j]).n_features_
        carried = draws.episodes if draws.still[j] and draws.episodes is not None else draws.rows
        if count <= max(2, carried // ROWS_A_STATE):
            kinds.append(j)
            size += count
        else:
            left_out.append(j)
    parts: list[tuple[FeatureMap, list[int]]] = []
    words = []
    if numbers:
        room = max(1, draws.most - size)
        found, sentence = _of_numbers(_inputs.numbers(table[:, numbers]), draws.among(numbers), room, random_state)
        parts.append((found, numbers))
        words.append(sentence)
    if kinds:
        parts.append((OneHot(), kinds))
        words.append(f"One feature a category, {_many(size, 'feature')}: {_many(len(kinds), 'column')} of texts.")
    if left_out:
        which = f"column{'s' * (len(left_out) > 1)} {', '.join(map(str, left_out))}"
        words.append(f"Left out: {which} of texts that hardly repeat.")
    if not parts:
        raise InputError(
            f"states are texts that hardly repeat in {draws}: no feature can be chosen for them. Give a "
            "feature map that turns them into numbers."
        )
    return ByColumn(parts).fit(table), " ".join(words)


def _is_numeric(column: NDArray[Any]) -> bool:
    """Whether a column of objects or texts has numbers; digits among objects are names."""
    if column.dtype.kind == "O" and any(isinstance(entry, str) for entry in column):
        return False
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"
