"""Denotes small programs whose inputs are claimed tensors, and gives the digits that their axes consist of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import cast

from rewright.claims.language import Tensor, View
from rewright.ir.dims import Dim, product
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.terms.normal.denoting.denote import Denoter, Place
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import Value
from rewright.terms.normal.polynomials.atoms import ZERO, Polynomial
from rewright.terms.scalar import Fold

ApplicationAt = tuple[Operator, tuple[TensorType, ...], list[Callable[[Place], Value]], Place]
"""An operator, the types of its operands and what reads their elements, and where its result is read."""


class Reading(Denoter):
    """Denotes a graph whose inputs are read by functions.

    Logarithms are of what is positive: that is a condition of a proof, which names those where facts leave it open.
    """

    def __init__(
        self,
        context: Context,
        graph: Graph,
        sizes: Callable[[Dim], Polynomial],
        readers: Mapping[int, Callable[[Place], Value]],
        digits: Mapping[Dim, tuple[Dim, ...]] | None = None,
    ) -> None:
        super().__init__(context, graph, sizes, has_poles=False)
        self._readers = readers
        self._lengths = digits or {}

    def _denote(self, position: int, index: Place) -> Value:
        reader = self._readers.get(position)
        return super()._denote(position, index) if reader is None else reader(index)

    def fold(self, fold: Fold, is_float: bool, is_boolean: bool, body: Callable[[Polynomial], Value]) -> Value:
        """As that of a denoter; a sum over an axis that the operands have digits of is one over each of these."""
        lengths = self._lengths.get(fold.size, (fold.size,)) if fold.kind == "sum" else (fold.size,)

        def nested(number: int, index: Polynomial) -> Value:
            if number == len(lengths):
                return body(index)
            digit = replace(fold, size=lengths[number])
            size = self.sizes(lengths[number])
            one = super(Reading, self).fold
            return one(digit, is_float, is_boolean, lambda place: nested(number + 1, index * size + place))

        return nested(0, ZERO)


def splits(tensors: Iterable[Tensor]) -> dict[Dim, tuple[Dim, ...]]:
    """The sizes of axes of tensors with the digits that they are made of, which are never fewer than none."""
    found: dict[Dim, tuple[Dim, ...]] = {}
    for tensor in tensors:
        if isinstance(tensor, View):
            several = [tuple(n for n in digits if n != 1) for digits in tensor.dims]
        else:
            several = [(tensor.rows, sum(tensor.lengths, start=cast("Dim", 0)))] if tensor.rows != 1 else []
        inner = {} if isinstance(tensor, View) else splits(tensor.parts)
        found = {**inner, **{product(digits): digits for digits in several if len(digits) > 1}, **found}
    return found
