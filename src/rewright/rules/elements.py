"""Programs read element by element: only what an output needs is computed, so only that has to be defined."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ops.base import TensorOperator
from rewright.terms.evaluate import Arithmetic, Evaluator
from rewright.terms.index import Variable
from rewright.terms.scalar import Scalar

Place = tuple[int, ...]
Elements = Mapping[str, Mapping[Place, Any]]
"""The elements of inputs by name and index, in the arithmetic."""


class NoDenotation(RewrightError):
    """An operator that cannot be read element by element: nothing is known about its values."""


class Program:
    """A graph at numbers with elements for its inputs, in one arithmetic."""

    def __init__(self, graph: Graph, inputs: Elements, arithmetic: Arithmetic) -> None:
        self.graph = graph
        self.inputs = inputs
        self.arithmetic = arithmetic
        self._known: dict[tuple[int, Place], Any] = {}
        self._scalars: dict[int, Scalar] = {}

    def element(self, position: int, index: Place) -> Any:
        """One element of a node; raises RewrightError where it is not defined or reads out of range."""
        key = (position, index)
        if key not in self._known:
            self._known[key] = self._compute(position, index)
        return self._known[key]

    def outputs(self) -> Iterator[tuple[str, Place]]:
        """Names of outputs with all of their indices."""
        for name, position in self.graph.outputs.items():
            for index in itertools.product(*(range(int(str(n))) for n in self.graph.nodes[position].type.shape)):
                yield name, index

    def output(self, name: str, index: Place) -> Any:
        """One element of an output."""
        return self.element(self.graph.outputs[name], index)

    def _compute(self, position: int, index: Place) -> Any:
        node = self.graph.nodes[position]
        shape = node.type.shape
        if any(not 0 <= i < int(str(size)) for i, size in zip(index, shape, strict=True)):
            raise RewrightError(f"{node.op.name} is read at {index}, which is out of range of {node.type}")
        if isinstance(node.op, ops.Input):
            return self.inputs[node.op.label][index]
        at = {Variable(f"i{axis}"): i for axis, i in enumerate(index)}
        evaluator = Evaluator(self.arithmetic, lambda operand, place: self.element(node.operands[operand], place))
        return evaluator.scalar(self._scalar(position), at)

    def _scalar(self, position: int) -> Scalar:
        if position not in self._scalars:
            node = self.graph.nodes[position]
            if not isinstance(node.op, TensorOperator):
                raise NoDenotation(f"{node.op.name} has no denotation")
            found = node.op.denote([self.graph.nodes[p].type for p in node.operands])
            if isinstance(found, Unsupported):
                raise NoDenotation(f"{node.op.name} has no denotation: {found.why}")
            self._scalars[position] = found
        return self._scalars[position]
