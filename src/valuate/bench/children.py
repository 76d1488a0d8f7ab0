"""Fresh processes: each measurement has its own, with its own memory and a numerical library that nobody held back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

#: Variables by which an environment can make OpenBLAS choose kernels for another processor or tune it badly.
BLAS_VARIABLES = "OPENBLAS_"


class ChildFailed(Exception):
    """A process ended with an error; the message is the last line that it wrote."""


def held_back() -> dict[str, str]:
    """The inherited variables that measuring processes do not see."""
    return {name: value for name, value in os.environ.items() if name.startswith(BLAS_VARIABLES)}


def fresh(code: str, *arguments: str) -> str:
    """Run Python code in a new process that finds this very package; returns what it wrote to standard output."""
    environment = {name: value for name, value in os.environ.items() if name not in held_back()}
    root = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH")]))
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        lines = ended.stderr.strip().splitlines()
        raise ChildFailed(lines[-1] if lines else f"ended with code {ended.returncode} and without a word")
    return ended.stdout


def in_child(function: str, *arguments: Any) -> Any:
    """Call ``"module:function"`` in a new process; arguments and answer travel as JSON."""
    code = "from valuate.bench.children import answer; answer()"
    return json.loads(fresh(code, function, json.dumps(arguments)).splitlines()[-1])


def answer() -> None:
    """The other end of `in_child`."""
    module, _, name = sys.argv[1].partition(":")
    found = getattr(import_module(module), name)(*json.loads(sys.argv[2]))
    sys.stdout.write("\n" + json.dumps(found) + "\n")
