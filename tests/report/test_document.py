"""What a program reads: strict JSON with the keys that the reference page lists."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rewright.refine.verdict import Verdict
from rewright.report import document
from tests.report.verdicts import proved, refuted, unknown


def read_back(verdict: Verdict) -> dict[str, Any]:
    return json.loads(json.dumps(document(verdict), allow_nan=False))


def test_a_refutation_in_full() -> None:
    read = read_back(refuted(__file__, 1))
    assert read["schema"] == 1
    assert (read["status"], read["evidence"], read["reason"]) == ("refuted", "tested", "logits differs")
    [finding] = read["findings"]
    assert finding["kind"] == "missing_reduction"
    assert finding["sequential"]["file"] == "/nowhere/model.py"
    assert finding["sequential"]["line"] == 88
    assert (
        finding["distributed"]["text"]
        == '"""What a program reads: strict JSON with the keys that the reference page lists."""'
    )
    assert finding["counterexample"] == {
        "sizes": {"x": [2, 4], "scale": []},
        "output": "logits",
        "index": [0, 1],
        "sequential_value": 1.25,
        "distributed_value": 0.5,
        "seed": 7,
    }
    [output] = read["outputs"]
    assert output == {
        "name": "logits",
        "placement": 'Partial("sum")',
        "equation": "logits = logits@0",
        "expected": "Replicate()",
        "holds": False,
    }


def test_every_output_is_listed() -> None:
    assert len(read_back(proved(layers=126))["outputs"]) == 127


def test_unknown_has_empty_lists_and_no_certificate() -> None:
    read = read_back(unknown())
    assert read["outputs"] == read["findings"] == read["notes"] == read["assumptions"] == []
    assert read["certificate"] is None


@pytest.mark.parametrize(("value", "written"), [(float("nan"), "nan"), (float("inf"), "inf"), (-float("inf"), "-inf")])
def test_values_that_json_lacks_are_strings(value: float, written: str) -> None:
    verdict = refuted()
    [finding] = verdict.findings
    assert finding.counterexample is not None
    example = replace(finding.counterexample, distributed_value=value)
    read = read_back(replace(verdict, findings=(replace(finding, counterexample=example),)))
    assert read["findings"][0]["counterexample"]["distributed_value"] == written
