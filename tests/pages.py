"""Pages of the docs show what their scripts print: words to the letter, numbers nearly."""

import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NUMBER = re.compile(r"(?<![\w^])-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def blocks(page, language="text"):
    """The blocks of a page that are marked as this language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def check(page, printed, rtol=0.01):
    """Hold the text blocks of a page against what was printed; the last digits may depend on the machine."""
    shown = " ".join(" ".join(blocks(page)).split())
    printed = " ".join(printed.split())
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", printed)
    pairs = [[float(text.replace(",", "")) for text in NUMBER.findall(part)] for part in (shown, printed)]
    np.testing.assert_allclose(*pairs, rtol=rtol)
