"""Graphs of the IR as HLO text, one instruction for every operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rewright import ops
from rewright.frontends.hlo.operators import DOT
from rewright.frontends.hlo.reductions import FOLDS
from rewright.frontends.hlo.shapes import DTYPES
from rewright.ir.errors import RewrightError, UnsupportedOperator
from rewright.ir.graph import Graph, Node
from rewright.ir.types import TensorType
from rewright.ops.base import identity_value
from rewright.ops.elementwise import Elementwise

_ELEMENTS = {dtype: name for name, dtype in DTYPES.items()}
_FOLDS = {kind: name for name, kind in FOLDS.items()}


def shape_text(kind: TensorType) -> str:
    """A type as HLO writes it; raises UnsupportedOperator where a size is no number."""
    if not all(isinstance(size, int) for size in kind.shape):
        raise UnsupportedOperator(f"{kind} has a size that is no number")
    return f"{_ELEMENTS[kind.dtype]}[{','.join(map(str, kind.shape))}]"


class Writer:
    """Instructions of an HLO text, and the computations that they call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.regions: dict[str, str] = {}

    def text(self, name: str, results: Sequence[str], kinds: Sequence[str]) -> str:
        """The module that gives some values as a tuple."""
        root = f"  ROOT results = ({', '.join(kinds)}) tuple({', '.join(results)})"
        return "\n".join([f"HloModule {name}", *self.regions.values(), "ENTRY main {", *self.lines, root, "}"])

    def add(self, kind: TensorType, opcode: str, operands: Sequence[str], more: str = "") -> str:
        """Append an instruction and return its name."""
        name = f"n{len(self.lines)}"
        self.lines.append(f"  {name} = {shape_text(kind)} {opcode}({', '.join(operands)}){more}")
        return name

    def graph(self, graph: Graph, inputs: Mapping[str, str]) -> list[str]:
        """Append a graph over named values; returns the names of its outputs.

        Raises UnsupportedOperator for an operator that is not written, before anything is appended.
        """
        for node in graph.nodes:
            if not isinstance(node.op, (ops.Input, Elementwise)) and type(node.op) not in _WRITERS:
                raise UnsupportedOperator(f"{node.op.name} is not written as HLO")
        start = len(self.lines)
        found: dict[int, str] = {}
        try:
            for position, node in enumerate(graph.nodes):
                operands = [found[p] for p in node.operands]
                found[position] = self._node(graph, node, operands, inputs)
        except RewrightError:
            del self.lines[start:]
            raise
        return [found[position] for position in graph.outputs.values()]

    def _node(self, graph: Graph, node: Node, operands: list[str], inputs: Mapping[str, str]) -> str:
        op: Any = node.op
        if isinstance(op, ops.Input):
            return inputs[op.label]
        if type(op) in _WRITERS:
            return _WRITERS[type(op)](self, op, node.type, operands)
        opcode = op.scalar.code.hlo if isinstance(op, Elementwise) and op.scalar else op.name.replace("_", "-")
        if opcode is None:
            raise UnsupportedOperator(f"{op.name} is not written as HLO")
        return self.add(node.type, opcode, operands)

    def fold(self, kind: str, tensor: TensorType) -> str:
        """The name of the computation that a reduction folds with."""
        element = _ELEMENTS[tensor.dtype]
        name = f"{_FOLDS[kind]}.{element}"
        scalar = f"{element}[]"
        self.regions[name] = (
            f"{name} {{\n  a = {scalar} parameter(0)\n  b = {scalar} parameter(1)\n"
            f"  ROOT c = {scalar} {_FOLDS[kind]}(a, b)\n}}"
        )
        return name


def _number(value: Any, kind: TensorType) -> str:
    if isinstance(value, bool) or _ELEMENTS[kind.dtype] == "pred":
        return "true" if value else "false"
    if value == 0 and math.copysign(1, value) < 0:
        raise UnsupportedOperator("HLO text has no negative zero")
    return str(int(value)) if kind.dtype.is_integer else repr(float(value))


def _write_constant(w: Writer, op: ops.Constant, kind: TensorType, operands: list[str]) -> str:
    numbers = [_number(value, kind) for value in op.values]
    if len(numbers) == 1:
        scalar = w.add(kind.with_shape(()), "constant", numbers)
        return scalar if not kind.shape else w.add(kind, "broadcast", [scalar], ", dimensions={}")
    flat = w.add(kind.with_shape((len(numbers),)), "constant", ["{" + ", ".join(numbers) + "}"])
    return flat if kind.rank == 1 else w.add(kind, "reshape", [flat])


def _write_reduce(w: Writer, op: ops.Reduce, kind: TensorType, operands: list[str]) -> str:
    if op.kind in ("maximum", "minimum") and kind.dtype.is_integer:
        raise UnsupportedOperator("the extreme of no integer is no number")
    start = w.add(kind.with_shape(()), "constant", [_number(identity_value(op.kind, kind.dtype), kind)])
    more = f", dimensions={_axes(op.dimensions)}, to_apply={w.fold(op.kind, kind)}"
    return w.add(kind, "reduce", [*operands, start], more)


def _axes(axes: Sequence[Any]) -> str:
    return "{" + ",".join(map(str, axes)) + "}"


def _ranges(op: ops.Slice) -> str:
    parts = [f"[{a}:{b}:{c}]" for a, b, c in zip(op.start, op.limit, op.stride, strict=True)]
    return ", slice={" + ", ".join(parts) + "}"


def _sides(op: ops.Pad) -> str:
    return ", padding=" + "x".join(f"{a}_{b}_{c}" for a, b, c in zip(op.low, op.high, op.interior, strict=True))


def _contraction(op: ops.DotGeneral) -> str:
    lists = zip(DOT, (op.lhs_batch, op.rhs_batch, op.lhs_contracting, op.rhs_contracting), strict=True)
    return "".join(f", {name}={_axes(axes)}" for name, axes in lists)


def _plain(opcode: str, more: Callable[[Any], str]) -> Callable[[Writer, Any, TensorType, list[str]], str]:
    return lambda w, op, kind, operands: w.add(kind, opcode, operands, more(op))


_WRITERS: dict[type, Callable[[Writer, Any, TensorType, list[str]], str]] = {
    ops.Constant: _write_constant,
    ops.Reduce: _write_reduce,
    ops.Compare: _plain("compare", lambda op: f", direction={op.direction}"),
    ops.Iota: _plain("iota", lambda op: f", iota_dimension={op.dimension}"),
    ops.BroadcastInDim: _plain("broadcast", lambda op: f", dimensions={_axes(op.dimensions)}"),
    ops.Reshape: _plain("reshape", lambda op: ""),
    ops.Transpose: _plain("transpose", lambda op: f", dimensions={_axes(op.permutation)}"),
    ops.Slice: _plain("slice", _ranges),
    ops.Pad: _plain("pad", _sides),
    ops.Concatenate: _plain("concatenate", lambda op: f", dimensions={{{op.dimension}}}"),
    ops.Reverse: _plain("reverse", lambda op: f", dimensions={_axes(op.dimensions)}"),
    ops.DotGeneral: _plain("dot", _contraction),
}
