"""Collectives: nodes of per-rank programs that read the tensors of other ranks.

Groups are explicit rank lists, all of one size, and the type of a result depends on that size only. They have no
denotation of their own: all ranks together do, and ``rewright.interp`` executes all ranks in one process.

Ranks meet by group and ``communicator``: where a group of ranks has several communicators, as ``new_group`` of PyTorch
makes them, they are numbered in the order in which they were made, and calls of two of them never meet. A collective
is waited for where it is called, or, if it is ``posted``, where its result is first read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rewright.ir.dims import Dim, Shape, divide
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.types import TensorType
from rewright.ops.base import (
    Array,
    Combining,
    Real,
    ReductionKind,
    TensorOperator,
    check_axes,
    check_count,
    check_kind,
    check_sizes,
)
from rewright.ops.counts import Counts
from rewright.ops.facts import Facts, join, of_values
from rewright.ops.functions.intervals import reduce_facts
from rewright.ops.leaf import Leaf
from rewright.ops.sizes import Attributes, Axes, Size, Sizes, same_each, same_shape
from rewright.terms.index import Index
from rewright.terms.scalar import Scalar

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """All of a member's tensor, or ``length`` elements from ``start`` on along the axis that is cut."""

    member: int
    start: Dim = 0
    length: Dim | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """What a member holds after a collective: pieces of the tensors of all members, one after the other along an axis.

    A sum that is scattered has one piece for each member, of the sum. Where there is no piece, it is zeros.
    """

    pieces: tuple[Piece, ...]
    cut: int | None = None
    joined: int | None = None
    reduction: ReductionKind | None = None
    """How all tensors are combined, of which the pieces are then."""


class Collective(TensorOperator):
    """One operand (none for ``recv``); the result depends on the other ranks of the group."""

    __slots__ = ()
    arity: ClassVar[int | None] = 1
    is_met: ClassVar[bool] = True
    is_shared: ClassVar[bool] = False
    """Whether all members of a group hold one tensor afterwards."""

    def received(
        self, operators: Sequence[Operator], shapes: Sequence[Shape], ranks: Sequence[int], member: int
    ) -> Received | Unsupported:
        """What one member of a group holds afterwards; operators, shapes of operands and ranks are of all members."""
        return Unsupported(f"{self.name} is no collective whose members meet")

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        return self.result(operands[0])

    def result(self, operand: TensorType) -> TensorType:
        """The type of the result for an operand, where it is another; raises TypeMismatch where they do not fit."""
        return operand

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        return same_shape(sizes, operands, result)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.same([result, *operands])

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        raise RewrightError(f"{self.name} cannot be executed on one rank alone; execute the programs of all ranks")

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Unsupported(f"{self.name} reads the tensors of other ranks")


class GroupCollective(Collective):
    """A collective in which groups of ranks take part, each by itself."""

    __slots__ = ()
    groups: Groups


class Message(Collective):
    """One end of a message between two ranks; the one that sends does not wait."""

    __slots__ = ()


def check_groups(name: str, groups: Groups) -> int:
    """The common size of the groups; raises TypeMismatch where sizes differ or a rank occurs twice."""
    sizes = {len(group) for group in groups}
    if len(sizes) != 1 or 0 in sizes:
        raise TypeMismatch(f"{name} needs groups of one size and got {groups}")
    ranks = [rank for group in groups for rank in group]
    if len(set(ranks)) != len(ranks) or min(ranks) < 0:
        raise TypeMismatch(f"{name} needs every rank in one group only and got {groups}")
    return sizes.pop()


def scaled(shape: Shape, axis: int, factor: int) -> Shape:
    """A shape with one axis multiplied."""
    return (*shape[:axis], shape[axis] * factor, *shape[axis + 1 :])


def split(name: str, shape: Shape, axis: int, parts: int) -> Shape:
    """A shape with one axis divided; raises TypeMismatch where it does not divide."""
    part = divide(shape[axis], parts)
    if part is None:
        raise TypeMismatch(f"{name} cannot split axis {axis} of size {shape[axis]} into {parts} equal parts")
    return (*shape[:axis], part, *shape[axis + 1 :])


def _joined_along(sizes: Sizes, dimension: int, part: Axes, whole: Axes, count: int) -> Attributes:
    """As many equal parts make a whole along one axis; the other axes are the same."""
    for axis, (one, all_) in enumerate(zip(part, whole, strict=True)):
        if axis == dimension:
            sizes.join(all_, [one] * count)
        else:
            sizes.same(one, all_)
    return {}


def _even(sizes: Sizes, size: Size, count: int) -> tuple[Dim, ...]:
    part = divide(sizes.value(size), count)
    return () if part is None else (part,) * count


@dataclass(frozen=True, slots=True)
class AllReduce(GroupCollective, Combining):
    """Every rank of a group gets the combination of all tensors of the group."""

    kind: ReductionKind
    groups: Groups
    communicator: int = 0
    posted: bool = False
    name: ClassVar[str] = "all_reduce"
    is_shared: ClassVar[bool] = True
    needs: ClassVar[str] = "it adds no infinities of opposite signs"

    def received(
        self, operators: Sequence[Operator], shapes: Sequence[Shape], ranks: Sequence[int], member: int
    ) -> Received | Unsupported:
        return Received((Piece(0),), reduction=self.kind)

    def result(self, operand: TensorType) -> TensorType:
        check_kind(self.name, self.kind, operand.dtype)
        check_groups(self.name, self.groups)
        return operand

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return reduce_facts(self.kind, operands[0], len(self.groups[0]), result.dtype)


@dataclass(frozen=True, slots=True)
class AllGather(GroupCollective):
    """Every rank of a group gets the tensors of the group one after the other along an axis."""

    dimension: int
    groups: Groups
    communicator: int = 0
    posted: bool = False
    name: ClassVar[str] = "all_gather"
    is_shared: ClassVar[bool] = True

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        return _joined_along(sizes, self.dimension, operands[0], result, len(self.groups[0]))

    def received(
        self, operators: Sequence[Operator], shapes: Sequence[Shape], ranks: Sequence[int], member: int
    ) -> Received | Unsupported:
        return Received(tuple(map(Piece, range(len(ranks)))), joined=self.dimension)

    def result(self, operand: TensorType) -> TensorType:
        check_axes(self.name, "dimension", (self.dimension,), operand.rank)
        count = check_groups(self.name, self.groups)
        return operand.with_shape(scaled(operand.shape, self.dimension, count))

    def moves(self, count: int) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True, slots=True)
class ReduceScatter(GroupCollective, Combining):
    """Combine the tensors of the group; the rank at position p gets the p-th of equal parts along an axis."""

    kind: ReductionKind
    dimension: int
    groups: Groups
    communicator: int = 0
    posted: bool = False
    name: ClassVar[str] = "reduce_scatter"
    needs: ClassVar[str] = "it adds no infinities of opposite signs"

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        return _joined_along(sizes, self.dimension, result, operands[0], len(self.groups[0]))

    def received(
        self, operators: Sequence[Operator], shapes: Sequence[Shape], ranks: Sequence[int], member: int
    ) -> Received | Unsupported:
        part = divide(shapes[0][self.dimension], len(ranks))
        if part is None:
            return Unsupported(f"axis {self.dimension} of {list(shapes[0])} has no {len(ranks)} equal parts")
        return Received((Piece(0, part * member, part),), self.dimension, reduction=self.kind)

    def result(self, operand: TensorType) -> TensorType:
        check_kind(self.name, self.kind, operand.dtype)
        check_axes(self.name, "dimension", (self.dimension,), operand.rank)
        count = check_groups(self.name, self.groups)
        return operand.with_shape(split(self.name, operand.shape, self.dimension, count))

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return reduce_facts(self.kind, operands[0], len(self.groups[0]), result.dtype)


@dataclass(frozen=True, slots=True)
class AllToAll(GroupCollective):
    """Split along one axis, send part q to the rank at position q, concatenate what comes along another axis.

    ``send_splits`` and ``receive_splits`` give uneven parts, one per rank of the group; both axes are then one.
    """

    split_dimension: int
    concat_dimension: int
    groups: Groups
    send_splits: tuple[Dim, ...] | None = None
    receive_splits: tuple[Dim, ...] | None = None
    communicator: int = 0
    posted: bool = False
    name: ClassVar[str] = "all_to_all"

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        source, count = operands[0], len(self.groups[0])
        cut, joined = self.split_dimension, self.concat_dimension
        kept = [axis for axis in range(len(source)) if axis not in (cut, joined)]
        same_each(sizes, [source[axis] for axis in kept], [result[axis] for axis in kept])
        if cut != joined:
            sizes.join(source[cut], [result[cut]] * count)
            sizes.join(result[joined], [source[joined]] * count)
            return {}
        sizes.part(result[cut], source[cut])
        sends, receives = self.send_splits, self.receive_splits
        sent = sizes.divide(source[cut], sends or _even(sizes, source[cut], count))
        received = sizes.divide(result[cut], receives or _even(sizes, result[cut], count))
        return {"send_splits": sends and sent, "receive_splits": receives and received}

    def received(
        self, operators: Sequence[Operator], shapes: Sequence[Shape], ranks: Sequence[int], member: int
    ) -> Received | Unsupported:
        pieces: list[Piece] = []
        for sender, (op, shape) in enumerate(zip(operators, shapes, strict=True)):
            if not isinstance(op, AllToAll):
                return Unsupported(f"an all_to_all that meets {op.name}")
            part = divide(shape[self.split_dimension], len(ranks))
            if op.send_splits is None and part is None:
                return Unsupported(f"axis {self.split_dimension} of {list(shape)} has no {len(ranks)} equal parts")
            sends = op.send_splits or (part or 0,) * len(ranks)
            if sends[member] != 0:
                pieces.append(Piece(sender, sum(sends[:member], start=0), sends[member]))
        return Received(tuple(pieces) or (Piece(member, 0, 0),), self.split_dimension, self.concat_dimension)

    def result(self, operand: TensorType) -> TensorType:
        check_axes(self.name, "split_dimension", (self.split_dimension,), operand.rank)
        check_axes(self.name, "concat_dimension", (self.concat_dimension,), operand.rank)
        count = check_groups(self.name, self.groups)
        if self.send_splits is not None or self.receive_splits is not None:
            return self._infer_uneven(operand, count)
        parts = split(self.name, operand.shape, self.split_dimension, count)
        return operand.with_shape(scaled(parts, self.concat_dimension, count))

    def _infer_uneven(self, operand: TensorType, count: int) -> TensorType:
        axis = self.split_dimension
        if axis != self.concat_dimension:
            raise TypeMismatch("all_to_all with splits needs split_dimension and concat_dimension to be the same axis")
        send = self._splits(self.send_splits, operand.shape, count)
        receive = self._splits(self.receive_splits, operand.shape, count)
        if len(send) != count or len(receive) != count:
            raise TypeMismatch(f"all_to_all in groups of {count} needs {count} splits and got {send} and {receive}")
        if sum(send, start=0) != operand.shape[axis]:
            raise TypeMismatch(f"all_to_all sends {send} of axis {axis} of {operand}; the splits must add up to it")
        return operand.with_shape((*operand.shape[:axis], sum(receive, start=0), *operand.shape[axis + 1 :]))

    def _splits(self, given: tuple[Dim, ...] | None, shape: Shape, count: int) -> tuple[Dim, ...]:
        """The splits given, or equal ones."""
        if given is not None:
            return given
        return (split(self.name, shape, self.split_dimension, count)[self.split_dimension],) * count

    def moves(self, count: int) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True, slots=True)
class CollectivePermute(Collective):
    """Send the tensor from each source to its target; a rank that is no target gets zeros. Pairs (source, target)."""

    pairs: tuple[tuple[int, int], ...]
    name: ClassVar[str] = "collective_permute"

    def received(
        self, operators: Sequence[Operator], shapes: Sequence[Shape], ranks: Sequence[int], member: int
    ) -> Received | Unsupported:
        source = next((source for source, target in self.pairs if target == ranks[member]), None)
        return Received(() if source is None else (Piece(ranks.index(source)),))

    def result(self, operand: TensorType) -> TensorType:
        for what, ranks in (("source", [s for s, _ in self.pairs]), ("target", [t for _, t in self.pairs])):
            if len(set(ranks)) != len(ranks):
                raise TypeMismatch(f"collective_permute names a {what} twice in {self.pairs}")
        return operand

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return join(operands[0], of_values([0]))


@dataclass(frozen=True, slots=True)
class CollectiveBroadcast(GroupCollective):
    """Every rank of the group that contains ``source`` gets the tensor of that rank."""

    source: int
    groups: Groups
    communicator: int = 0
    posted: bool = False
    name: ClassVar[str] = "collective_broadcast"
    is_shared: ClassVar[bool] = True

    def received(
        self, operators: Sequence[Operator], shapes: Sequence[Shape], ranks: Sequence[int], member: int
    ) -> Received | Unsupported:
        return Received((Piece(ranks.index(self.source)),))

    def result(self, operand: TensorType) -> TensorType:
        check_groups(self.name, self.groups)
        if not any(self.source in group for group in self.groups):
            raise TypeMismatch(f"collective_broadcast from rank {self.source}, which is in none of {self.groups}")
        return operand

    def moves(self, count: int) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True, slots=True)
class Send(Message):
    """Send the tensor to a rank; the result is the operand, so that the node stays in the graph."""

    destination: int
    tag: int
    name: ClassVar[str] = "send"

    def moves(self, count: int) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True, slots=True)
class Recv(Message, Leaf):
    """The tensor that a rank sent under a tag."""

    source: int
    tag: int
    tensor: TensorType
    name: ClassVar[str] = "recv"
    arity: ClassVar[int | None] = 0

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        return Leaf.relate_sizes(self, sizes, operands, result)

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 0)
        check_sizes(self.name, self.tensor.shape)
        return self.tensor
