"""Meshes on the command line: ``tp=8`` or ``dp=2,tp=4``."""

from __future__ import annotations

from rewright.ir.errors import RewrightError

_MOST_RANKS = 65536


def parse_mesh(text: str) -> dict[str, int]:
    """Axis names and sizes in order; raises RewrightError."""
    axes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = (piece.strip() for piece in part.partition("="))
        if not name.isidentifier() or not size.isdecimal() or int(size) < 1:
            raise RewrightError(f"--mesh {text}: {part!r} is no mesh axis; write name=size, for example --mesh tp=8")
        if name in axes:
            raise RewrightError(f"--mesh {text}: axis {name!r} is given twice; give each axis its own name")
        axes[name] = int(size)
    ranks = 1
    for size in axes.values():
        ranks *= size
    if ranks > _MOST_RANKS:
        raise RewrightError(f"--mesh {text}: {ranks} ranks are too many; use at most {_MOST_RANKS}")
    return axes
