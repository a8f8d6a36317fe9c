"""`rewright equiv` from the files of a user to the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

from rewright.cli.main import run

MODELS = """
import torch, torch.nn as nn, torch.nn.functional as F

class Apart(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.w, self.eps = nn.Parameter(torch.ones(8)), eps
        self.gate, self.up = nn.Linear(8, 6, bias=False), nn.Linear(8, 6, bias=False)
    def forward(self, x):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.w
        return F.silu(self.gate(y)) * self.up(y)

class Fused(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.w, self.eps, self.gate_up = nn.Parameter(torch.ones(8)), eps, nn.Linear(8, 12, bias=False)
    def forward(self, x):
        gate, up = self.gate_up(F.rms_norm(x, (8,), self.w, self.eps)).chunk(2, -1)
        return gate / (1 + torch.exp(-gate)) * up

def left(eps: float = 1e-6, rows: int = 3): return Apart(eps), (torch.zeros(rows, 8),)
def right(eps: float = 1e-6, rows: int = 3): return Fused(eps), (torch.zeros(rows, 8),)
def wrong(eps: float = 1e-6, rows: int = 3): return Fused(1e-5), (torch.zeros(rows, 8),)
def larger(eps: float = 1e-6, rows: int = 3): return Fused(eps), (torch.zeros(4, 8),)
"""
MAP = """
[relations]
"gate_up.weight" = "concat([gate.weight, up.weight], axis=0)"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "map.toml").write_text(MAP)
    (tmp_path / "wrong.toml").write_text('[relations]\n"gate_up.weight" = "gate.weight"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_proof_with_its_map_certificate_and_lemmas(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = ["equiv", "models.py:left", "models.py:right", "--relations", "map.toml"]
    assert run([*pair, "--certificate", "proof.json.gz", "--lemmas", "lemmas.json"]) == 0
    told = capsys.readouterr().out
    assert "PROVED and audited: both programs compute the same output" in told
    assert "gate_up.weight = concat([gate.weight, up.weight], axis=0)" in told
    assert (folder / "proof.json.gz").is_file()
    assert json.loads((folder / "lemmas.json").read_text())["format"] == "rewright.lemmas"
    assert run([*pair, "--lemmas", "lemmas.json"]) == 0


def test_what_was_proved_is_audited_for_the_programs_of_the_user(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = ["models.py:left", "models.py:right"]
    assert run(["equiv", *pair, "--relations", "map.toml", "--certificate", "proof.json"]) == 0
    capsys.readouterr()
    assert run(["audit", "proof.json", "--left", pair[0], "--right", pair[1]]) == 0
    told = capsys.readouterr().out
    assert told.startswith("HOLDS both programs compute the same output")
    assert "right gate_up.weight = concat([gate.weight, up.weight], axis=0)  (of left)" in told
    assert run(["audit", "proof.json", "--left", pair[0], "--right", pair[1], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["holds"] is True
    assert run(["audit", "proof.json", "--left", pair[0], "--right", "models.py:wrong"]) == 3
    assert "not about the right program" in capsys.readouterr().err


def test_a_refutation_in_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["equiv", "models.py:left", "models.py:wrong", "--relations", "map.toml", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "refuted"
    assert report["weight_map"] == ["right gate_up.weight = concat([gate.weight, up.weight], axis=0)  (of left)"]
    (finding,) = report["findings"]
    assert finding["kind"] == "eps"
    assert finding["sequential"]["text"].startswith("y = x * torch.rsqrt")
    assert finding["distributed"]["line"] == 18


def test_a_sweep_finds_a_field_that_one_side_does_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["equiv", "models.py:left", "models.py:wrong", "--config-sweep", "--json"]) == 1
    rows = {row["field"]: (row["left"], row["right"]) for row in json.loads(capsys.readouterr().out)["fields"]}
    assert rows == {"eps": ("moves", "stays"), "rows": ("moves", "moves")}
    assert run(["equiv", "models.py:left", "models.py:right", "--config-sweep"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["models.py:left", "nothing.json"], "cannot read nothing.json"),
        (["models.py:left", "models.py:nobody"], "no function 'nobody'"),
        (["models.py:left", "models.py:larger", "--relations", "map.toml"], "compare programs of one configuration"),
        (["models.py:left", "models.py:right", "--relations", "wrong.toml"], "has the shape"),
        (["models.py:left", "models.py:right", "--budget", "0"], "no time"),
        (["models.py:left", "models.py:right", "--relations", "models.py"], "is no TOML"),
        (["models.py:left", "models.py:right", "--lemmas", "map.toml"], "is no file of lemmas"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["equiv", *arguments]) == 3
    told = capsys.readouterr().err.strip()
    assert message in told
    assert "\n" not in told
