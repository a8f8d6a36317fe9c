"""``--watch``: which files are looked at, and a command that runs again after a change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from rewright.cli.watching import written

MODEL = """
import torch
from torch import nn


def model():
    return nn.Linear(4, 4), (torch.zeros(2, 4),)
"""
HEARS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from rewright.__main__ import main
main()
"""
"""The command where interrupts are heard: a shell ignores them for what runs in the background."""


def test_what_is_watched(tmp_path: Path) -> None:
    for name in (
        "a.py",
        "b/c.toml",
        ".git/d.py",
        "__pycache__/e.py",
        "venv/pyvenv.cfg",
        "venv/f.py",
        "g.md",
        "h/i.mlir",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert [os.path.relpath(path, tmp_path) for path in written(tmp_path)] == ["a.py", "b/c.toml", "h/i.mlir"]
    before = written(tmp_path)
    os.utime(tmp_path / "a.py", ns=(0, 0))
    assert written(tmp_path) != before
    assert written(tmp_path / "missing") == {}


def test_a_command_runs_again_after_a_change_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "left.py").write_text(MODEL)
    (tmp_path / "right.py").write_text(MODEL)
    command = [sys.executable, "-c", HEARS, "equiv", "left.py:model", "right.py:model", "--watch"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as running:
        assert running.stdout is not None
        guard = threading.Timer(120, running.kill)
        guard.start()
        lines = iter(running.stdout.readline, "")
        first = next(line for line in lines if line.startswith(("PROVED", "REFUTED")))
        assert first.startswith("PROVED")
        next(line for line in lines if "watching 2 files" in line)
        (tmp_path / "right.py").write_text(MODEL.replace("nn.Linear(4, 4)", "nn.Linear(4, 4, bias=False)"))
        assert "right.py has changed" in next(lines)
        second = next(line for line in lines if line.startswith(("PROVED", "REFUTED")))
        assert second.startswith("REFUTED")
        next(line for line in lines if "watching 2 files" in line)
        os.killpg(running.pid, signal.SIGINT)
        assert "interrupted" in next(lines)
        assert running.wait() == 130
        guard.cancel()
