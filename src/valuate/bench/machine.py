"""What the benchmark runs on."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from valuate._threads import thread_count
from valuate.bench.children import held_back, in_child

PACKAGES = ("valuate", "numpy", "scipy", "numba", "llvmlite", "jax", "torch")
SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def describe() -> dict[str, Any]:
    """The processor, its caches and memory, and the versions of everything that takes part."""
    return {
        "cpu": _cpu(),
        "cores": thread_count(),
        "caches": caches(),
        "memory_bytes": _memory(),
        "huge_pages": _read(Path("/sys/kernel/mm/transparent_hugepage/enabled")).partition("[")[2].partition("]")[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "blas": in_child(f"{__name__}:blas"),
        "unset": held_back(),
    }


def caches() -> dict[str, str]:
    """Sizes of the first core's data caches, as the system tells them; empty where it does not."""
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if _read(index / "type") != "Instruction":
            found[f"L{_read(index / 'level')}"] = _read(index / "size")
    return found


def largest_cache() -> int:
    """Bytes of the largest cache; 0 where the system does not tell."""
    sizes = [int(size[:-1]) * SIZES[size[-1]] for size in caches().values() if size[-1:] in SIZES]
    return max(sizes, default=0)


def blas() -> list[dict[str, Any]]:
    """What threadpoolctl says of the numerical libraries that NumPy and SciPy bring."""
    import_module("numpy.linalg")
    import_module("scipy.linalg")  # brings a library of its own
    from threadpoolctl import threadpool_info

    wanted = ("user_api", "internal_api", "version", "architecture", "threading_layer", "num_threads")
    return [{name: library[name] for name in wanted if name in library} for library in threadpool_info()]


def lines(machine: dict[str, Any]) -> list[str]:
    """The same for a reader: a few lines."""
    cache = ", ".join(f"{level} {size}" for level, size in machine["caches"].items()) or "caches unknown"
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    libraries = {
        " ".join(str(library.get(key, "?")) for key in ("internal_api", "version", "architecture"))
        for library in machine["blas"]
        if library.get("user_api") == "blas"
    }
    out = [
        f"{machine['cpu']}, {machine['cores']} cores, {cache}, huge pages {machine['huge_pages'] or 'unknown'}",
        f"Python {machine['python']}, {versions}",
        f"BLAS: {'; '.join(sorted(libraries)) or 'not recognised'}",
    ]
    if machine["unset"]:
        unset = ", ".join(f"{name}={value}" for name, value in machine["unset"].items())
        out.append(f"Not passed on to what is measured: {unset}")
    return out


def _cpu() -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
