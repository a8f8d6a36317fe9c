"""Sizes that stay symbols, on the command line: ``input_ids=batch,sequence``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from rewright.ir.errors import RewrightError

Symbolic = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=SIZES", help="Keep sizes of an argument as symbols: input_ids=batch,sequence."),
]


def parse_symbols(texts: Sequence[str]) -> dict[str, dict[int, str]]:
    """By argument name the symbol of each axis; ``_`` keeps the number of an axis. Raises RewrightError."""
    found: dict[str, dict[int, str]] = {}
    for text in texts:
        name, _, sizes = text.partition("=")
        axes = [size.strip() for size in sizes.split(",")]
        if not name or not all(axis.isidentifier() for axis in axes):
            raise RewrightError(
                f"--symbolic {text}: write the argument and a name for each axis, for example input_ids=batch,sequence"
            )
        if name in found:
            raise RewrightError(f"--symbolic {text}: {name} is given twice; name all its axes at once")
        found[name] = {position: axis for position, axis in enumerate(axes) if axis != "_"}
    return found
