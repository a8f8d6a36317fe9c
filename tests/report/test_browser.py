"""The HTML report in a real browser, headless and without a network: ``make browser``.

Needs the extra ``browser`` and a Chromium, from the system's packages or from ``playwright install chromium``.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewright.refine import refine
from rewright.report import Claim, draw_finding, page
from tests.refine.stacks import stack
from tests.report.verdicts import proved

playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra rewright[browser]")
pytest.importorskip("PIL", reason="needs the extra rewright[browser]")
from PIL import Image, ImageChops, ImageStat  # noqa: E402

PICTURES = Path(__file__).parent / "pictures"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    verdict = refine(*stack(4, dropped=[1], scaled=[3]))
    drawings = tuple(draw_finding(verdict, finding, alone=False) or "" for finding in verdict.findings)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page([Claim("stack", verdict, 0.5, drawings), Claim("llama", proved(), 1.0)], "Two claims"))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    installed = next((path for name in NAMES if (path := shutil.which(name))), None)
    with playwright.sync_playwright() as started:
        try:
            found = started.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        except playwright.Error:
            pytest.skip("there is no Chromium; install one, or run playwright install chromium")
        yield found
        found.close()


class Visit:
    """A page that was opened, with what it asked the network for and what it complained of."""

    def __init__(self, browser: Any, report: Path, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(report.as_uri())

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *_: object) -> None:
        self.context.close()


def test_it_loads_nothing_and_complains_of_nothing(browser: Any, report: Path) -> None:
    visit = Visit(browser, report)
    with visit as shown:
        assert shown.title() == "Two claims"
        assert visit.requests == [report.as_uri()]
        assert visit.complaints == []


def test_both_graphs_are_drawn_with_their_places_in_one_row(browser: Any, report: Path) -> None:
    with Visit(browser, report) as shown:
        figures = shown.locator("figure.graphs")
        assert figures.count() == 2
        boxes = [box.bounding_box() for box in figures.first.locator("g.focus rect").all()]
        assert len(boxes) == 2
        assert boxes[0]["y"] == pytest.approx(boxes[1]["y"])
        assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
        assert all(box["height"] > 20 for box in boxes)


@pytest.mark.parametrize("width", [1000, 380])
def test_both_programs_are_in_sight_on_a_narrow_page(browser: Any, report: Path, width: int) -> None:
    """Side by side, or one below the other: never beyond the right edge."""
    with Visit(browser, report, viewport={"width": width, "height": 800}) as shown:
        pictures = shown.locator("figure.graphs").first.locator("svg")
        assert pictures.count() == 2
        for picture in pictures.all():
            box = picture.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        assert shown.locator("figure.graphs").first.evaluate("e => e.scrollWidth <= e.clientWidth + 1")


def test_text_of_boxes_stays_inside_of_them(browser: Any, report: Path) -> None:
    with Visit(browser, report) as shown:
        for node in shown.locator("svg g.node").all():
            outer = node.locator("rect").bounding_box()
            for text in node.locator("text").all():
                inner = text.bounding_box()
                assert outer["x"] <= inner["x"] + 1
                assert inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1


@pytest.mark.parametrize(("scheme", "button", "dark"), [("light", "Dark", False), ("dark", "Light", True)])
def test_the_theme_follows_the_system_and_can_be_changed(
    browser: Any, report: Path, scheme: str, button: str, dark: bool
) -> None:
    with Visit(browser, report, color_scheme=scheme) as shown:
        assert is_dark(shown) == dark
        shown.get_by_role("button", name=button).click()
        assert is_dark(shown) != dark


def is_dark(shown: Any) -> bool:
    colour = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour[4:-1].split(",")) < 3 * 128


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(browser: Any, report: Path, scheme: str) -> None:
    """WCAG 2.1 AA: 4.5 to 1 for text, against the nearest background."""
    with Visit(browser, report, color_scheme=scheme) as shown:
        found = shown.evaluate(_CONTRAST)
        assert found
        assert min(ratio for ratio, _ in found) >= 4.5, sorted(found)[:5]


def test_counterparts_light_up_together(browser: Any, report: Path) -> None:
    with Visit(browser, report) as shown:
        node = shown.locator("figure.graphs").first.locator("g.sequential[data-pair]").first
        pair = node.get_attribute("data-pair")
        node.hover()
        assert shown.locator(f"figure.graphs >> nth=0 >> g.lit[data-pair='{pair}']").count() == 2


def test_it_works_by_keyboard(browser: Any, report: Path) -> None:
    with Visit(browser, report) as shown:
        shown.keyboard.press("Tab")
        assert shown.evaluate("document.activeElement.className") == "skip"
        shown.keyboard.press("Enter")
        assert shown.evaluate("location.hash") == "#content"


def test_it_fits_a_narrow_screen_and_is_whole_without_scripts(browser: Any, report: Path) -> None:
    with Visit(browser, report, viewport={"width": 380, "height": 800}, java_script_enabled=False) as shown:
        assert shown.get_by_role("heading", name="1. missing reduction").is_visible()
        assert not shown.get_by_role("button").is_visible()
    with Visit(browser, report, viewport={"width": 380, "height": 800}) as shown:
        assert shown.evaluate("document.documentElement.scrollWidth") <= 380


_CONTRAST = """() => {
  const parse = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = (colour) => {
    const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || node.closest("script, style, svg, .skip") || !node.getClientRects().length) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.textContent.slice(0, 40)]);
  }
  return found;
}"""


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("wide", 1000, "light"), ("phone", 380, "light"), ("dark", 1000, "dark")]
)
def test_it_looks_as_it_did(browser: Any, report: Path, name: str, width: int, scheme: str) -> None:
    """A tenth of its size, so that another font is no other page. Delete a picture to have it made anew; look at it."""
    with Visit(browser, report, color_scheme=scheme, viewport={"width": width, "height": 1600}) as shown:
        taken = Image.open(io.BytesIO(shown.screenshot())).convert("L").resize((width // 10, 160), Image.Resampling.BOX)
    kept = PICTURES / f"{name}.png"
    if not kept.exists():
        taken.save(kept)
        pytest.fail(f"{kept} was not there, and is made anew: look at it")
    expected = Image.open(kept)
    assert taken.size == expected.size
    far = ImageChops.difference(taken, expected)
    assert ImageStat.Stat(far).mean[0] < 3.0, "of 255 shades"
    blocks = far.resize((far.width // 10, far.height // 10), Image.Resampling.BOX)
    assert blocks.getextrema()[1] < 40, "something else is somewhere"
