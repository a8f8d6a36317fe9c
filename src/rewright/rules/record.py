"""Records of evidence for rules, as files have them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.rules.rule import Rule

Tier = Literal["proved", "bounded", "tested", "none"]
INSTANCES = 20
"""Instances that a registered rule is tested on at least."""


@dataclass(frozen=True)
class Record:
    """The evidence of one rule; ``digest`` ties it to the rule and ``checker`` to the code that made it."""

    name: str
    statement: str
    digest: str
    checker: str
    tier: Tier
    grade: str | None
    proof: Mapping[str, Any]
    bounded: Mapping[str, Any]
    tests: Mapping[str, Any]
    substance: Mapping[str, bool]
    mutants: Sequence[Mapping[str, str]]
    assumptions: Sequence[str]

    def to_json(self) -> str:
        """The record as JSON."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @property
    def complete(self) -> bool:
        """Whether everything is there that a registered rule needs."""
        return (
            self.tier == "proved"
            and self.bounded["difference"] is None
            and self.tests["failed"] is None
            and self.tests["instances"] >= INSTANCES
            and all(self.substance.values())
        )


def rule_digest(rule: Rule) -> str:
    """The SHA-256 digest of everything that a rule says."""
    return hashlib.sha256(canonical_text(rule).encode()).hexdigest()


def canonical_text(rule: Rule) -> str:
    """A rule as text: both sides node by node, conditions and facts; the statement is not part of it."""
    parts = [graph_text(rule.left), graph_text(rule.right), repr(rule.conditions)]
    return "\n".join([*parts, graph_text(rule.facts) if rule.facts is not None else "no facts"])


def graph_text(graph: Graph) -> str:
    lines = [f"{n}: {node.op!r} {node.operands} {node.type}" for n, node in enumerate(graph.nodes)]
    return "\n".join([*lines, repr(sorted(graph.inputs.items())), repr(list(graph.outputs.items()))])


def save(records: Sequence[Record], path: Path) -> None:
    """Write records as one JSON document, a line for each record."""
    lines = [json.dumps(asdict(record), sort_keys=True) for record in records]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def load(path: Path) -> dict[str, Record]:
    """Records by rule name; raises RewrightError for a file that is none."""
    try:
        entries = json.loads(path.read_text())
        return {entry["name"]: Record(**entry) for entry in entries}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RewrightError(f"{path} holds no evidence records ({error}); make them again") from None
