"""What calls the programs of a certificate are for, where ``rewright optimize`` wrote that beside them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph

KEY = "calls"
"""Where a graph's metadata has it, a condition a line."""


def calls_of(graphs: Sequence[Graph]) -> list[str]:
    """The conditions, one by one; raises RewrightError where programs are for different calls."""
    said = list(dict.fromkeys(graph.metadata[KEY] for graph in graphs if KEY in graph.metadata))
    if len(said) > 1:
        raise RewrightError("the two programs are for calls of different kinds; write them again, together")
    return said[0].splitlines() if said else []


def print_calls(calls: Sequence[str]) -> None:
    """Print them below what was verified."""
    console = Console()
    if calls:
        console.print("  for calls where", soft_wrap=True, highlight=False)
    for line in calls:
        console.print(f"    {line}", soft_wrap=True, highlight=False, markup=False)
