"""SARIF 2.1.0: the structure that the standard asks for, and places that code hosts can show.

``SHAPES`` holds what the published schema says of the objects that are written here: which keys they must have, and
which they may; the schema allows no others.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewright.refine import refine
from rewright.report import Claim, sarif
from tests.refine.stacks import stack
from tests.report.verdicts import proved, refuted, unknown

LEVELS = {"none", "note", "warning", "error"}
SHAPES: dict[str, tuple[set[str], set[str]]] = {
    "log": ({"version", "runs"}, {"$schema", "inlineExternalProperties", "properties"}),
    "run": (
        {"tool"},
        {"results", "invocations", "columnKind", "originalUriBaseIds", "artifacts", "automationDetails", "properties"},
    ),
    "tool": ({"driver"}, {"extensions", "properties"}),
    "toolComponent": (
        {"name"},
        {"version", "semanticVersion", "informationUri", "rules", "notifications", "organization", "fullName"},
    ),
    "reportingDescriptor": (
        {"id"},
        {"name", "shortDescription", "fullDescription", "help", "helpUri", "defaultConfiguration", "properties"},
    ),
    "reportingConfiguration": (set(), {"enabled", "level", "rank", "parameters"}),
    "message": (set(), {"text", "markdown", "id", "arguments"}),
    "multiformatMessageString": ({"text"}, {"markdown"}),
    "result": (
        {"message"},
        {
            "ruleId", "ruleIndex", "rule", "kind", "level", "locations", "relatedLocations", "partialFingerprints",
            "fingerprints", "codeFlows", "fixes", "properties", "guid", "rank",
        },
    ),
    "location": (set(), {"id", "physicalLocation", "logicalLocations", "message", "annotations", "relationships"}),
    "physicalLocation": (set(), {"address", "artifactLocation", "region", "contextRegion"}),
    "artifactLocation": (set(), {"uri", "uriBaseId", "index", "description"}),
    "region": (set(), {"startLine", "startColumn", "endLine", "endColumn", "snippet", "charOffset"}),
    "logicalLocation": (set(), {"name", "index", "fullyQualifiedName", "decoratedName", "parentIndex", "kind"}),
    "invocation": ({"executionSuccessful"}, {"toolExecutionNotifications", "exitCode", "commandLine", "properties"}),
    "notification": ({"message"}, {"level", "descriptor", "locations", "associatedRule", "timeUtc"}),
    "reportingDescriptorReference": (set(), {"id", "index", "guid", "toolComponent"}),
}  # fmt: skip
PARTS: dict[str, dict[str, str]] = {
    "log": {"runs": "run"},
    "run": {"tool": "tool", "results": "result", "invocations": "invocation"},
    "tool": {"driver": "toolComponent"},
    "toolComponent": {"rules": "reportingDescriptor", "notifications": "reportingDescriptor"},
    "reportingDescriptor": {
        "shortDescription": "multiformatMessageString",
        "defaultConfiguration": "reportingConfiguration",
    },
    "result": {"message": "message", "locations": "location", "relatedLocations": "location"},
    "location": {
        "physicalLocation": "physicalLocation",
        "logicalLocations": "logicalLocation",
        "message": "message",
    },
    "physicalLocation": {"artifactLocation": "artifactLocation", "region": "region"},
    "invocation": {"toolExecutionNotifications": "notification"},
    "notification": {"message": "message", "descriptor": "reportingDescriptorReference"},
}


def check(kind: str, found: dict[str, Any]) -> None:
    """Required keys, no others than the schema knows, and the same of all parts."""
    required, optional = SHAPES[kind]
    assert required <= found.keys(), (kind, found)
    assert found.keys() <= required | optional, (kind, found.keys() - required - optional)
    assert found.get("level", "none") in LEVELS
    for key, part in PARTS.get(kind, {}).items():
        value = found.get(key)
        for one in value if isinstance(value, list) else [value] if value is not None else []:
            check(part, one)


@pytest.fixture
def claims(tmp_path: Path) -> list[Claim]:
    source = tmp_path / "models" / "my parallel.py"
    source.parent.mkdir()
    source.write_text("a = 1\nb = a @ a\n")
    return [
        Claim("llama / tp2", refuted(str(source), 2)),
        Claim("stack", refine(*stack(4, dropped=[1], scaled=[3]))),
        Claim("proved", proved()),
        Claim("gone", unknown(), error="there is no file gone.py; check the path"),
    ]


def test_the_log_has_the_structure_of_the_standard(claims: list[Claim], tmp_path: Path) -> None:
    log = json.loads(json.dumps(sarif(claims, "0.1.0", tmp_path)))
    assert log["version"] == "2.1.0"
    check("log", log)


def test_results_point_at_rules_and_have_stable_fingerprints(claims: list[Claim], tmp_path: Path) -> None:
    (run,) = sarif(claims, "0.1.0", tmp_path)["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    prints = [result["partialFingerprints"]["rewright/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints) == 3
    again = sarif(claims, "0.2.0", tmp_path)["runs"][0]["results"]
    assert [result["partialFingerprints"]["rewright/v1"] for result in again] == prints


def test_paths_are_relative_to_the_root_and_escaped(claims: list[Claim], tmp_path: Path) -> None:
    (run,) = sarif(claims, "0.1.0", tmp_path)["runs"]
    (location,) = run["results"][0]["locations"]
    artifact = location["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "models/my%20parallel.py", "uriBaseId": "SRCROOT"}
    assert location["physicalLocation"]["region"] == {"startLine": 2}
    for result in run["results"]:
        for place in (*result["locations"], *result.get("relatedLocations", [])):
            assert not place["physicalLocation"]["artifactLocation"]["uri"].startswith(("/", "file:"))


def test_no_path_of_the_machine_is_told(claims: list[Claim], tmp_path: Path) -> None:
    assert str(tmp_path) not in json.dumps(sarif(claims, "0.1.0", tmp_path))


def test_a_claim_without_a_verdict_is_a_notification(claims: list[Claim], tmp_path: Path) -> None:
    (run,) = sarif(claims, "0.1.0", tmp_path)["runs"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    (told,) = invocation["toolExecutionNotifications"]
    assert told["message"]["text"] == "gone: there is no file gone.py; check the path"


def test_nothing_wrong_is_an_empty_list() -> None:
    (run,) = sarif([Claim("proved", proved())], "0.1.0")["runs"]
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is True
