"""What every operator of this package is, with the checks and small helpers that the families share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rewright.ir.dims import Dim, Shape, at_most
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.counts import Counts
from rewright.ops.facts import Facts, join, of_dtype
from rewright.ops.sizes import Attributes, Axes, Sizes, nothing_said
from rewright.terms.index import Index, result_index, variable
from rewright.terms.scalar import Fixed, Fold, Scalar

Array = NDArray[Any]
Real = type[np.float64] | type[np.float32]
"""The type in which an execution computes every float tensor, whatever its declared dtype."""
ReductionKind = Literal["sum", "maximum", "minimum", "product", "and", "or"]
Following = tuple[int | None, ...]
"""By axis of an operand the axis of the result that it follows; None where there is none."""
REDUCTION_KINDS: tuple[str, ...] = ("sum", "maximum", "minimum", "product", "and", "or")

_INTEGERS: dict[DType, type[np.generic]] = {
    DType.I64: np.int64,
    DType.I32: np.int32,
    DType.I16: np.int16,
    DType.I8: np.int8,
    DType.U64: np.uint64,
    DType.U32: np.uint32,
    DType.U16: np.uint16,
    DType.U8: np.uint8,
    DType.BOOL: np.bool_,
}


@dataclass(frozen=True, slots=True)
class Demand:
    """``low <= high`` must hold for operands and attributes to fit; where sizes are symbols it may be open."""

    what: str
    low: Dim
    high: Dim
    form: bool = False
    """Whether only the symbolic form of the result's size needs it, and numbers do not."""


class TensorOperator(Operator):
    """An operator with the facets that execution, proofs and sharding use.

    The denotation says what the operator means; ``execute`` is the vectorised path, and is tested against it.
    Subclasses give ``denotation`` and ``compute``.
    """

    __slots__ = ()
    arity: ClassVar[int | None] = None
    """Number of operands; None where it varies."""

    def execute(self, operands: Sequence[Array], real: Real = np.float64) -> Array:
        """The result on numpy arrays: floats in ``real``, integers in their own width, as IEEE and StableHLO say.

        Raises RewrightError where the operator needs other ranks, where sizes are symbols, or where an index
        read from data is out of range.
        """
        with np.errstate(all="ignore"):
            return np.asarray(self.compute([np.asarray(operand) for operand in operands], real))

    @abstractmethod
    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        """The result on arrays whose types fit; floating-point warnings are off."""

    def denote(self, operands: Sequence[TensorType]) -> Scalar | Unsupported:
        """The element of the result at the variables ``i0, i1, ...``, as a scalar over elements of the operands.

        Raises TypeMismatch where the operands do not fit.
        """
        result = self.infer(operands)
        return self.denotation(operands, result, result_index(result.rank))

    @abstractmethod
    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        """The element of the result at its index variables, for operands whose types fit."""

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        """The inequalities between sizes that make the operator valid; ``infer`` raises where one is known to fail."""
        return ()

    def moves(self, count: int) -> tuple[int, ...]:
        """The operands, of ``count``, whose elements are all that the result's elements can be; none by default.

        For an operator that only moves elements: every element of the result is an element of one of these.
        """
        return ()

    def indexed(self, count: int) -> tuple[tuple[int, int], ...]:
        """Pairs (k, axis): operand k, of ``count``, holds places along an axis of operand 0; none by default."""
        return ()

    def follows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...] | None:
        """By operand and axis of it the result axis at whose index it is read, and nowhere else; None: at any places.

        No other axis of that operand is read elsewhere for another index along it. Nothing is said by default.
        """
        return None

    def keeps_rows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...] | None:
        """As :meth:`follows`, but the result may vary along axes that no operand has: one tensor beside another, say.

        Rows along an axis that operands have are computed each by itself, all in the same way.
        """
        return self.follows(operands, result)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        """What the result's elements may be where the operands' elements are what is known of them.

        Exact over the reals, before integers wrap (:mod:`rewright.analysis.values` sees to that). By default what
        moves, and else that nothing is known.
        """
        moved = self.moves(len(operands))
        return join(*(operands[k] for k in moved)) if moved else of_dtype(result.dtype)

    accumulates: ClassVar[bool] = False
    """Whether an element of the result is computed in many steps, each of which rounds."""
    needs: ClassVar[str] = "its result is a real number"
    """What must hold where the operator may make an infinity or NaN of real numbers, or NaN of infinities."""

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        """What must hold for the result to be defined, in words; empty where the facts show that it is.

        ``found`` are the facts of the result. A result that passes on what an operand had is defined.
        """
        is_pole = found.may_be_infinite and bool(operands) and not any(known.may_be_infinite for known in operands)
        is_undefined = found.nan and not any(known.nan for known in operands)
        return self.needs if is_pole or is_undefined else ""

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        """Say how the sizes of the operands and of the result depend on each other, and which attributes are sizes.

        By default they do not change.
        """
        return nothing_said(sizes, operands, result)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        """Say which integers of the operands and of the result count one thing, and what is made of them otherwise.

        By default what moves counts one thing, and what holds places counts along the axis.
        """
        counts.same([result, *(operands[k] for k in self.moves(len(operands)))])
        for k, axis in self.indexed(len(operands)):
            counts.index(operands[k], operands[0], axis)

    def resize(self, operands: Sequence[TensorType], axis: int, size: Dim) -> TensorOperator:
        """The same operator for a result of another size along an axis.

        For axes along which the operator may be split (:mod:`rewright.ops.splitting`); overridden where an attribute
        holds that size. ``operands`` are the types before the change.
        """
        return self


class Combining(TensorOperator):
    """Several elements become one, by the function that ``kind`` names."""

    __slots__ = ()
    kind: Any


def array_dtype(dtype: DType, real: Real = np.float64) -> np.dtype[Any]:
    """The numpy dtype that holds values of a tensor dtype in an execution in ``real``."""
    return np.dtype(real if dtype.is_float else _INTEGERS[dtype])


def integer_limits(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer dtype; booleans count as 0 and 1."""
    if dtype is DType.BOOL:
        return 0, 1
    found = np.iinfo(array_dtype(dtype))
    return int(found.min), int(found.max)


def wrap_integer(dtype: DType, value: int) -> int:
    """The number of an integer dtype that is as far from another one as a whole count of the dtype's numbers."""
    low, high = integer_limits(dtype)
    return value if low <= value <= high else (value - low) % (high - low + 1) + low


def identity_value(kind: str, dtype: DType) -> float | int | bool:
    """The value that a reduction of nothing has."""
    if kind in ("maximum", "minimum"):
        low, high = (float("-inf"), float("inf")) if dtype.is_float else integer_limits(dtype)
        return low if kind == "maximum" else high
    if kind == "and":
        return True if dtype is DType.BOOL else integer_limits(dtype)[1] if dtype.is_unsigned else -1
    if kind == "or":
        return False if dtype is DType.BOOL else 0
    one_or_zero = 1 if kind == "product" else 0
    return float(one_or_zero) if dtype.is_float else one_or_zero


def binder(number: int) -> Index:
    """The variable of a fold in a denotation; result axes have other names."""
    return variable(f"k{number}")


def fold_over(
    kind: str, dtype: DType, over: Sequence[tuple[Index, Dim]], body: Scalar, identity: Fixed | None = None
) -> Scalar:
    """Nested folds of one kind, the first binder outermost."""
    empty = Fixed(identity_value(kind, dtype)) if identity is None else identity
    for place, size in reversed(over):
        name = place.as_variable()
        if name is None:
            raise ValueError(f"a fold binds a variable and not {place}")
        body = Fold(kind, name, size, body, empty)
    return body


def replace_size(sizes: tuple[Dim, ...], axis: int, size: Dim) -> tuple[Dim, ...]:
    """Sizes with one of them replaced."""
    return (*sizes[:axis], size, *sizes[axis + 1 :])


REDUCERS: dict[str, np.ufunc] = {
    "sum": np.add,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "product": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def check_count(name: str, operands: Sequence[TensorType], expected: int | None) -> None:
    """Raise TypeMismatch where the number of operands is wrong; None allows any."""
    if expected is not None and len(operands) != expected:
        raise TypeMismatch(f"{name} takes {expected} operands and got {len(operands)}")


def check_same_dtype(name: str, operands: Sequence[TensorType]) -> DType:
    """The common dtype; raises TypeMismatch where operands differ."""
    dtype = operands[0].dtype
    for other in operands:
        if other.dtype is not dtype:
            raise TypeMismatch(
                f"{name} needs operands of one dtype and got {dtype.value} and {other.dtype.value}; convert one"
            )
    return dtype


def check_axes(name: str, what: str, axes: Sequence[int], rank: int) -> None:
    """Raise TypeMismatch unless the axes exist and are named once."""
    for axis in axes:
        if not 0 <= axis < rank:
            raise TypeMismatch(f"{name} has {what} {axis}, but the operand has {rank} axes")
    if len(set(axes)) != len(axes):
        raise TypeMismatch(f"{name} names an axis twice in {what} {tuple(axes)}")


def check_demands(op: TensorOperator, operands: Sequence[TensorType]) -> None:
    """Raise TypeMismatch where a demand of an operator is known to fail."""
    for demand in op.demands(operands):
        check_within(op.name, demand.what, demand.low, demand.high)


def check_within(name: str, what: str, low: Dim, high: Dim) -> None:
    """Raise TypeMismatch where ``low <= high`` is false; a symbolic order that is open is accepted.

    A captured program ran at some sizes, so an order that the symbols leave open is part of its contract.
    """
    if at_most(low, high) is False:
        raise TypeMismatch(f"{name} needs {what}, but {low} > {high}")


def check_sizes(name: str, shape: Shape) -> None:
    """Raise TypeMismatch where a size is negative."""
    for size in shape:
        if (size < 0) if isinstance(size, int) else (at_most(0, size) is False):
            raise TypeMismatch(f"{name} has a negative size in {', '.join(str(s) for s in shape)}")


def check_ascending(name: str, what: str, axes: Sequence[int]) -> None:
    """Raise TypeMismatch unless axes are in ascending order."""
    if list(axes) != sorted(axes):
        raise TypeMismatch(f"{name} needs {what} in ascending order and got {tuple(axes)}")


def check_exact(name: str, dtype: DType) -> None:
    """Raise TypeMismatch for floats of 8 bits, whose sums and products are others than those of real numbers."""
    if dtype.is_byte_float:
        raise TypeMismatch(f"{name} is not defined on {dtype.value}, to which each result is rounded; convert it first")


def check_kind(name: str, kind: str, dtype: DType) -> None:
    """Raise TypeMismatch where a reduction does not exist or does not fit the dtype."""
    if kind not in REDUCTION_KINDS:
        raise TypeMismatch(f"{name} has no kind {kind!r}; use one of {', '.join(REDUCTION_KINDS)}")
    if kind in ("and", "or") and dtype.is_float:
        raise TypeMismatch(f"{name} of kind {kind} needs booleans or integers and got {dtype.value}")
    if kind in ("sum", "product"):
        check_exact(f"{name} of kind {kind}", dtype)
    if kind in ("sum", "product") and dtype is DType.BOOL:
        raise TypeMismatch(f"{name} of kind {kind} needs numbers and got {dtype.value}; convert to an integer first")


def static(name: str, sizes: Shape) -> tuple[int, ...]:
    """The sizes as integers; raises RewrightError where one is a symbol."""
    found = tuple(size for size in sizes if isinstance(size, int))
    if len(found) != len(sizes):
        symbolic = next(size for size in sizes if not isinstance(size, int))
        raise RewrightError(f"{name} cannot be executed at size {symbolic}; give every size symbol a number first")
    return found
