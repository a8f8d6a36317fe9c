"""Tasks for the tests of workers: each can be given to any process by its name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Job:
    """A name, and a folder to leave marks in."""

    name: str
    folder: str


def jobs(names: list[str], folder: Path) -> list[Job]:
    return [Job(name, str(folder)) for name in names]


def echo(job: Job) -> int:
    """Says which process did it."""
    return os.getpid()


def die_once(job: Job) -> str:
    """Dies without a word the first time."""
    mark = Path(job.folder) / f"{job.name}.tried"
    if not mark.exists():
        mark.touch()
        os._exit(9)
    return job.name


def die(job: Job) -> str:
    """Dies every time, where it is asked to."""
    if job.name.startswith("bad"):
        os._exit(9)
    return job.name
