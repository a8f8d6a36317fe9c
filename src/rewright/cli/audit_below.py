"""What is printed below what an audit verified: the calls that programs are for, and what was checked of captures."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from rewright.frontends.validation.record import read, validation_note
from rewright.ir.graph import Graph


def captures_of(graphs: Sequence[Graph], record: str) -> list[str]:
    """What was checked of these graphs, and of those that the certificate was written for, where that is other."""
    now, before = validation_note(graphs), read(record) if record else None
    written = [] if before is None or str(before) == now else [f"when the certificate was written: {before}"]
    return [now, *written]


def print_below(title: str, lines: Sequence[str]) -> None:
    """Print lines under a title, which is left out where there are none."""
    console = Console()
    if lines:
        console.print(f"  {title}", soft_wrap=True, highlight=False)
    for line in lines:
        console.print(f"    {line}", soft_wrap=True, highlight=False, markup=False)
