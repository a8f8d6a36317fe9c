"""Rows of the benchmark: what is asked for, one process after the other, and the file that keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.optimize.alone import alone
from bench.optimize.program import Program

Row = dict[str, Any]
KEY = ("task", "program", "dtype", "size", "peers", "threads", "device")
STARTING = 30.0
"""Seconds of a process before its own budget begins: Python, PyTorch, and the libraries of models."""


@dataclass(frozen=True)
class Run:
    """What is done with every program."""

    task: str
    size: str
    peers: Sequence[str]
    rounds: int
    seconds: float
    threads: int | None
    device: str = "cpu"

    def row(self, program: Program, dtype: str) -> Row:
        """The row of a program, from a process of its own."""
        asked = {**asdict(self), "program": program.name, "dtype": dtype}
        own = {key: asked[key] for key in KEY} | {"family": program.family}
        return own | alone(asked, STARTING + self.seconds, self.threads)


def rows(
    run: Run, wanted: Iterable[tuple[Program, str]], file: Path | None, resume: bool, workers: int = 1
) -> Iterator[Row]:
    """The rows of programs by dtype; each is added to the file, and those that it has are not made again.

    With several workers as many programs run side by side, and their times mean little.
    """
    kept = {_key(row): row for row in read_rows(file)} if resume and file is not None else {}

    def found(pair: tuple[Program, str]) -> tuple[Row, bool]:
        program, dtype = pair
        row = kept.get(_key({**asdict(run), "program": program.name, "dtype": dtype}))
        return (run.row(program, dtype), True) if row is None else (row, False)

    with ThreadPoolExecutor(workers) as pool:
        for row, new in pool.map(found, wanted):
            if new and file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("a") as lines:
                    lines.write(json.dumps(row) + "\n")
            yield row


def read_rows(file: Path) -> list[Row]:
    """The rows of a file, none where there is no file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _key(row: Row) -> str:
    return json.dumps([row.get(key) for key in KEY])
