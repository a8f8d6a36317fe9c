"""What a person reads."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from rewright.refine.verdict import Verdict
from rewright.report import print_verdict
from tests.report.verdicts import proved, refuted, relation, unknown


def text(verdict: Verdict, title: str = "", width: int = 80) -> str:
    stream = io.StringIO()
    print_verdict(verdict, Console(file=stream, width=width), title)
    return stream.getvalue()


def test_a_proof_tells_relations_assumptions_and_time() -> None:
    report = text(proved(), "llama")
    assert report == (
        "PROVED by the engine (not audited; --audit checks it independently): llama: every output of the sequential "
        "program is held by the ranks\n"
        "\n"
        "outputs\n"
        "  logits                      Replicate()\n"
        "  grad:layers.{0..31}.weight  Shard(0)   32 tensors\n"
        "\n"
        "assumptions\n"
        "  - casts between float types preserve values\n"
        "\n"
        "notes\n"
        "  - layers.0 adds in bf16 where the sequential program adds in f32\n"
        "\n"
        "work\n"
        "  nodes  100 sequential, 1,600 on 8 ranks\n"
        "  steps  95 lifted, 5 reused\n"
        "  time   capture 1.25 s, lift 0.50 s, total 1.75 s\n"
    )


def test_a_refutation_tells_both_lines_placements_repair_and_counterexample(tmp_path: Path) -> None:
    program = tmp_path / "parallel.py"
    program.write_text("def forward(x):\n    return x @ w.T\n")
    report = text(refuted(str(program), 2))
    assert report == (
        "REFUTED: logits differs\n"
        "\n"
        "1. missing reduction: logits is a sum over tp that is never reduced\n"
        "  sequential      model.py:88 (in layers.0.mlp)\n"
        "  distributed     parallel.py:2\n"
        "                  | return x @ w.T\n"
        "  expected        Replicate()\n"
        '  found           Partial("sum")\n'
        "  repair          insert all_reduce over tp after model.py:88\n"
        "  counterexample  logits[0, 1] = 1.25 sequential, 0.5 distributed (seed 7)\n"
        "  at sizes        x 2x4, scale scalar\n"
        "\n"
        "outputs\n"
        '  logits  Partial("sum")   expected Replicate()\n'
    )


def test_unknown_tells_the_reason() -> None:
    assert text(unknown()) == ("UNKNOWN: no rule relates sort at model.py:12; the values agree in 3 random runs\n")


def test_every_status_has_words_of_its_own() -> None:
    for verdict in (proved(), refuted(), unknown()):
        assert len(text(replace(verdict, reason="")).splitlines()[0]) > 40


def test_lines_are_never_wrapped() -> None:
    assert text(proved(), width=80) == text(proved(), width=20)


def test_what_is_wrong_comes_first_and_long_lists_end() -> None:
    names = [f"output{i}_" for i in range(60)]
    relations = [relation(name, "Replicate()", holds=name != "output59_") for name in names]
    report = text(replace(proved(), relation={r.name: r for r in relations}))
    assert report.index("output59_") < report.index("output0_")
    assert "and 20 more" in report


def test_long_lists_of_findings_end() -> None:
    verdict = refuted()
    report = text(replace(verdict, findings=verdict.findings * 12))
    assert "10. missing reduction" in report
    assert "11. missing reduction" not in report
    assert "and 2 more findings" in report


def test_brackets_in_names_are_no_markup() -> None:
    verdict = replace(unknown(), reason="x[bold] is odd")
    assert "x[bold] is odd" in text(verdict)
