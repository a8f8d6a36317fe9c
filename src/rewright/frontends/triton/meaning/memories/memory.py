"""The memory of an argument, and what a launch does to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rewright.frontends.triton.meaning.addresses.places import magnitude
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
    read: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The variables of the places that were read, with the instances and iterations on which they depend."""
    barriers: int = 0
    """How many barriers stand before it."""
    met: frozenset[int] = frozenset()
    """Those of them that its instance waits at."""
    instance: tuple[int, ...] = ()
    """Which instances it is of, where these are read one after the other."""


@dataclass
class Memory:
    """One argument: its tensor, how that lies in memory, and what was done to it."""

    name: str
    position: int
    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    loads: list[Access] = field(default_factory=list[Access])
    stores: list[Access] = field(default_factory=list[Access])
    is_table: bool = False
    """Whether its elements were read as numbers, which no store may change."""

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

    def shapes(self) -> Iterator[tuple[tuple[Dim, ...], tuple[Dim, ...]]]:
        """Its axes with their strides, and the same with neighbours as one axis where they lie without gaps."""
        rank = len(self.sizes)
        if not rank:
            yield (1,), (1,)
        joined = [
            (n + 1 < rank and self.strides[n] == self.strides[n + 1] * self.sizes[n + 1]) or self.sizes[n] == 1
            for n in range(rank)
        ]
        for merged in sorted(range(1 << max(rank - 1, 0)), key=lambda bits: bits.bit_count()):
            if any(merged >> n & 1 and not joined[n] for n in range(rank - 1)):
                continue
            sizes: list[Dim] = []
            strides: list[Dim] = []
            for n in range(rank):
                if n and merged >> (n - 1) & 1:
                    sizes[-1], strides[-1] = sizes[-1] * self.sizes[n], self.strides[n]
                else:
                    sizes.append(self.sizes[n])
                    strides.append(self.strides[n])
            yield tuple(sizes), tuple(strides)
