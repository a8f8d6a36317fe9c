"""Workers for the tests of the matrix: each can be given to any process by its name."""

from __future__ import annotations

import os
from pathlib import Path

from rewright.cli.matrix.table import Task
from rewright.cli.matrix.work import Outcome


def task(name: str, folder: Path) -> Task:
    return Task(name, name, "", "", str(folder), "sequential.json", ("ranks.json",))


def echo(task: Task) -> Outcome:
    """Says which process did it."""
    return Outcome(task.name, {"process": os.getpid()})


def die_once(task: Task) -> Outcome:
    """Dies without a word the first time."""
    mark = Path(task.folder) / f"{task.name}.tried"
    if not mark.exists():
        mark.touch()
        os._exit(9)
    return Outcome(task.name)


def die(task: Task) -> Outcome:
    """Dies every time, where it is asked to."""
    if task.name.startswith("bad"):
        os._exit(9)
    return Outcome(task.name)
