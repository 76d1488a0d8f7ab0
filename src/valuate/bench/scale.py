"""How large a benchmark is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of the data and of the samples.

    Parameters
    ----------
    dram_bytes : int
        Size of the feature rows that must not fit in any cache.
    sparse_rows : int
        Stored sparse rows; 384 bytes each.
    table_rows : int
        Transitions over a table of few states.
    sample_bytes : int
        Bytes that a sample of dense steps reads, which sets the number of steps.
    cached_steps, sparse_steps : int
        Steps of a sample in cache, and on sparse rows.
    slow_steps : int
        Steps of a sample of the ways that take microseconds and more.
    rounds : int
        Samples of each; beside one more that is thrown away.
    """

    dram_bytes: int
    sparse_rows: int
    table_rows: int
    sample_bytes: int
    cached_steps: int
    sparse_steps: int
    slow_steps: int
    rounds: int

    def steps(self, bytes_a_step: int) -> int:
        """Steps of a sample that reads ``bytes_a_step`` in each: a multiple of 4, as steps are taken in fours."""
        return max(4, self.sample_bytes // bytes_a_step // 4 * 4)


FULL = Scale(
    dram_bytes=1 << 30,
    sparse_rows=1 << 20,
    table_rows=10_000_000,
    sample_bytes=1 << 29,
    cached_steps=1 << 19,
    sparse_steps=1 << 17,
    slow_steps=1 << 14,
    rounds=9,
)
QUICK = Scale(
    dram_bytes=1 << 27,
    sparse_rows=1 << 18,
    table_rows=1_000_000,
    sample_bytes=1 << 28,
    cached_steps=1 << 18,
    sparse_steps=1 << 16,
    slow_steps=1 << 12,
    rounds=5,
)
