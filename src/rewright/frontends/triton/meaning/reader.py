"""A kernel as a graph: all instances of a launch at once.

``read_kernel`` walks the operations of a kernel's TTIR in order. Instances and iterations are axes of what it writes
(``writer``), loads and stores are views of the arguments (``memory``), loops are folds (``loops``).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np

from rewright import ops
from rewright.frontends.triton.meaning.addresses.grids import strides_of_ids
from rewright.frontends.triton.meaning.addresses.indices import lanes
from rewright.frontends.triton.meaning.addresses.instances import Instances
from rewright.frontends.triton.meaning.addresses.places import magnitude
from rewright.frontends.triton.meaning.addresses.safety import Ranges
from rewright.frontends.triton.meaning.iteration import loops, whiles
from rewright.frontends.triton.meaning.memories.accesses import Accesses
from rewright.frontends.triton.meaning.memories.memory import Memory
from rewright.frontends.triton.meaning.memories.numbers import refuse_changed
from rewright.frontends.triton.meaning.memories.races import refuse_races
from rewright.frontends.triton.meaning.operations import (
    blocks,
    control,
    descriptors,
    floats,
    integers,
    joins,
    shifts,
    transfers,
)
from rewright.frontends.triton.meaning.table import MEANINGS, Found, Meaning
from rewright.frontends.triton.meaning.values import DTYPES, Address, Data, Either, Shape, Truth, Value, Whole
from rewright.frontends.triton.meaning.writer import Writer
from rewright.frontends.triton.text import Block, Function, Kind, Location, Module, Operation, all_operations
from rewright.ir.dims import Dim, divide
from rewright.ir.errors import TypeMismatch, UnsupportedOperator
from rewright.ir.types import DType, SourceSpan
from rewright.ops.reference.simplifying import SimplifyingBuilder
from rewright.terms.index import Index, variable

FAMILIES = (blocks, control, descriptors, floats, integers, joins, loops, shifts, transfers, whiles)
"""Where the meanings of operations are, which modules enter in the table when they are imported."""

GRID = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class Tensor:
    """An argument that is memory: the node that holds its elements, and how they lie."""

    position: int
    strides: tuple[Dim, ...]
    memory: int | None = None
    """Arguments of one number are one tensor."""
    offset: Dim = 0
    """How many elements behind the first one the argument points."""


@dataclass(frozen=True, slots=True)
class Number:
    """An argument that is a number which the program has read: a node without axes."""

    position: int


Argument = Tensor | Number | Dim | float | bool
"""What a kernel is called with: memory, a size, or a number."""


class Reader:
    """The values of one kernel while it is read."""

    def __init__(self, builder: SimplifyingBuilder, module: Module, ranges: Ranges) -> None:
        self.writer = Writer(builder)
        self.module = module
        self.function: Function = module.kernel
        """The function that is read, in which names are one value each."""
        self.ranges = ranges
        self.values: dict[str, Value] = {}
        self.fixed: dict[str, Value] = {}
        """Results that are known by another way than the operation that gives them."""
        self.blocks: dict[str, Block] = {}
        """Blocks to which branches lead."""
        self.active: tuple[Index, ...] = ()
        """Where an operation is reached at all, in branches and iterations."""
        self.memories: dict[str, Memory] = {}
        self.tensors: dict[int, Memory] = {}
        """The memory of tensors that are given more than once."""
        self.access = Accesses(self.writer, ranges, self.memories)
        self.is_trial = False
        """Whether only the steps of symbols are asked for: loads read anything, and stores write nothing."""
        self.touched: list[Address] = []
        """Where loads and stores were met in a trial."""
        self.assumptions: dict[str, None] = {}
        self.grid: tuple[Dim, ...] = (1, 1, 1)
        self.instances = Instances((), ())
        self.ids: dict[str, Index] = {}
        """Program ids by axis of the grid."""
        self.fills_with_zeros = False
        """Whether a masked load that says nothing of other lanes gives zero there."""
        self.log2e: float | None = None
        """The number that stands for log2(e), where the kernel has one."""
        self.unfit: set[int] = set()
        """Lines whose integers are not shown to fit their type."""

    @property
    def guard(self) -> Data | None:
        """Where an operation is reached, of conditions on data."""
        return self.access.guard

    def run(self, block: Block) -> tuple[Value, ...]:
        """The operations of a block in order, and those of the blocks that it leads to; what the last one gives on."""
        for op in block.operations:
            if op.name in _ENDS:
                return self.operands(op)
            if op.name.startswith("cf."):
                control.branch(self, op, {**dict(block.others), **self.blocks})
                return ()
            self.operation(op)
        return ()

    def operation(self, op: Operation) -> None:
        """Note the results of one operation; raises UnsupportedOperator with its line."""
        before = self.writer.b.span
        self.writer.b.span = span_of(op.location) if op.location.line else before
        try:
            meaning = MEANINGS.get(op.name)
            if meaning is None:
                raise UnsupportedOperator(f"the operation {op.name} is not read")
            found = self._found(op, meaning)
        except UnsupportedOperator as error:
            raise self._located(error, op.location) from None
        except TypeMismatch:
            text = f"{op.name} of blocks that are read in parts of other sizes is not read"
            raise self._located(UnsupportedOperator(text), op.location) from None
        results = found if isinstance(found, tuple) else () if found is None else (found,)
        for name, value in zip(op.results, results, strict=True):
            self.values[name] = self.fixed.get(name, self._named(value))
        self.writer.b.span = before

    def _found(self, op: Operation, meaning: Meaning) -> Found:
        """What an operation gives, whichever of two pointers its operands are."""
        name = next((name for name in op.operands if isinstance(self.values.get(name), Either)), None)
        if name is None or op.regions or op.name in ("scf.yield", "arith.select", "tt.call"):
            return meaning(self, op)
        return control.on_either(self, op, name, lambda: self._found(op, meaning))

    def _named(self, value: Value) -> Value:
        """Integers as a symbol, whether they were read or computed from what was read."""
        if not isinstance(value, Data) or self.writer.dtype(value) not in (DType.I32, DType.I64):
            return value
        return Whole(self.writer.named(value), value.shape, self.writer.dtype(value))

    def _located(self, error: UnsupportedOperator, location: Location) -> UnsupportedOperator:
        text = str(error)
        return (
            error
            if " (kernel, line " in text or not location.line
            else UnsupportedOperator(f"{text} (kernel, line {location.line} of {location.file})")
        )

    def operands(self, op: Operation) -> tuple[Value, ...]:
        """The values that an operation is given."""
        return tuple(self.values[name] for name in op.operands)

    @property
    def sizes(self) -> dict[str, Dim]:
        """How far instances and iterations count; lanes count below the sizes of blocks, which is asked for beside."""
        return self.writer.axes

    def assume(self, text: str, *parts: Index) -> None:
        """Take for granted, and say, that these are at least zero."""
        self.ranges.assume(*parts)
        self.assumptions[text] = None

    def implies(self, wanted: Index, given: Sequence[Index] = ()) -> bool:
        """Whether an index is not negative for all instances, iterations and lanes (of at most 2 ** 20) there are."""
        most = dict.fromkeys(lanes(_MOST_AXES), 1 << 20)
        return self.ranges.implies({**most, **self.sizes}, (*self.active, *given), wanted)

    def is_only_folded(self, name: str) -> bool:
        """Whether a block of one axis is read by reductions alone, for which the order of elements is nothing."""
        users = [op for op in all_operations(self.function.body) if name in op.operands]
        return all(op.name == "tt.reduce" and len(op.operands) == 1 and op.attributes["axis"] == "0" for op in users)

    def fitting(self, value: Whole) -> Whole:
        """The integer; its line is noted where it may overflow."""
        if value.dtype is DType.I32:
            sizes = {**self.sizes, **dict(zip(lanes(len(value.shape)), value.shape, strict=True))}
            ends = Index((1 << 31) - 1) - value.index, value.index + (1 << 31)
            if not self.ranges.holds(sizes, self.active, ends):
                self.unfit.add(self.writer.b.span.line)
        return value

    def decided(self, condition: Truth) -> bool | None:
        """Whether a condition always holds, or never; None where that depends."""
        if condition.data is not None:
            return None
        if all(self.implies(part) for part in condition.parts):
            return True
        if any(self.implies(part * -1 - 1) for part in condition.parts):
            return False
        return None

    def truth(self, value: bool, shape: Shape) -> Truth:
        """What always holds, or never does."""
        return Truth(() if value else (Index(-1),), shape)

    def index(self, number: int) -> Index:
        """A number as an index."""
        return Index(number)

    def spread_condition(self, condition: Value, like: Value) -> tuple[Data, Value]:
        """A scalar condition over the block that it chooses."""
        data = self.writer.data(condition)
        shape = self.writer.data(like).shape
        if data.shape != shape:
            data = Data(self.writer.spread(data, data.axes, shape), data.axes, shape)
        return data, like

    @contextmanager
    def reached(self, parts: Sequence[Index], data: Data | None = None) -> Generator[None]:
        """Operations that run only under a condition."""
        before = self.active, self.guard
        self.active = (*self.active, *parts)
        if data is not None:
            self.access.guard = data if self.guard is None else self.writer.apply(ops.And(), self.guard, data)
        try:
            yield
        finally:
            self.active, self.access.guard = before


_ENDS = frozenset({"tt.return", "scf.yield", "tt.reduce.return", "tt.scan.return"})


def read_kernel(
    builder: SimplifyingBuilder,
    module: Module,
    arguments: Mapping[str, Argument],
    grid: Sequence[Dim],
    conditions: Sequence[Index] = (),
    *,
    zeros: bool = False,
) -> Reader:
    """Add what a launch does to a builder; the tensors that it wrote are in ``memories`` of what is returned.

    ``arguments`` are those of the kernel without constants, by name and in its order, and ``grid`` the number of
    instances along three axes. ``conditions`` are indices of sizes that are not negative. With ``zeros`` a masked load
    that says nothing of other lanes gives zero there, which the language leaves undefined. Raises UnsupportedOperator
    with the line of what is not read, or not shown to be in bounds and free of races.
    """
    sizes = (*grid, *(1,) * (3 - len(grid)))
    why: UnsupportedOperator | None = None
    for axes in ((), *_few(sizes)):
        reader = Reader(builder, module, Ranges(conditions))
        reader.grid = sizes
        reader.fills_with_zeros = zeros
        try:
            _read(reader, arguments, axes)
        except UnsupportedOperator as error:
            why = why or error
            continue
        return reader
    assert why is not None
    raise why


_MOST_AXES = 32
"""Axes of a block."""
_MOST_APART = 16
"""Instances that are read one after the other, where they are not read all at once."""


def _few(grid: Sequence[Dim]) -> Iterator[tuple[str, ...]]:
    """Axes of the grid along which there are so few instances that each may be read by itself."""
    found = sorted((size, axis) for axis, size in zip(GRID, grid, strict=True) if isinstance(size, int) and size > 1)
    for count in range(1, len(found) + 1):
        for chosen in combinations(found, count):
            if prod(size for size, _ in chosen) <= _MOST_APART:
                yield tuple(axis for _, axis in chosen)


def _read(reader: Reader, arguments: Mapping[str, Argument], apart: Sequence[str]) -> None:
    """Read all instances, along some axes of the grid one after the other."""
    kernel = reader.function
    strides = strides_of_ids(kernel, arguments)
    counted: list[tuple[str, Dim]] = []
    for axis, size in zip(GRID, reader.grid, strict=True):
        counted += [] if axis in apart else _axes_of(reader, axis, size, strides.get(axis, ()))
    reader.writer.axes.update((name, size) for name, size in counted if size != 1)
    reader.instances = Instances([size for _, size in counted], [name for name, _ in counted])
    constants = [op for op in all_operations(kernel.body) if op.name == "arith.constant"]
    given = [float(np.float32(value)) for value in arguments.values() if isinstance(value, float)]
    reader.log2e = floats.named_log2e([*given, *(n for n in map(floats.literal, constants) if n is not None)])
    for (name, kind), value in zip(kernel.body.arguments, arguments.values(), strict=True):
        reader.values[name] = _argument(reader, name, kind, value)
    _describe_arguments(reader, kernel)
    own = dict(reader.values)
    for numbers in product(*(range(_number_of(reader.grid[GRID.index(axis)])) for axis in apart)):
        reader.ids.update((axis, Index(number)) for axis, number in zip(apart, numbers, strict=True))
        reader.access.instance = numbers
        reader.values = dict(own)
        reader.run(kernel.body)
    accesses = [a for memory in reader.memories.values() for a in (*memory.loads, *memory.stores)]
    reader.instances.refuse_others(index for access in accesses for index in (*access.places, *access.mask))
    refuse_changed(reader)
    memories = {id(memory): memory for memory in reader.memories.values()}.values()
    found = refuse_races(reader.writer, reader.instances, reader.ranges, memories)
    reader.assumptions |= dict.fromkeys(found)
    reader.assumptions |= reader.access.notes
    if reader.unfit:
        lines = ", ".join(map(str, sorted(reader.unfit)))
        reader.assumptions[f"integers of 32 bits do not overflow in {kernel.name} (lines {lines})"] = None


def _number_of(size: Dim) -> int:
    assert isinstance(size, int)
    return size


def _axes_of(reader: Reader, axis: str, size: Dim, strides: Iterable[Dim]) -> list[tuple[str, Dim]]:
    """The axes of instances along an axis of the grid: several, where ids are parted in quotients and remainders."""
    name, found, whole = f"program_{axis}", list[tuple[str, Dim]](), size
    total = Index(0)
    for stride in sorted(dict.fromkeys(strides), key=lambda s: -magnitude(s)):
        count = divide(whole, stride)
        if count is not None and count != 1 and stride != 1:
            found.append((name, count))
            total, name, whole = total + variable(name) * stride, f"{name}_within", stride
    found.append((name, whole))
    reader.ids[axis] = total + (Index(0) if whole == 1 and not found[:-1] else variable(name))
    return found


def _argument(reader: Reader, name: str, kind: Kind, value: Argument) -> Value:
    if isinstance(value, Tensor):
        sizes = reader.writer.b.type(value.position).shape
        made = Memory(name.lstrip("%"), value.position, sizes, value.strides)
        known = None if value.memory is None else reader.tensors.setdefault(value.memory, made)
        reader.memories[name] = known or made
        return Address(name, Index(value.offset), ())
    if isinstance(value, Number):
        return _number(reader, name, kind, value)
    if kind.element == "i1":
        return reader.truth(bool(value), ())
    if kind.is_descriptor:
        raise UnsupportedOperator(f"the descriptor {name.lstrip('%')} is of no tensor")
    dtype = DTYPES.get(kind.element)
    if dtype is None:
        raise UnsupportedOperator(f"arguments of type {kind.element} are not read")
    if dtype.is_float:
        return reader.writer.constant(float(np.float32(value)), (), dtype)  # pyright: ignore[reportArgumentType]
    if isinstance(value, float):
        raise UnsupportedOperator(f"the argument {name.lstrip('%')} is no integer")
    return Whole(Index(value), (), dtype)


def _describe_arguments(reader: Reader, kernel: Function) -> None:
    """Make a descriptor of each tensor that is given as one, of which sizes and strides are the next arguments."""
    names = [name for name, _ in kernel.body.arguments]
    for place, (name, kind) in enumerate(kernel.body.arguments):
        if kind.is_descriptor:
            own = [n for n in names[place + 1 :] if n.startswith((f"{name}.shape.", f"{name}.stride."))]
            reader.values[name] = descriptors.describe(reader, *(reader.values[n] for n in (name, *own)))


def _number(reader: Reader, name: str, kind: Kind, value: Number) -> Value:
    data, dtype = Data(value.position, (), ()), DTYPES[kind.element]
    if dtype is DType.BOOL:
        return Truth((), (), data)
    if dtype.is_float:
        return reader.writer.convert(data, dtype)
    if dtype is DType.I32:
        reader.assumptions[f"the argument {name.lstrip('%')} fits in 32 bits"] = None
    return Whole(reader.writer.named(data), (), dtype)


@MEANINGS.enter("tt.get_program_id")
def instance(reader: Reader, op: Operation) -> Value:
    """The number of an instance along an axis of the grid."""
    return Whole(reader.ids[op.words[0]], (), DType.I32)


@MEANINGS.enter("tt.get_num_programs")
def instances(reader: Reader, op: Operation) -> Value:
    """How many instances there are along an axis of the grid."""
    return Whole(Index(reader.grid[GRID.index(op.words[0])]), (), DType.I32)


def span_of(location: Location) -> SourceSpan:
    """A line of a kernel as a place of the user's program."""
    return SourceSpan(location.file, location.line)
