"""The statement language between the kernel IR and printed code: scalars, statements, and functions made of them.

A scalar is a number, or in a language of tiles a tile of numbers; places in memory are integers. A renderer turns
each of these into text and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from rewright.ir.dims import Dim
from rewright.ir.types import DType
from rewright.optimize.kernel import Loop as Axis
from rewright.optimize.scalars.expressions import Expression, is_rounded


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    text: str


@dataclass(frozen=True, slots=True)
class Number:
    """A fixed number of a dtype."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True, slots=True)
class Call:
    """A function of a target (``functions`` of its ``Language``); ``dtype`` is that of the result where it matters."""

    function: str
    arguments: tuple[Scalar, ...]
    dtype: DType = DType.F32


@dataclass(frozen=True, slots=True)
class Sum:
    """An integer: a sum of multiples and a constant."""

    terms: tuple[tuple[Scalar, Dim], ...]
    constant: Dim = 0


@dataclass(frozen=True, slots=True)
class Element:
    """An element of memory of the kernel's own."""

    buffer: str
    place: Scalar


@dataclass(frozen=True, slots=True)
class Load:
    """The elements of a tensor at places, as ``dtype``; zero where the guard is false."""

    tensor: int
    place: Scalar
    guard: Scalar | None
    dtype: DType


Scalar = Name | Number | Call | Sum | Element | Load


@dataclass(frozen=True, slots=True)
class Let:
    """A new variable."""

    name: str
    value: Scalar
    dtype: DType = DType.F32
    note: str = ""
    changes: bool = False


@dataclass(frozen=True, slots=True)
class Assign:
    """A new value of a variable or an element."""

    target: Name | Element
    value: Scalar
    note: str = ""


@dataclass(frozen=True, slots=True)
class Do:
    """A call for what it does: a copy, or a signal."""

    value: Call


@dataclass(frozen=True, slots=True)
class Combine:
    """A value taken into a variable by a reduction of a kind (``sum``, ``maximum``, ``or``, ...)."""

    kind: str
    target: Name | Element
    value: Scalar


@dataclass(frozen=True, slots=True)
class Store:
    """Elements of a tensor, written where the guard is true."""

    tensor: int
    place: Scalar
    value: Scalar
    dtype: DType
    guard: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over ``start``, ``start + step``, ... below ``stop``."""

    index: str
    stop: Scalar
    body: tuple[Statement, ...]
    start: Scalar = Sum(())
    step: Scalar = Sum((), 1)
    note: str = ""
    reductions: tuple[tuple[str, str], ...] | None = None
    """For a loop whose steps may be one vector: the kinds and the variables of its reductions; None for others."""
    is_piped: bool = False
    """Whether loads of later steps may be started before a step is done."""


@dataclass(frozen=True, slots=True)
class If:
    """A choice."""

    condition: Scalar
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """The end of a step of the innermost loop over tiles (``continue``), or of the loop (``break``)."""

    way: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of the kernel's own."""

    name: str
    count: Dim
    dtype: DType


@dataclass(frozen=True, slots=True)
class View:
    """A name for memory from some element of a buffer on."""

    name: str
    buffer: str
    start: Scalar
    dtype: DType


@dataclass(frozen=True, slots=True)
class Clear:
    """Zeros in the first elements of a buffer."""

    buffer: str
    count: Dim
    dtype: DType


@dataclass(frozen=True, slots=True)
class BlockProduct:
    """``target = left @ right``, or added to it: row-major blocks, each with the elements from row to row."""

    rows: Scalar
    columns: int
    depth: Scalar
    left: tuple[str, Dim]
    right: tuple[str, Dim]
    target: tuple[str, Dim]
    is_added: bool
    dtype: DType
    is_narrow: bool = False
    """Whether both operands may be taken rounded to bfloat16, as the program has them, though they are floats here."""


@dataclass(frozen=True, slots=True)
class ReadProduct:
    """``target = left @ right.T`` of rows of the tensor that is read, or ``target += left @ right``.

    ``right`` begins at ``start`` and has ``stride`` elements from row to row, each row side by side.
    """

    rows: Scalar
    columns: Scalar
    depth: Scalar
    left: tuple[str, Dim]
    tensor: int
    start: Scalar
    stride: Dim
    target: tuple[str, Dim]
    is_added: bool
    dtype: DType
    is_narrow: bool = False
    """As of a ``BlockProduct``; sums that are added are of floats all the same."""


@dataclass(frozen=True, slots=True)
class AddRows:
    """``target += items.sum(0)`` for a row-major block of rows."""

    rows: Scalar
    columns: int
    items: str
    target: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class TurnRows:
    """``target[width * d + c] = tensor[start + stride * c + d]``: so many rows of a tensor as columns of a block."""

    rows: Scalar
    depth: Dim
    tensor: int
    start: Scalar
    stride: Dim
    target: str
    width: int
    dtype: DType


Statement = (
    Let
    | Assign
    | Do
    | Combine
    | Store
    | Loop
    | If
    | Leave
    | Buffer
    | View
    | Clear
    | BlockProduct
    | ReadProduct
    | AddRows
    | TurnRows
)


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor of a function: its number, the dtype in memory, whether it is written, and what it is, for comments."""

    tensor: int
    dtype: DType
    is_written: bool
    title: str


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel: for every index of the grid and every block of rows, the body, which starts at row ``first``.

    ``prologue`` is what a grid index needs before its first block. In a language of tiles the size of a block is a
    constant of the printed function.
    """

    name: str
    arguments: tuple[Argument, ...]
    grid: tuple[Axis, ...]
    rows: Dim
    block: int
    buffers: tuple[Buffer, ...]
    prologue: tuple[Statement, ...]
    body: tuple[Statement, ...]
    dtype: DType = DType.F32
    """The dtype that floats are computed in."""
    index: DType = DType.I64
    """The dtype that places are computed in."""
    is_reversed: bool = False
    """Whether later blocks of rows have more work, and so come first."""
    symbols: tuple[str, ...] = ()
    """Sizes that it is called with, which follow its tensors as one tensor of integers."""
    guards: tuple[Dim, ...] = ()
    """What has to be at least zero for these."""

    @property
    def tensors(self) -> tuple[int, ...]:
        """The tensors that it takes, in order."""
        return tuple(a.tensor for a in self.arguments)


# --- shorter ways to write scalars


def call(function: str, *arguments: Scalar, dtype: DType = DType.F32) -> Call:
    """A call."""
    return Call(function, arguments, dtype)


def fold_left(function: str, values: Sequence[Scalar]) -> Scalar:
    """A function of two, from the left over all values."""
    return reduce(lambda a, b: call(function, a, b), values)


def equal(a: Scalar, b: Scalar) -> Call:
    """Whether two values are equal."""
    return call("compare_EQ", a, b)


def unequal(a: Scalar, b: Scalar) -> Call:
    """Whether two values differ; a value that differs from itself is NaN."""
    return call("compare_NE", a, b)


def select(condition: Scalar, a: Scalar, b: Scalar) -> Call:
    """``a`` where a condition holds, and ``b`` elsewhere."""
    return call("select", condition, a, b)


def total(*terms: Scalar | int | tuple[Scalar, Dim]) -> Sum:
    """A sum of places, numbers, and places with factors."""
    constant = sum(t for t in terms if isinstance(t, int))
    return Sum(tuple(t if isinstance(t, tuple) else (t, 1) for t in terms if not isinstance(t, int)), constant)


def whole(number: Dim) -> Sum:
    """A fixed integer, or a size."""
    return Sum((), number)


def element_at(buffer: str, *terms: Scalar | int | tuple[Scalar, Dim]) -> Element:
    """An element of a buffer at a sum of places."""
    return Element(buffer, total(*terms))


_OVERLOADED = {"not": ("bits", "bool"), "remainder": ("integer", "float")}


def operation(e: Expression, arguments: Iterable[Scalar]) -> Call:
    """The function of an expression, of arguments that were lowered; functions with two meanings have two names."""
    name, kind = e.op, e.arguments[0].dtype
    if name.startswith("convert_"):
        to = "float" if e.dtype.is_float else "bool" if e.dtype is DType.BOOL else "integer"
        name = f"to_{to}"
        if to == "integer" and kind.is_float and e.dtype is not DType.I64:
            name = "to_narrow_integer"
        if kind.is_float and to == "float":  # a cast rounds, also where the kernel goes on with more digits
            name = f"rounded_{e.dtype.value}" if is_rounded(e) else "float_to_float"
    elif name in _OVERLOADED:
        plain, other = _OVERLOADED[name]
        name = f"{name}_{other if kind is DType.BOOL or (kind.is_float and name == 'remainder') else plain}"
    return Call(name, tuple(arguments), e.dtype)


Value = Callable[[Expression], Scalar]
"""How an expression is lowered where it is needed."""
