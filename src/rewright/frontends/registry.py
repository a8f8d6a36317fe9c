"""The front ends, a line each; where two read files of one ending, the one that asks for its own stands first."""

from __future__ import annotations

from rewright.frontends import graph_json, hlo, jax, rwt, torch
from rewright.frontends.frontend import Files, Frontend, Programs

FRONTENDS: list[Frontend] = [
    torch.FRONTEND,
    jax.FRONTEND,
    graph_json.FRONTEND,
    rwt.FRONTEND,
    hlo.FRONTEND,
]


def programs() -> dict[str, Programs]:
    """The front ends of programs in Python, by name."""
    return {own.name: own.programs for own in FRONTENDS if own.programs is not None}


def files() -> list[Files]:
    """The front ends of files."""
    return [own.files for own in FRONTENDS if own.files is not None]
