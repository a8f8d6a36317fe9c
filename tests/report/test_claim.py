"""Verdicts survive their JSON form, and what is no verdict is refused in one sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewright.ir.errors import RewrightError
from rewright.refine import refine
from rewright.refine.verdict import Verdict
from rewright.report import Claim, document, read_verdict
from tests.refine.stacks import stack
from tests.report.verdicts import proved, refuted, unknown


@pytest.mark.parametrize("verdict", [proved(), refuted("/src/parallel.py", 2), unknown()])
def test_a_verdict_is_read_back_as_it_was(verdict: Verdict) -> None:
    assert read_verdict(json.loads(json.dumps(document(verdict)))) == verdict


def test_a_real_verdict_has_the_same_report_again() -> None:
    first = document(refine(*stack(3, dropped=[1])))
    assert document(read_verdict(json.loads(json.dumps(first)))) == first


def test_keys_of_later_versions_are_passed_over() -> None:
    found = document(refuted())
    found["findings"][0]["where"]["later"] = 1
    found["outputs"][0]["later"] = 1
    assert read_verdict(found) == refuted()


@pytest.mark.parametrize("broken", [{}, {"status": "fine"}, {**document(proved()), "status": "PROVED"}, {"status": 3}])
def test_what_is_no_verdict_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(RewrightError, match="no report of a verdict"):
        read_verdict(broken)


def test_an_error_is_a_status_of_its_own() -> None:
    assert Claim("a", unknown(), error="no such file").status == "error"
    assert Claim("a", proved()).status == "proved"
