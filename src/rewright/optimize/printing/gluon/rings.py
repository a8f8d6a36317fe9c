"""Rings of tiles in shared memory, and the loads that become copies into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.printing.statements import Assign, Call, Name, Scalar, Statement

COPIED = {DType.F16, DType.BF16}
"""What tiles hold that the matrix units take from shared memory as it is."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring of tiles in shared memory: the statement that makes its descriptor, and the dtype of its tiles."""

    name: str
    descriptor: Call
    dtype: DType

    @property
    def places(self) -> Name:
        """The variable of its places and barriers."""
        return Name(f"ring_{self.name}")

    @property
    def count(self) -> Name:
        """The variable that counts its tiles."""
        return Name(f"count_{self.name}")


@dataclass(frozen=True, slots=True)
class TileLoad:
    """The load of a tile: its variable, its descriptor, the place that it starts at, and whether it is transposed."""

    name: str
    descriptor: str
    start: tuple[Scalar, ...]
    is_transposed: bool


def rings_of(body: Sequence[Statement], dtypes: Mapping[int, DType]) -> Iterator[Ring]:
    """The rings for the descriptors of a kernel; raises RewrightError for tiles that cannot be copied."""
    for s in body:
        match s:
            case Assign(Name(name), Call("descriptor", (Name(tensor), *_)) as made):
                dtype = dtypes[int(tensor.removeprefix("t"))]
                require(dtype in COPIED, f"tiles hold {dtype.value}")
                yield Ring(name, made, dtype)
            case _:
                pass


def tile_load(s: Statement) -> TileLoad | None:
    """What a statement loads through a descriptor; None where it loads nothing so."""
    match s:
        case Assign(Name(name), Call("descriptor_load", (Name(tiles), *start))):
            return TileLoad(name, tiles, tuple(start), is_transposed=False)
        case Assign(Name(name), Call("transposed", (Call("descriptor_load", (Name(tiles), *start)),))):
            return TileLoad(name, tiles, tuple(start), is_transposed=True)
        case _:
            return None


def require(holds: bool, what: str) -> None:
    """Raise RewrightError where warps cannot be specialised."""
    if not holds:
        raise RewrightError(f"no specialised warps where {what}; use tiles without them")
