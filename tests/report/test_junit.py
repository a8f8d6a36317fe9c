"""JUnit XML as CI systems read it."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from rewright.report import Claim, junit
from tests.report.verdicts import proved, refuted, unknown

CLAIMS = [
    Claim("llama / tp2", proved(), 1.25),
    Claim("llama / tp4", refuted("/src/parallel.py", 2), 0.5),
    Claim("gpt / tp2", unknown(), 0.25),
    Claim("gpt / tp4", unknown(), 0.0, error="there is no file gpt.py; check the path"),
]


def test_counts_add_up() -> None:
    root = ElementTree.fromstring(junit(CLAIMS))
    (suite,) = root
    assert root.tag == "testsuites"
    assert suite.tag == "testsuite"
    for element in (root, suite):
        assert [element.get(key) for key in ("tests", "failures", "errors", "time")] == ["4", "1", "2", "2.000"]


def test_every_claim_is_a_case_with_its_outcome() -> None:
    cases = list(ElementTree.fromstring(junit(CLAIMS)).iter("testcase"))
    assert [case.get("name") for case in cases] == [claim.name for claim in CLAIMS]
    assert [[child.tag for child in case] for case in cases] == [[], ["failure"], ["error"], ["error"]]
    failure = cases[1][0]
    assert failure.get("type") == "refuted"
    assert "distributed: parallel.py:2" in (failure.text or "")
    assert "repair: insert all_reduce" in (failure.text or "")
    assert cases[3][0].get("message") == "there is no file gpt.py; check the path"


def test_characters_that_xml_cannot_hold_are_replaced() -> None:
    verdict = replace(unknown(), reason="a \x00 and \x1b[31m <b> & \ud800")
    (case,) = ElementTree.fromstring(junit([Claim("n\x08", verdict)]).encode("utf-8")).iter("testcase")
    assert case.get("name") == "n\N{REPLACEMENT CHARACTER}"
    assert "<b> &" in str(case[0].get("message"))
