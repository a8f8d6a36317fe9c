"""The demonstration: what it compares, and that its broken program is refuted at the line to mend."""

from __future__ import annotations

import json

import pytest

from rewright.cli import demo

pytest.importorskip("transformers", reason="the demonstration needs the extra rewright[models]")


def test_it_proves_twice_and_refutes_once() -> None:
    assert [act.expected for act in demo.acts()] == ["proved", "proved", "refuted"]


def test_the_broken_program_is_refuted_at_the_line_to_mend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [act for act in demo.acts() if act.expected == "refuted"]
    monkeypatch.setattr(demo, "acts", lambda: broken)
    monkeypatch.setattr(demo, "RANKS", 2)
    assert demo.run_demo(as_json=True) == 0
    [report] = json.loads(capsys.readouterr().out)
    assert report["status"] == "refuted"
    [finding] = report["findings"]
    assert finding["distributed"]["text"] == "return F.linear(hidden, down)"
    assert finding["suggestion"] == f"insert all_reduce over tp after demo_model.py:{finding['distributed']['line']}"


def test_an_unexpected_answer_is_status_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    [broken] = [replace(act, expected="proved") for act in demo.acts() if act.expected == "refuted"]
    monkeypatch.setattr(demo, "acts", lambda: [broken])
    monkeypatch.setattr(demo, "RANKS", 2)
    assert demo.run_demo(as_json=False) == 1
    assert "REFUTED" in capsys.readouterr().out
