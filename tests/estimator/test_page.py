"""docs/estimator.md shows what its script prints."""

import runpy

import pages


def test_the_page_shows_what_the_script_prints(capsys):
    runpy.run_path(str(pages.DOCS / "examples" / "estimator.py"), run_name="__main__")
    pages.check(pages.DOCS / "estimator.md", capsys.readouterr().out, rtol=0.03)
