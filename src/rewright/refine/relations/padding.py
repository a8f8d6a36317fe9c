"""What a caller says of parts of rank tensors that no sequential tensor is: ``"w@1[3:4, :]" = "any"``."""

from __future__ import annotations

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.padding import Padding, told_of, with_padding
from rewright.refine.relations.equations import Block, Equation, layout_of
from rewright.refine.relations.given import Given

ANY = "any"


def state_padding(
    sequential: Graph, program: RankProgram, given: Given | None
) -> tuple[Graph, RankProgram, Given | None, tuple[str, ...]]:
    """Both programs with parts that may hold anything as inputs of their own, all relations, and what it assumes.

    Raises RewrightError for a key that is no part of a tensor of a rank.
    """
    stated = [key for key, what in (given or {}).items() if what == ANY]
    if given is None or not stated:
        return sequential, program, given, ()
    parts = {key: _part(key, program) for key in stated}
    whole, ranks = with_padding(sequential, program, list(parts.values()))
    names = [part.name for part in parts.values()]
    relations = {key: what for key, what in given.items() if key not in parts} | {name: name for name in names}
    return whole, ranks, relations, told_of(parts.values())


def _part(key: str, program: RankProgram) -> Padding:
    layout = layout_of(Equation(key, key), program)
    if not isinstance(layout, Block):
        raise RewrightError(f"{key!r} is no part of a tensor of a rank; write name@rank[start:stop, ..]")
    return Padding(layout.rank, layout.name, layout.box)


__all__ = ["ANY", "state_padding"]
