"""docs/logs.md shows what its script prints, and names what is known."""

import re
import runpy
from pathlib import Path

from valuate.io.names import ROLES, canonical

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_shows_what_the_script_prints(capsys):
    runpy.run_path(str(DOCS / "examples" / "logs.py"), run_name="__main__")
    page = (DOCS / "logs.md").read_text(encoding="utf-8")
    shown = "".join(re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL))
    assert shown.split("\n") == [line for line in capsys.readouterr().out.split("\n") if line] + [""]


def test_the_names_on_the_page_are_known():
    page = (DOCS / "logs.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| (.*) \|$", page, re.M))
    keys = [key for cell in rows for key in re.findall(r"`([a-z_]+)`", cell)]
    assert sorted(keys) == sorted(ROLES)
    for cell, text in rows.items():
        plain = [name.strip(" .") for name in re.split(r"[,;]", re.sub(r"`[^`]*`|or .*", "", text)) if name.strip(" .")]
        assert plain and {canonical(name) for name in plain} <= set(re.findall(r"`([a-z_]+)`", cell)), text
