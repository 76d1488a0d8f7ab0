"""The README's example prints what the README shows, and links lead somewhere."""

import re

import pages

README = pages.ROOT / "README.md"


def test_the_example_prints_what_is_shown(capsys):
    (code,) = pages.blocks(README, "python")
    exec(compile(code, "README.md", "exec"), {})
    pages.check(README, capsys.readouterr().out)


def test_every_link_leads_somewhere():
    for page in (README, *sorted(pages.DOCS.rglob("*.md"))):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
