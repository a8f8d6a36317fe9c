"""What TTIR is made of: functions, blocks of operations, types and source lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Location:
    """A line of a kernel; ``name`` is the variable of the source that holds the result, where there is one."""

    file: str = ""
    line: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type: the shape of a block (none of a scalar), its element, and whether elements are pointers to such.

    Other types, as those of tensor descriptors, have their text as ``element``.
    """

    element: str
    shape: tuple[int, ...] = ()
    is_pointer: bool = False

    @property
    def is_descriptor(self) -> bool:
        """Whether it is a tensor with sizes and strides."""
        return self.element.startswith("!tt.tensordesc")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: ``results = name operands words {attributes} : types -> given, with regions``."""

    name: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    words: tuple[str, ...]
    """What stands between operands and types besides: predicates, axes, orders of memory."""
    attributes: Mapping[str, str]
    types: tuple[Kind, ...]
    """The types behind the colon, up to an arrow or ``to``."""
    given: tuple[Kind, ...]
    """The types behind the arrow or ``to``."""
    regions: tuple[Block, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class Block:
    """Operations in order, with the names and types of what the block is given."""

    arguments: tuple[tuple[str, Kind], ...]
    operations: tuple[Operation, ...]
    others: tuple[tuple[str, Block], ...] = ()
    """Further blocks of the region by name, to which branches lead; of the first block alone."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a module; a kernel is the public one."""

    name: str
    is_public: bool
    body: Block
    results: tuple[Kind, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """The functions of a module by name."""

    functions: Mapping[str, Function] = field(default_factory=dict[str, Function])

    @property
    def kernel(self) -> Function:
        """The one function that can be launched."""
        (found,) = (f for f in self.functions.values() if f.is_public)
        return found


def all_operations(block: Block) -> Iterator[Operation]:
    """The operations of a block, those inside of their regions included."""
    for _, other in block.others:
        yield from all_operations(other)
    for op in block.operations:
        yield op
        for region in op.regions:
            yield from all_operations(region)
