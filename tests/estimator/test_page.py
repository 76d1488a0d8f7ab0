"""docs/estimator.md shows what its script prints."""

import re
import runpy
from pathlib import Path

import numpy as np

NUMBER = re.compile(r"(?<![\w^])-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def test_the_page_shows_what_the_script_prints(capsys):
    docs = Path(__file__).parents[2] / "docs"
    runpy.run_path(str(docs / "examples" / "estimator.py"), run_name="__main__")
    printed = capsys.readouterr().out
    page = (docs / "estimator.md").read_text(encoding="utf-8")
    shown = "\n".join(re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL))
    assert NUMBER.sub("#", " ".join(shown.split())) == NUMBER.sub("#", " ".join(printed.split()))
    pairs = [[float(text.replace(",", "")) for text in NUMBER.findall(part)] for part in (shown, printed)]
    np.testing.assert_allclose(pairs[0], pairs[1], rtol=0.03)
