"""Tables on stdout, in Markdown, so that they can be pasted into a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as they come; numbers of seconds have two decimals."""
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header), flush=True)
    for row in rows:
        print(
            "| " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row) + " |",
            flush=True,
        )
