"""Why a plan has no proof in pieces."""

from __future__ import annotations

from collections.abc import Collection

from rewright.ir.errors import RewrightError


class NotComposed(RewrightError):
    """A plan that has no proof in pieces, with the first tensor that has none, and all such by their place."""

    def __init__(self, why: str, tensors: Collection[int] = ()) -> None:
        super().__init__(why)
        self.tensors = tuple(tensors)


class Late(NotComposed):
    """A piece that may have a proof, for which there was no time."""
