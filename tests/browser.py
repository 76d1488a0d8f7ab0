"""A headless Chromium for pages, and what every page of ours must be in it."""

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

#: Switched off: a sandbox that needs rights, a screen, and everything that calls out.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NARROW, WIDE = 390, 1280


@pytest.fixture(scope="session")
def browser():
    """A browser, or a skipped test that says what is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'valuate[test]'")
    path = os.environ.get("VALUATE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no chromium: install one, or name it in VALUATE_CHROMIUM")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield found
        found.close()


@dataclass
class Opened:
    """A page, and what went on while it was open."""

    page: object
    said: list = field(default_factory=list)
    requests: list = field(default_factory=list)


@contextmanager
def opened(browser, path, *, scheme="light", width=WIDE):
    """The page of a file, without a network."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, offline=True)
    try:
        out = Opened(context.new_page())
        out.page.on("console", lambda message: out.said.append(message.text))
        out.page.on("pageerror", lambda error: out.said.append(str(error)))
        out.page.on("request", lambda request: out.requests.append(request.url))
        out.page.goto(path.resolve().as_uri())
        yield out
    finally:
        context.close()


LOOK = """() => {
  const drawings = [...document.querySelectorAll("svg")].map(svg => {
    const box = svg.getBoundingClientRect(), inner = svg.getBBox(), view = svg.viewBox.baseVal;
    return {name: svg.getAttribute("aria-label"), role: svg.getAttribute("role"), width: box.width, height: box.height,
            shapes: svg.querySelectorAll("polyline, polygon, rect, circle").length,
            inside: inner.x >= -2 && inner.y >= -2 && inner.x + inner.width <= view.width + 2
                    && inner.y + inner.height <= view.height + 2};
  });
  const background = getComputedStyle(document.querySelector("section")).backgroundColor;
  return {drawings, background, ink: getComputedStyle(document.body).color, lang: document.documentElement.lang,
          title: document.title, wide: document.documentElement.scrollWidth > innerWidth,
          dead: [...document.querySelectorAll("nav a")].filter(a => !document.querySelector(a.hash)).length,
          text: document.body.innerText, ids: [...document.querySelectorAll("[id]")].map(x => x.id)};
}"""


def brightness(colour):
    """From 0 to 255, of what a browser says a colour is."""
    red, green, blue = (float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return 0.3 * red + 0.6 * green + 0.1 * blue


def check(browser, path, *, drawings):
    """The page opens without a network, says nothing, draws everything, and can be read in light and dark, wide and
    narrow. The text of it."""
    for scheme, width in (("light", WIDE), ("dark", WIDE), ("light", NARROW)):
        with opened(browser, path, scheme=scheme, width=width) as found:
            seen = found.page.evaluate(LOOK)
        assert found.said == [] and found.requests == [path.resolve().as_uri()]
        assert len(seen["drawings"]) >= drawings
        for drawing in seen["drawings"]:
            assert drawing["role"] == "img" and drawing["name"], drawing
            assert drawing["width"] > 200 and drawing["height"] > 60 and drawing["shapes"] > 0, drawing
            assert drawing["inside"], drawing
        assert not seen["wide"], f"the page is wider than {width}"
        assert seen["dead"] == 0 and len(seen["ids"]) == len(set(seen["ids"]))
        assert seen["lang"] == "en" and seen["title"]
        paper, ink = brightness(seen["background"]), brightness(seen["ink"])
        assert (paper > 200 and ink < 90) if scheme == "light" else (paper < 60 and ink > 200)
        for word in ("NaN", "nan ", "undefined"):
            assert word not in seen["text"], word
    return seen["text"]


def tips(browser, path):
    """What is shown where a pointer rests in the middle of each chart of lines."""
    out = []
    with opened(browser, path) as found:
        for figure in found.page.query_selector_all("figure[data-chart]"):
            figure.scroll_into_view_if_needed()
            box = figure.bounding_box()
            found.page.mouse.move(box["x"] + 0.55 * box["width"], box["y"] + 0.4 * box["height"])
            out.append(figure.query_selector(".tip").inner_text())
        assert found.said == []
    return out
