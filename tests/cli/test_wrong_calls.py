"""Calls that are wrong, generated from what every command takes: each ends in one line and status 3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import typer

from rewright.cli.main import build_app, run

PROGRAMS = """
import torch
from torch import nn


class Holder:
    def __init__(self, inner):
        self.inner = inner


class Holding(nn.Module):
    def forward(self, x):
        return Holder(x + 1)


class Reading(nn.Module):
    def forward(self, x):
        return x * torch.from_numpy(x.numpy())


class Counting(nn.Module):
    def forward(self, x):
        return torch.poisson(x)


def right():
    return nn.Linear(4, 4), (torch.zeros(2, 4),)


def ranks(mesh):
    return nn.Linear(4, 4), (torch.zeros(2, 4),)


def three(a, b, c):
    return right()


def holding():
    return Holding(), (torch.zeros(2),)


def reading():
    return Reading(), (torch.zeros(2),)


def counting():
    return Counting(), (torch.zeros(2, 4),)


def scripted():
    return torch.jit.script(nn.Linear(4, 4)), (torch.zeros(2, 4),)


def on_a_gpu():
    raise AssertionError("Torch not compiled with CUDA enabled")
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # TorchScript is old
@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")  # of PyTorch 2.14
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("refine --matrix number.toml", "models is 3, and has to be tables; write [models.name]"),
        ("refine --matrix half.toml", "models.a.distributed is missing; give a text"),
        (
            "refine p.py:right p.py:ranks equiv --mesh tp=2",
            "p.py:ranks builds the programs of all ranks, and equiv is one",
        ),
        ("refine words.txt words.txt", "words.txt: this is no HLO text, which files that end in .hlo and .txt have"),
        ("equiv p.py:three p.py:right", "three(a, b, c) is called without arguments; give each parameter a default"),
        ("equiv p.py:ranks p.py:right", "ranks(mesh) is called without arguments; give its ranks with --mesh tp=8"),
        ("equiv p.py:holding p.py:right", "Holding returns a value of type Holder, in which there is no tensor"),
        (
            "equiv p.py:reading p.py:right",
            "the program reads a tensor's value (.numpy()), which a capture without data",
        ),
        ("equiv p.py:counting p.py:right", "aten.poisson.default at p.py:23: no lowering exists"),
        ("equiv p.py:scripted p.py:right", "TorchScript is not captured; give the module that it was made from"),
        ("equiv p.py:on_a_gpu p.py:right", "build it on the CPU or on the meta device: no weight is read"),
    ],
)
def test_what_users_did(
    arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").write_text(PROGRAMS)
    (tmp_path / "words.txt").write_text("hello\n")
    (tmp_path / "number.toml").write_text("models = 3\n")
    (tmp_path / "half.toml").write_text('[models.a]\nsequential = "p.py:right"\n')

    assert run(arguments.split()) == 3
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1


def commands() -> Iterator[tuple[list[str], Any]]:
    """Every command with its words, those below others included."""
    stack: list[tuple[list[str], Any]] = [([], typer.main.get_command(build_app()))]
    while stack:
        words, command = stack.pop()
        inner = cast("dict[str, Any]", getattr(command, "commands", {}))
        stack.extend(([*words, name], found) for name, found in inner.items())
        if not inner and words not in (["demo"], ["doctor"]):
            yield words, command


def wrong_calls() -> Iterator[list[str]]:
    """For each command: an option that there is not, and every one of its own without, and with a wrong, value."""
    for words, command in commands():
        places = [p for p in command.params if p.param_type_name == "argument"]
        given = [*words, *("missing.json" for p in places if p.required)]
        yield [*given, "--no-such-option"]
        yield [*given, *("more" for _ in range(3)), "--no-such-option", "x"]
        yield [*words, "--no-such-option"]
        for option in (p for p in command.params if p.param_type_name == "option"):
            name = option.opts[0]
            if option.is_flag:
                yield [*given, f"{name}=yes"]
                continue
            yield [*given, name]
            if option.bare_type() in ("int", "float"):
                yield from ([*given, name, value] for value in ("x", "", "1e", "--"))
            elif option.bare_type() == "Path":
                yield [*given, name, "no/such/folder/file"]
                yield [*given, name, ""]


CALLS = list(wrong_calls())


def test_there_are_many_of_them() -> None:
    assert len(CALLS) >= 250


@pytest.mark.parametrize("arguments", CALLS, ids=" ".join)
def test_a_wrong_call_is_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(arguments) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1, printed.err
    assert "bug" not in printed.err
    assert list(tmp_path.iterdir()) == []
