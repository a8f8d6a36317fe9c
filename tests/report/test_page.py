"""The HTML report, read by an HTML parser: complete, well nested, self-contained, accessible."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from rewright.refine import refine
from rewright.refine.verdict import OutputRelation
from rewright.report import Claim, draw_finding, page
from tests.refine.stacks import stack
from tests.report.verdicts import proved, refuted, unknown

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Parsed(HTMLParser):
    """Elements with attributes and text; raises where tags do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def failing() -> str:
    verdict = refine(*stack(4, dropped=[1], scaled=[3]))
    drawings = tuple(draw_finding(verdict, finding, alone=False) or "" for finding in verdict.findings)
    return page([Claim("stack over tp=2", verdict, 0.5, drawings)])


def test_everything_is_in_the_page(failing: str) -> None:
    parsed = Parsed(failing)
    for words in (
        "refuted stack over tp=2",
        "1. missing reduction",
        "2. wrong value",
        "insert all_reduce over tp after parallel.py:122",
        "Why they are not related",
        "Counterexample",
        "Relation of every output",
        "floats are exact real numbers",
        "Both programs were run on the inputs below, and their values differ.",
        "lift ranks",
    ):
        assert words in parsed.text, words
    assert len(parsed.all("svg")) == 4  # of two findings both programs


def test_nothing_is_loaded_from_anywhere(failing: str) -> None:
    parsed = Parsed(failing)
    policy = next(a["content"] for a in parsed.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert not parsed.all("link")
    assert all("src" not in attributes for attributes in (*parsed.all("script"), *parsed.all("img")))
    assert all(str(a.get("href")).startswith("#") for a in parsed.all("a"))
    assert not re.search(r"@import|url\((?!#)", failing)


def test_it_can_be_used_without_eyes_and_without_a_mouse(failing: str) -> None:
    parsed = Parsed(failing)
    assert parsed.all("html")[0]["lang"] == "en"
    names = [attributes["id"] for _, attributes in parsed.elements if attributes.get("id")]
    assert len(names) == len(set(names))
    for _, attributes in parsed.elements:
        if attributes.get("aria-labelledby"):
            assert attributes["aria-labelledby"] in names
    assert all(a.get("scope") in ("row", "col") for a in parsed.all("th"))
    assert all(a.get("role") == "img" and a.get("aria-label") for a in parsed.all("svg"))
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
    scrolled = [a for tag, a in parsed.elements if tag in ("div", "figure") and a.get("tabindex") == "0"]
    assert scrolled
    assert all(a.get("aria-label") for a in scrolled)


def test_several_claims_begin_with_a_table() -> None:
    claims = [
        Claim("one", proved(), 1.0),
        Claim("two", refuted(), 2.0),
        Claim("three", unknown(), error="there is no file three.py; check the path"),
    ]
    parsed = Parsed(page(claims, "3 claims"))
    targets = [str(a["href"])[1:] for a in parsed.all("a") if str(a["href"]).startswith("#claim-")]
    names = {attributes.get("id") for _, attributes in parsed.elements}
    assert len(targets) == 3
    assert set(targets) <= names
    assert "there is no file three.py" in parsed.text


def test_what_programs_are_called_is_no_markup() -> None:
    verdict = replace(refuted(), reason="<script>alert(1)</script>", notes=("<img src=x onerror=alert(1)>",))
    parsed = Parsed(page([Claim("<b>&\"'", verdict)], "<i>"))
    assert len(parsed.all("script")) == 1
    assert not parsed.all("img")
    assert not parsed.all("b")
    assert "<script>alert(1)</script>" in parsed.text


def test_layers_that_are_alike_are_one_row() -> None:
    parsed = Parsed(page([Claim("llama", proved(layers=32))]))
    assert "grad:layers.{0..31}.weight" in parsed.text


def test_what_is_folded_can_be_opened() -> None:
    """Every input with its placement, and outputs beyond those that are shown at once."""
    verdict = refine(*stack(2))
    many = {f"o{n}{'x' * n}": OutputRelation(f"o{n}{'x' * n}", "Replicate()", "", None, True) for n in range(60)}
    parsed = Parsed(page([Claim("stack", replace(verdict, relation=many), 0.5)], "One claim"))
    assert verdict.programs is not None
    assert f"How the ranks hold {len(verdict.programs[1].inputs)} inputs" in parsed.text
    for name in verdict.programs[1].inputs:
        assert name in parsed.text
    assert all(name in parsed.text for name in many)
    assert "20 more" in parsed.text
