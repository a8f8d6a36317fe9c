"""Verdicts made by hand, one of each kind."""

from __future__ import annotations

from rewright.ir.types import SourceSpan
from rewright.refine.verdict import Counterexample, Evidence, Finding, OutputRelation, Stats, Verdict


def relation(name: str, placement: str, expected: str | None = None, holds: bool = True) -> OutputRelation:
    return OutputRelation(name, placement, f"{name} = {name}@0", expected, holds)


def proved(layers: int = 32) -> Verdict:
    gradients = [relation(f"grad:layers.{i}.weight", "Shard(0)") for i in range(layers)]
    relations = [relation("logits", "Replicate()", expected="Replicate()"), *gradients]
    return Verdict(
        status="proved",
        evidence=Evidence.TESTED,
        assumptions=("casts between float types preserve values",),
        relation={r.name: r for r in relations},
        notes=("layers.0 adds in bf16 where the sequential program adds in f32",),
        stats=Stats(100, 1600, 8, {"lifted": 95, "reused": 5}, {"capture": 1.25, "lift": 0.5}),
        reason="every output of the sequential program is held by the ranks",
    )


def refuted(file: str = "", line: int = 0) -> Verdict:
    finding = Finding(
        kind="missing_reduction",
        message="logits is a sum over tp that is never reduced",
        sequential=SourceSpan("/nowhere/model.py", 88, "forward", "layers.0.mlp"),
        distributed=SourceSpan(file, line) if file else None,
        expected="Replicate()",
        found='Partial("sum")',
        suggestion="insert all_reduce over tp after model.py:88",
        counterexample=Counterexample({"x": (2, 4), "scale": ()}, "logits", (0, 1), 1.25, 0.5, 7),
    )
    outputs = {"logits": relation("logits", 'Partial("sum")', expected="Replicate()", holds=False)}
    return Verdict("refuted", Evidence.TESTED, relation=outputs, findings=(finding,), reason="logits differs")


def unknown() -> Verdict:
    reason = "no rule relates sort at model.py:12; the values agree in 3 random runs"
    return Verdict("unknown", Evidence.TESTED, reason=reason)
