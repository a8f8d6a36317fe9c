"""Expressions over tensors, as people write weight maps: slices, concatenations, permutations, offsets.

``"concat([q.weight, k.weight, v.weight], axis=0)"`` or ``"norm.weight + 1"``. Python's own grammar is used; names may
hold dots. Every expression is a small part of a graph, so that what it means is what its operators mean.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from rewright import ops
from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.graph import GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType

FUNCTIONS = ("concat", "stack", "transpose", "reshape", "halves", "interleaved")
_NAME = re.compile(r"[A-Za-z_][\w:]*(?:\.[\w:]+)*")
_KEYWORDS = frozenset({"axis", "dim", "heads"})


def names_in(text: str) -> tuple[str, ...]:
    """The tensors that an expression reads, in order."""
    found = [m[0] for m in _NAME.finditer(text) if m[0] not in FUNCTIONS and m[0] not in _KEYWORDS]
    return tuple(dict.fromkeys(found))


def build(text: str, builder: GraphBuilder, tensors: Mapping[str, int]) -> int:
    """Append an expression over nodes of a graph and return the place of its value.

    Raises RewrightError for what cannot be read, for a tensor that does not exist, and for shapes that do not fit.
    """
    return _Reader(text, builder, tensors).read()


class _Reader:
    def __init__(self, text: str, builder: GraphBuilder, tensors: Mapping[str, int]) -> None:
        self.text, self.builder, self.tensors = text, builder, tensors
        self._names: list[str] = []

    def read(self) -> int:
        def placeholder(match: re.Match[str]) -> str:
            if match[0] in FUNCTIONS or match[0] in _KEYWORDS:
                return match[0]
            self._names.append(match[0])
            return f"_tensor_{len(self._names) - 1}"

        try:
            tree = ast.parse(_NAME.sub(placeholder, self.text), mode="eval").body
        except SyntaxError as error:
            self._wrong(f"cannot be read: {error.msg}")
        try:
            return self._tensor(tree)
        except TypeMismatch as error:
            self._wrong(f"does not fit: {error}")

    def _tensor(self, tree: ast.expr) -> int:
        if isinstance(tree, ast.Name) and tree.id.startswith("_tensor_"):
            name = self._names[int(tree.id.removeprefix("_tensor_"))]
            if name not in self.tensors:
                self._wrong(f"names {name!r}, which is no input of the other program")
            return self.tensors[name]
        if isinstance(tree, ast.Subscript):
            return self._slice(self._tensor(tree.value), tree.slice)
        if isinstance(tree, ast.BinOp):
            return self._arithmetic(tree)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return self.builder.add(ops.Negate(), self._tensor(tree.operand))
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in self._functions():
            return self._functions()[tree.func.id](tree)
        return self._wrong(f"may only use tensors, slices, +, -, * with a number, and {', '.join(FUNCTIONS)}")

    def _functions(self) -> Mapping[str, Callable[[ast.Call], int]]:
        return {
            "concat": self._concat,
            "stack": self._stack,
            "transpose": self._transpose,
            "reshape": self._reshape,
            "halves": lambda call: self._rotary(call, from_pairs=True),
            "interleaved": lambda call: self._rotary(call, from_pairs=False),
        }

    def _shape(self, position: int) -> tuple[int, ...]:
        shape: Shape = self.builder.type(position).shape
        if not all(isinstance(n, int) for n in shape):
            self._wrong("is about a tensor whose sizes are symbols; give it numbers")
        return tuple(int(str(n)) for n in shape)

    def _slice(self, position: int, index: ast.expr) -> int:
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        shape = self._shape(position)
        start, limit, stride = [0] * len(shape), list(shape), [1] * len(shape)
        for axis, item in enumerate(items):
            if not isinstance(item, ast.Slice) or axis >= len(shape):
                self._wrong("has an index that is no start:stop")
            start[axis] = self._number(item.lower) if item.lower else 0
            limit[axis] = self._number(item.upper) if item.upper else shape[axis]
            stride[axis] = self._number(item.step) if item.step else 1
            if not (0 <= start[axis] <= limit[axis] <= shape[axis] and stride[axis] > 0):
                self._wrong(f"slices axis {axis} of {shape} out of range")
        return self.builder.add(ops.Slice(tuple(start), tuple(limit), tuple(stride)), position)

    def _arithmetic(self, tree: ast.BinOp) -> int:
        known: dict[type[ast.operator], Operator] = {
            ast.Add: ops.Add(),
            ast.Sub: ops.Subtract(),
            ast.Mult: ops.Multiply(),
        }
        operator = known.get(type(tree.op))
        if operator is None:
            self._wrong("may only add, subtract and multiply")
        sides = [self._literal(side) for side in (tree.left, tree.right)]
        if all(side is not None for side in sides):
            self._wrong("is a number and no tensor")
        places = [
            self._tensor(side) if number is None else -1
            for side, number in zip((tree.left, tree.right), sides, strict=True)
        ]
        kind = self.builder.type(max(places))
        values = [
            self.builder.add(ops.Constant(kind, (number,))) if number is not None else place
            for place, number in zip(places, sides, strict=True)
        ]
        return self.builder.add(operator, *values)

    def _literal(self, tree: ast.expr) -> float | None:
        try:
            value: object = ast.literal_eval(tree)
        except ValueError:
            return None
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def _concat(self, call: ast.Call) -> int:
        parts = self._parts(call)
        return self.builder.add(ops.Concatenate(self._axis(call, self.builder.type(parts[0]).rank)), *parts)

    def _stack(self, call: ast.Call) -> int:
        parts = self._parts(call)
        axis = self._axis(call, self.builder.type(parts[0]).rank + 1)
        shape = self._shape(parts[0])
        wide = ops.Reshape((*shape[:axis], 1, *shape[axis:]))
        return self.builder.add(ops.Concatenate(axis), *(self.builder.add(wide, part) for part in parts))

    def _parts(self, call: ast.Call) -> list[int]:
        if not call.args or not isinstance(call.args[0], ast.List | ast.Tuple) or not call.args[0].elts:
            self._wrong("needs concat([..], axis=..)")
        return [self._tensor(part) for part in call.args[0].elts]

    def _axis(self, call: ast.Call, rank: int) -> int:
        given = next((k.value for k in call.keywords if k.arg in ("axis", "dim")), None)
        axis = self._number(given) if given is not None else self._number(call.args[1]) if len(call.args) > 1 else 0
        if not -rank <= axis < rank:
            self._wrong(f"names axis {axis} of {rank}")
        return axis % rank

    def _transpose(self, call: ast.Call) -> int:
        position = self._tensor(call.args[0])
        rank = self.builder.type(position).rank
        order = self._numbers(call.args[1]) if len(call.args) > 1 else tuple(reversed(range(rank)))
        return self.builder.add(ops.Transpose(order), position)

    def _reshape(self, call: ast.Call) -> int:
        if len(call.args) != 2:
            self._wrong("needs reshape(tensor, (sizes))")
        return self.builder.add(ops.Reshape(self._numbers(call.args[1])), self._tensor(call.args[0]))

    def _rotary(self, call: ast.Call, *, from_pairs: bool) -> int:
        """Rows of every head, in the order of rotated pairs or of rotated halves, in the other order."""
        heads = next((self._number(k.value) for k in call.keywords if k.arg == "heads"), None)
        if len(call.args) != 1 or heads is None:
            self._wrong("needs halves(tensor, heads=..) or interleaved(tensor, heads=..)")
        position = self._tensor(call.args[0])
        rows, *rest = self._shape(position)
        if heads < 1 or rows % (2 * heads):
            self._wrong(f"cuts {rows} rows into {heads} heads of rotated pairs")
        half = rows // heads // 2
        split = (heads, half, 2, *rest) if from_pairs else (heads, 2, half, *rest)
        wide = self.builder.add(ops.Reshape(split), position)
        turned = self.builder.add(ops.Transpose((0, 2, 1, *range(3, 3 + len(rest)))), wide)
        return self.builder.add(ops.Reshape((rows, *rest)), turned)

    def _numbers(self, tree: ast.expr) -> tuple[int, ...]:
        if not isinstance(tree, ast.Tuple | ast.List):
            self._wrong("needs a tuple of numbers")
        return tuple(self._number(item) for item in tree.elts)

    def _number(self, tree: ast.expr) -> int:
        value = self._literal(tree)
        if value is None or value != int(value):
            self._wrong("has an index that is no number")
        return int(value)

    def _wrong(self, what: str) -> NoReturn:
        raise RewrightError(f"the expression {self.text!r} {what}")


def build_expression(text: str, builder: GraphBuilder, tensors: Mapping[str, int], kind: TensorType) -> int:
    """An expression as a tensor of a type: float types are cast; raises RewrightError where shapes differ."""
    place = build(text, builder, tensors)
    found = builder.type(place)
    if found.shape != kind.shape:
        raise RewrightError(f"the expression {text!r} has the shape {found.shape}, and {kind.shape} is needed")
    if found.dtype is not kind.dtype:
        return builder.add(ops.Convert(kind.dtype), place)
    return place
