"""The report in a real browser: drawn, quiet, within the window, told in words, printed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from gpufabric.core.text import use_language
from gpufabric.report.decision_words import decision_of
from gpufabric.report.report_page import report_html
from tests.report.advices import BOTH, SERVING, advice, drawings
from tests.report.browser import Browser, browser

pytestmark = pytest.mark.needs("chromium")

PAGES = {"en": (BOTH, "en"), "zh_CN": (BOTH, "zh_CN"), "serving": (SERVING, "en")}

PAPER_PX = 703
"""Width of what is printed on A4 between its margins."""

# What sticks out of the window, but for what stands in a box that scrolls.
STICKS_OUT = """(() => {
  const scrolls = (node) => {
    for (let up = node.parentElement; up; up = up.parentElement) {
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(up).overflowX)) return true;
    }
    return false;
  };
  return [...document.body.querySelectorAll("*")]
    .filter((node) => !node.closest("defs") && node.getBoundingClientRect().width > 0)
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !scrolls(node))
    .map((node) => `${node.tagName} ${node.className?.baseVal ?? node.className}`);
})()"""

# Words of the page and its drawings that are smaller than what a telephone shows well.
SMALL_WORDS = """(() => {
  const seen = (node) => node.getClientRects().length && getComputedStyle(node).display !== "none";
  const size = (node) => {
    const given = parseFloat(getComputedStyle(node).fontSize);
    const drawing = node.closest("svg[viewBox]");
    if (!drawing) return given;
    return given * drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
  };
  return [...document.querySelectorAll("main *")]
    .filter((node) => [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim()))
    .filter((node) => !["TITLE", "DESC", "STYLE", "SCRIPT"].includes(node.tagName.toUpperCase()))
    .filter((node) => seen(node) && size(node) < 10.99)
    .map((node) => `${size(node)} ${node.textContent.slice(0, 40)}`);
})()"""

# Pairs of words within one figure that lie on each other, and words that its edge cuts.
CLASHES = """(() => {
  const found = [];
  for (const plot of document.querySelectorAll(".plot")) {
    const frame = plot.getBoundingClientRect();
    const words = [...plot.querySelectorAll("svg text")]
      .filter((node) => node.textContent.trim() && !node.closest(".hoverlayer"))
      .map((node) => [node.textContent, node.getBoundingClientRect()])
      .filter(([, box]) => box.width && box.height);
    words.forEach(([text, box], at) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1) found.push(`cut: ${text}`);
      for (const [other, its] of words.slice(at + 1)) {
        const wide = Math.min(box.right, its.right) - Math.max(box.left, its.left);
        const high = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
        if (wide > 2 && high > 4) found.push(`${plot.id}: ${text} | ${other}`);
      }
    });
  }
  return found;
})()"""

FIGURES = """[...document.querySelectorAll("figure")].map((figure) => ({
  label: figure.querySelector("[role=img]")?.getAttribute("aria-label")
    ?? figure.querySelector("svg title")?.textContent,
  caption: figure.querySelector("figcaption").textContent,
  drawn: figure.querySelectorAll("svg").length,
  plot: figure.querySelector(".plot") !== null,
  numbers: figure.querySelectorAll("details tbody tr").length,
}))"""

SETTLED = """new Promise((done) => {
  const wide = () => [...document.querySelectorAll(".plot")].every((plot) =>
    Math.abs(plot.clientWidth - (plot._fullLayout?.width ?? -9)) < 2);
  const look = (left) => wide() || !left ? done(wide()) : setTimeout(() => look(left - 1), 50);
  look(100);
})"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module", params=PAGES)
def opened(
    request: pytest.FixtureRequest, page: Browser, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Browser]:
    """A page of the report, open at 1280 pixels."""
    text, language = PAGES[request.param]
    path = tmp_path_factory.mktemp("report") / "report.html"
    told = advice(text, language)
    use_language(language)
    try:
        path.write_text(report_html(told, drawings(told)), encoding="utf-8")
    finally:
        use_language("en")
    page.open(path, 1280)
    return request.param, page


def test_the_page_is_quiet_and_asks_for_nothing(opened: tuple[str, Browser]) -> None:
    name, page = opened
    assert page.complaints() == []
    asked = [url for url in page.requests() if not url.startswith(("data:", "blob:"))]
    assert [url.rsplit("/", 1)[-1] for url in asked] == ["report.html"]
    assert page.ask("document.documentElement.lang") == ("zh-CN" if name == "zh_CN" else "en")


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out(opened: tuple[str, Browser], width: int) -> None:
    _name, page = opened
    page.reopen(width)
    assert page.ask(SETTLED)
    assert page.ask("innerWidth") == width
    assert page.ask(STICKS_OUT) == []
    assert page.ask("document.documentElement.scrollWidth") <= width


def test_words_on_a_telephone_are_large_enough(opened: tuple[str, Browser]) -> None:
    _name, page = opened
    page.reopen(390, 844)
    assert page.ask(SETTLED)
    assert page.ask(SMALL_WORDS) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_words_of_a_figure_do_not_clash(opened: tuple[str, Browser], width: int) -> None:
    _name, page = opened
    page.reopen(width)
    assert page.ask(SETTLED)
    assert page.ask(CLASHES) == []


def test_paper_cuts_nothing_and_shows_all(opened: tuple[str, Browser]) -> None:
    """Laid out as on A4; what is wider would make the browser print all of it smaller."""
    _name, page = opened
    page.reopen(PAPER_PX)
    page.call("Emulation.setEmulatedMedia", media="print")
    page.ask("dispatchEvent(new Event('beforeprint'))")
    try:
        assert page.ask("document.documentElement.scrollWidth") <= PAPER_PX
        assert page.ask("document.querySelectorAll('details:not([open], .told)').length") == 0
    finally:
        page.ask("dispatchEvent(new Event('afterprint'))")
        page.call("Emulation.setEmulatedMedia", media="")
    assert page.ask("document.querySelectorAll('details[open]').length") == 0


def test_every_figure_is_drawn_and_told_in_words(opened: tuple[str, Browser]) -> None:
    _name, page = opened
    figures: list[dict[str, Any]] = page.ask(FIGURES)
    assert len(figures) >= 12
    for figure in figures:
        assert figure["drawn"]
        assert len(figure["label"]) > 10
        assert len(figure["caption"]) > 15
        assert figure["numbers"] or not figure["plot"]


def test_the_first_screen_holds_the_decision(opened: tuple[str, Browser]) -> None:
    name, page = opened
    page.reopen(1280, 800)
    assert page.ask(SETTLED)
    bottom = page.ask("document.querySelector('.verdict').getBoundingClientRect().bottom + scrollY")
    assert bottom <= 800
    words = page.ask("document.querySelector('.verdict').innerText").replace("\xa0", " ")
    told = advice(*PAGES[name])
    assert told.winner.split("+")[0] in words

    def reasons() -> tuple[str, ...]:
        use_language(PAGES[name][1])
        return tuple(decision_of(told).reasons)

    assert all(reason[-20:] in words for reason in copy_context().run(reasons))


def test_the_ledger_sorts_and_narrows(opened: tuple[str, Browser]) -> None:
    name, page = opened
    rows = "[...document.querySelectorAll('#ledger-table tbody tr')]"
    n = page.ask(f"{rows}.length")
    assert n == len(advice(*PAGES[name]).ledger)
    likely = f"{rows}.map((row) => Number(row.cells[2].dataset.value))"
    page.ask("document.querySelectorAll('#ledger-table th button')[2].click()")
    assert page.ask(likely) == sorted(page.ask(likely), reverse=True)
    page.ask("document.querySelectorAll('#ledger-table th button')[2].click()")
    assert page.ask(likely) == sorted(page.ask(likely))
    shown = f"{rows}.filter((row) => !row.hidden).length"
    search = "document.querySelector('[data-filters] input[type=search]')"
    page.ask(f"{search}.value = 'energy.pue'; {search}.dispatchEvent(new Event('input'))")
    assert page.ask(shown) == 1
    page.ask(f"{search}.value = ''; {search}.dispatchEvent(new Event('input'))")
    page.ask("document.querySelector('[data-filters] input[type=checkbox]').click()")
    assert page.ask(shown) == sum(row.is_assumed for row in advice(*PAGES[name]).ledger)
    page.ask("document.querySelector('[data-filters] input[type=checkbox]').click()")
    assert page.ask(shown) == n


@pytest.mark.needs("pdftotext")
def test_it_prints(opened: tuple[str, Browser], tmp_path: Path) -> None:
    name, page = opened
    (tmp_path / "report.pdf").write_bytes(page.printed())
    text = subprocess.run(
        ["pdftotext", "-layout", tmp_path / "report.pdf", "-"], capture_output=True, check=True
    ).stdout.decode()
    assert 5 < text.count("\f") < 60
    told = advice(*PAGES[name])
    first = text.split("\f", 1)[0]
    assert told.winner.split("+")[0] in first
    assert told.economics.plan.candidates[0].fabric.content_hash[:40] in "".join(text.split())
    if name != "zh_CN":
        assert "Pitfalls in this spec" in first
