"""What calls the programs of a certificate are for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console


def print_calls(calls: Sequence[str]) -> None:
    """Print them below what was verified."""
    console = Console()
    if calls:
        console.print("  for calls where", soft_wrap=True, highlight=False)
    for line in calls:
        console.print(f"    {line}", soft_wrap=True, highlight=False, markup=False)
