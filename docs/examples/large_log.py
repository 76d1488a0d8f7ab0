"""Write a Parquet log of as many rows as asked for, read it or fit it in a new process, and print time and memory.

python docs/examples/large_log.py 5000000 [next] [fit]
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS, LENGTH, PART = 20, 200, 500_000


def make(path: Path, rows: int, with_next: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, PART):
        n = min(PART, rows - start)
        states = rng.normal(size=(n + 1, COLUMNS))
        ends = (np.arange(n) + 1) % LENGTH == 0
        terminated = ends & (rng.random(n) < 0.5)
        columns = {f"obs_{k}": states[:-1, k] for k in range(COLUMNS)}
        if with_next:
            columns |= {f"next_obs_{k}": np.where(ends, 9.0, states[1:, k]) for k in range(COLUMNS)}
        columns |= {"action": rng.integers(0, 3, n), "reward": rng.normal(size=n), "terminated": terminated}
        columns |= {"truncated": ends & ~terminated, "episode": (start + np.arange(n)) // LENGTH}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def peak() -> float:
    """Most memory that this process has had, in GB (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 2**20


def measure(path: str) -> None:
    import pyarrow.parquet  # noqa: F401  # its import is not what is measured

    import valuate as va

    va.Transitions([0.0], [0.0], [0.0])
    before = peak()
    clock, busy = time.perf_counter(), time.process_time()
    log = va.read(path)
    clock, busy = time.perf_counter() - clock, time.process_time() - busy
    held = log.indexed_states()[0].nbytes + sum(x.nbytes for x in (log.rewards, log.actions, log.episodes))
    print(f"{len(log):,} rows in {clock:.1f} s ({busy:.1f} s of processor time), {peak() - before:.2f} GB at most,")
    print(f"for {held / 2**30:.2f} GB of states, actions, rewards and episodes")


def fit(path: str) -> None:
    """From the file to the value with its interval, 65,536 tiles, everything that the command does included."""
    from valuate import cli

    sys.argv = ["valuate", "fit", path, "--features", "tiles:16x16,hash=65536", "--discount", "0.95"]
    clock = time.perf_counter()
    try:
        cli.main()
    except SystemExit:  # 1: the log is made up of noise, and the doctor says what is odd about it
        pass
    print(f"{time.perf_counter() - clock:.1f} s, {peak():.2f} GB at most")


if __name__ == "__main__":
    if sys.argv[1] in ("read", "fit"):
        (measure if sys.argv[1] == "read" else fit)(sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.parquet"
            make(path, int(sys.argv[1]), "next" in sys.argv)
            what = "fit" if "fit" in sys.argv else "read"
            subprocess.run([sys.executable, __file__, what, str(path)], check=True)
