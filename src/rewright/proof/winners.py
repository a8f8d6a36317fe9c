"""The law of the first largest: where it stands in a concatenation, by which part has the largest value.

Of parts that follow each other, the first whose largest value is largest holds the first largest value of all: those
before it have only smaller values. So its place there, counted from where the first part begins, is the place in all
of them. The normal form knows what a maximum is, and what a stable sort is, and not this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rewright import ops
from rewright.claims.language import Pieces, Tensor, View
from rewright.ir.types import DType
from rewright.proof.denoting import ApplicationAt, Reading
from rewright.proof.programs import Applied
from rewright.terms.normal.denoting.denote import Place
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import MINUS_INFINITY, Value
from rewright.terms.normal.polynomials.atoms import ZERO, Polynomial, polynomial, symbol

Same = Callable[[Value, Value], bool]
AppliedAt = Callable[[View, Place], tuple[ApplicationAt, Fraction] | None]
"""The one operator that a view applies at a place, and the number that it adds to it."""


@dataclass(frozen=True)
class _First:
    """The place of the first largest of ``length`` values, and a number."""

    value: Callable[[Polynomial], Value]
    length: int
    dtype: DType
    added: Fraction


class FirstOfAll:
    """Whether a look-up of places, by which part has the largest value, is the place of the largest of all parts."""

    def __init__(self, context: Context, applied_at: AppliedAt, denoter: Reading, same: Same) -> None:
        self._context = context
        self._applied_at = applied_at
        self._denoter = denoter
        self._same = same

    def holds(self, subject: object, operands: Sequence[Tensor], result: View, at: Place, place: Place) -> bool:
        """Whether the subject's element at a place is that of a claim at a place of it."""
        if not isinstance(subject, Applied) or not isinstance(subject.op, ops.Gather) or len(operands) != 2:
            return False
        data, indices = operands
        if not isinstance(data, Pieces) or not isinstance(indices, View) or data.rows != 1:
            return False
        if any(length != 1 for length in data.lengths):
            return False
        read = self._read(subject, data.axis, len(data.parts), place)
        whole = self._first(result, at)
        which = None if read is None else self._first(indices, read[1])
        if read is None or whole is None or which is None:
            return False
        if which.length != len(data.parts) or which.added != 0:
            return False
        return self._are_parts(data, read[0], which, whole)

    def _are_parts(self, data: Pieces, at: Place, which: _First, whole: _First) -> bool:
        """Whether the parts follow each other as those of the whole, and the choice is by their largest values."""
        start = 0
        for number, part in enumerate(data.parts):
            one = self._first(part, (*at[: data.axis], ZERO, *at[data.axis + 1 :]))
            if one is None or one.dtype != whole.dtype or which.dtype != whole.dtype:
                return False
            if one.added - whole.added != start or not self._is_next(
                one, which.value(polynomial(number)), whole, start
            ):
                return False
            start += one.length
        return start == whole.length

    def _is_next(self, one: _First, largest: Value, whole: _First, start: int) -> bool:
        """Whether a part is the whole from some place on, and a value its largest."""
        size, name = polynomial(one.length), self._context.fresh("k")
        with self._context.ranges([(name, ZERO, size)]):
            own = one.value(symbol(name))
            if not self._same(own, whole.value(symbol(name) + start)):
                return False
        return self._same(self._denoter.extreme("maximum", MINUS_INFINITY, name, size, own), largest)

    def _first(self, tensor: Tensor, place: Place) -> _First | None:
        """The values whose first largest a tensor tells the place of, at a place of it; None for other tensors."""
        found = self._applied_at(tensor, place) if isinstance(tensor, View) else None
        if found is None:
            return None
        (op, (kind, *_), (reader, *_), own), added = found
        sorts = isinstance(op, ops.Sort) and op.descending and op.result == "indices"
        if op != ops.TopK(1, "indices") and not sorts:
            return None
        axis = op.dimension % len(own) if isinstance(op, ops.Sort) else len(own) - 1
        length = kind.shape[axis]
        if not isinstance(length, int) or length < 1 or own[axis] != ZERO:
            return None
        return _First(lambda k: reader((*own[:axis], k, *own[axis + 1 :])), length, kind.dtype, added)

    def _read(self, subject: Applied, axis: int, count: int, place: Place) -> tuple[Place, Place] | None:
        """Where a look-up reads its data, which is by the index along one axis, and where it reads that index.

        Found by denoting it for an index that may be any number below ``count``.
        """
        graph = subject.graph()
        data, indices = graph.inputs.values()
        name = self._context.fresh("w")
        read: dict[int, Place] = {}

        def reader(position: int, given: Value) -> Callable[[Place], Value]:
            def at(index: Place) -> Value:
                if read.setdefault(position, index) != index:
                    raise _Twice
                return given

            return at

        with self._context.ranges([(name, ZERO, polynomial(count))]):
            result = symbol(self._context.fresh("r"))
            readers = {data: reader(data, result), indices: reader(indices, symbol(name))}
            try:
                found = Reading(self._context, graph, self._denoter.sizes, readers).value(
                    graph.outputs["result"], place
                )
            except _Twice:
                return None
        if found != result or set(read) != {data, indices}:
            return None
        others = [*read[data][:axis], *read[data][axis + 1 :], *read[indices]]
        if read[data][axis] != symbol(name) or any(name in index.free for index in others):
            return None
        return read[data], read[indices]


class _Twice(Exception):
    """An operand is read at two places."""
