"""What is known of the pieces of plans: proofs, and why there are none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from rewright.equiv.pieces import Piece
from rewright.ir.errors import RewrightError


class NotComposed(RewrightError):
    """A plan that has no proof in pieces, with the first tensor that has none, and all such by their place."""

    def __init__(self, why: str, tensors: Collection[int] = ()) -> None:
        super().__init__(why)
        self.tensors = tuple(tensors)


class Late(NotComposed):
    """A piece that may have a proof, for which there was no time."""


@dataclass
class Known:
    """What is known of pieces of plans of one program, which need no second try."""

    proved: dict[str, Piece] = field(default_factory=dict[str, Piece])
    failed: dict[str, RewrightError] = field(default_factory=dict[str, RewrightError])
    """Why those that were tried have no proof."""
    spent: float = 0.0
    """Seconds of the processor: a machine that is busy with something else proves as much."""
