"""A process that carries out runs: one line of JSON in, one line of JSON out, until its input ends."""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO

from valuate.experiments.plan import Cell, Run
from valuate.experiments.running import Runner


def main(given: TextIO, answers: TextIO) -> None:
    """Serve requests. An error ends the process; whoever started it reads the reason from its error output."""
    runner: Runner | None = None
    for line in given:
        asked = json.loads(line)
        if runner is None or runner.root != asked["root"]:
            runner = Runner(asked["root"])
        run = Run(asked["experiment"], Cell.from_dict(asked["cell"]), asked["run"])
        answers.write(json.dumps(runner.run(run), allow_nan=False) + "\n")
        answers.flush()


def serve() -> None:
    """Answer on what was the standard output; what others write there goes to the error output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        main(sys.stdin, answers)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # whoever asked is gone


if __name__ == "__main__":
    serve()
