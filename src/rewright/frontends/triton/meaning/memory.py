"""The memory of an argument, and what a launch does to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewright.frontends.triton.meaning.places import magnitude
from rewright.ir.dims import Dim, at_most
from rewright.ir.types import SourceSpan
from rewright.ops.base import ReductionKind
from rewright.terms.index import Index


@dataclass(frozen=True, slots=True)
class Access:
    """A load or store: where, under which condition, and by which line."""

    places: tuple[Index, ...]
    mask: tuple[Index, ...]
    sizes: tuple[tuple[str, Dim], ...]
    span: SourceSpan
    shape: tuple[Dim, ...]
    kind: ReductionKind | None = None
    """The fold of an atomic operation."""


@dataclass
class Memory:
    """One argument: its tensor, how that lies in memory, and what was done to it."""

    name: str
    position: int
    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    loads: list[Access] = field(default_factory=list[Access])
    stores: list[Access] = field(default_factory=list[Access])

    @property
    def overlaps(self) -> bool:
        """Whether it is not known that elements lie at places of their own."""
        axes = sorted(
            (s for s in zip(self.strides, self.sizes, strict=True) if s[1] != 1), key=lambda s: magnitude(s[0])
        )
        below: Dim = 1
        for stride, size in axes:
            if stride == 0 or at_most(below, stride) is not True:
                return True
            below = stride * size
        return False

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in order and without gaps."""
        step: Dim = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step = step * size
        return True
