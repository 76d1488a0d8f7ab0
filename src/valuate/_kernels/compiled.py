"""What this process had to compile, because it was not in the cache on disk; and how long that took."""

import sys

from numba.core import event
from numba.core.dispatcher import Dispatcher

_timing = event.TimingListener()
event.register("numba:compile", _timing)


def seconds_compiling() -> float:
    """Seconds that this process has spent on compiling, since this module was loaded."""
    return float(_timing.duration) if _timing.done else 0.0


def compiled_here() -> dict[str, int]:
    """How many signatures of each kernel were compiled, not loaded; kernels with none are left out."""
    package = __name__.rpartition(".")[0]
    found = {}
    for module in [value for name, value in sys.modules.items() if name.startswith(package + ".")]:
        for name, kernel in vars(module).items():
            if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == module.__name__:
                misses = sum(kernel.stats.cache_misses.values())
                if misses:
                    found[f"{module.__name__}.{name}"] = misses
    return found
