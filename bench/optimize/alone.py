"""One task on one program in a process of its own, so that a crash or a loop is a row and not the end.

The process writes down, line by line, what it knows so far and what it does next. So a row of what did not end holds
all that was measured before, and what was done when it ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.optimize.notes import read_notes

Row = dict[str, Any]
Asked = Mapping[str, Any]
ROOT = Path(__file__).parents[2]


TASK = (sys.executable, "-W", "ignore", "-m", "bench.optimize.task")


def alone(
    asked: Asked,
    seconds: float,
    threads: int | None = None,
    command: Sequence[str] = TASK,
    variables: Mapping[str, str] | None = None,
) -> Row:
    """The row of a task; ``ended`` says how its process ended where that was not by itself.

    Args:
        asked: what ``bench.optimize.task`` reads: the program, the dtype, what is to be done.
        seconds: by the clock; then the process and all that it has started are ended.
        threads: of PyTorch and of OpenMP.
        command: what is started; the file of notes, and what is asked as JSON, are its last arguments.
        variables: of its environment, beside those of this process.
    """
    variables = {**os.environ, **(variables or {}), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    if threads is not None:
        variables["OMP_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory() as folder:
        notes, said = Path(folder) / "row.jsonl", Path(folder) / "said"
        notes.touch()
        whole = [*command, str(notes), json.dumps(dict(asked))]
        options: dict[str, Any] = {"cwd": ROOT, "env": variables, "start_new_session": True}
        with said.open("wb") as file:
            process = subprocess.Popen(whole, stdout=file, stderr=file, stdin=subprocess.DEVNULL, **options)
            ended = _ended(process, seconds)
        row = read_notes(notes)
        doing = row.pop("doing", "the start")
        if ended:
            row["ended"] = f"{ended} in {doing}"
            last = said.read_text(errors="replace").strip().splitlines()
            row["said"] = last[-1][:300] if last else ""
    return row


def _ended(process: subprocess.Popen[bytes], seconds: float) -> str:
    """How a process ended; empty where it ended well. What it has started ends with it."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if code is None:
        return f"over the budget of {seconds:g} s"
    if code < 0:
        return f"signal {-code}"
    return f"exit status {code}" if code else ""
