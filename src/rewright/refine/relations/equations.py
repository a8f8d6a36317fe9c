"""Relations written as equations in clean operators over rank tensors.

``"wqkv" = "concat([wqkv@0[:, 0:1024], wqkv@1[:, 0:1024]], axis=1)"`` says how a sequential tensor is put together;
``name@r`` is rank r's tensor. An equation is solved for the rank tensors: each is a concatenation of windows of the
sequential one, so that the engine has one term for both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rewright.claims.language import View
from rewright.ir.dims import Dim
from rewright.ir.errors import ContradictoryRelations, RewrightError
from rewright.ir.placement import RankProgram
from rewright.lifting.moves.layout import concatenate, slice_axis, transpose
from rewright.lifting.terms.value import Pieces, Value

Box = tuple[tuple[int, int], ...]
_TENSOR = re.compile(r"([A-Za-z_][\w.:]*)@(\d+)")


@dataclass(frozen=True)
class Equation:
    """``name = text``, the text as the user wrote it."""

    name: str
    text: str


@dataclass(frozen=True)
class Block:
    """A window of a rank tensor; ``order`` permutes its axes after the cut."""

    rank: int
    name: str
    box: Box
    order: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what it denotes."""
        return tuple(self.box[a][1] - self.box[a][0] for a in self.order)


@dataclass(frozen=True)
class Joined:
    """Layouts put together along an axis."""

    axis: int
    parts: tuple[Layout, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what it denotes."""
        first = self.parts[0].shape
        total = sum(part.shape[self.axis] for part in self.parts)
        return (*first[: self.axis], total, *first[self.axis + 1 :])


Layout = Block | Joined
Of = Literal["inputs", "outputs"]
"""Which tensors of the programs an equation is about."""


def layout_of(equation: Equation, program: RankProgram, of: Of = "inputs") -> Layout:
    """The right side of an equation; raises RewrightError where it cannot be read."""
    return _Reader(equation, program, of).read()


def tensors_of(equation: Equation) -> set[str]:
    """The names of the rank tensors that an equation is about."""
    return {match[1] for match in _TENSOR.finditer(equation.text)}


def rename_equation(equation: Equation, name: str) -> Equation:
    """The same of tensors of another name, where the ranks' tensors are named like the sequential one."""
    text = _TENSOR.sub(lambda m: f"{name}@{m[2]}" if m[1] == equation.name else m[0], equation.text)
    return Equation(name, text)


def solve(
    equations: Sequence[Equation], sequential: Mapping[str, Value], program: RankProgram
) -> dict[tuple[int, str], Value]:
    """The value of every rank tensor that the equations mention.

    Raises RewrightError where an equation cannot be read or leaves part of a rank tensor open, and
    ContradictoryRelations where shapes do not fit or one part is given two meanings.
    """
    blocks: dict[tuple[int, str], dict[Box, tuple[Value, str]]] = {}
    for equation in equations:
        value = sequential[equation.name]
        layout = layout_of(equation, program)
        if layout.shape != value.shape:
            raise ContradictoryRelations(
                f"the equation for {equation.name!r} has shape {layout.shape} on its right side and the tensor has "
                f"{value.shape}; correct {equation.text!r}"
            )
        for block, part in _cut(layout, value):
            known = blocks.setdefault((block.rank, block.name), {})
            before = known.get(block.box)
            if before is not None and before[0] != part:
                raise ContradictoryRelations(
                    f"{block.name}@{block.rank} is given two meanings, by {before[1]!r} and by {equation.text!r}; "
                    "keep the true one"
                )
            known[block.box] = part, equation.text
    return {
        (rank, name): _assemble(rank, name, {box: v for box, (v, _) in parts.items()}, program)
        for (rank, name), parts in blocks.items()
    }


def _cut(layout: Layout, value: Value) -> list[tuple[Block, Value]]:
    """Every block with the window of the sequential value that it equals, axes in the block's own order."""
    if isinstance(layout, Block):
        back = [layout.order.index(a) for a in range(len(layout.order))]
        return [(layout, transpose(value, back))]
    found: list[tuple[Block, Value]] = []
    start = 0
    for part in layout.parts:
        size = part.shape[layout.axis]
        found.extend(_cut(part, slice_axis(value, layout.axis, start, start + size)))
        start += size
    return found


def _assemble(rank: int, name: str, parts: Mapping[Box, Value], program: RankProgram) -> Value:
    """A rank tensor from its blocks, which tile it along one axis after another."""
    graph = program.graphs[rank]
    shape = graph.nodes[graph.inputs[name]].type.shape
    for axis, size in enumerate(shape):
        starts = {box[axis] for box in parts}
        if starts != {(0, size)}:
            rows: dict[tuple[int, int], dict[Box, Value]] = {}
            for box, value in parts.items():
                rows.setdefault(box[axis], {})[(*box[:axis], (0, int(str(size))), *box[axis + 1 :])] = value
            position: Dim = 0
            joined: list[Value] = []
            for (start, stop), row in sorted(rows.items()):
                if start < position:
                    raise ContradictoryRelations(
                        f"the equations for {name}@{rank} overlap at {start} of axis {axis}; give each part once"
                    )
                if start != position:
                    break
                joined.append(_assemble_row(rank, name, row, axis, program))
                position = stop
            if position != size:
                box = ", ".join(f"{position}:{size}" if place == axis else ":" for place in range(len(shape)))
                raise RewrightError(
                    f"the equations say nothing about {name}@{rank} from {position} of axis {axis} on; add that part, "
                    f'or, of padding, say "{name}@{rank}[{box}]" = "any"'
                )
            return concatenate(joined, axis)
    return next(iter(parts.values()))


def _assemble_row(rank: int, name: str, row: Mapping[Box, Value], axis: int, program: RankProgram) -> Value:
    if len(row) == 1:
        return next(iter(row.values()))
    return _assemble(rank, name, row, program)


class _Reader:
    """Reads one right side with Python's own grammar; only layout operators are allowed."""

    def __init__(self, equation: Equation, program: RankProgram, of: Of) -> None:
        self.equation, self.program, self.of = equation, program, of

    def read(self) -> Layout:
        names: dict[str, tuple[str, int]] = {}

        def placeholder(match: re.Match[str]) -> str:
            names[f"_tensor_{len(names)}"] = match[1], int(match[2])
            return f"_tensor_{len(names) - 1}"

        text = _TENSOR.sub(placeholder, self.equation.text)
        try:
            tree = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise self._wrong(f"cannot be read: {error.msg}") from None
        return self._layout(tree, names)

    def _layout(self, tree: ast.expr, names: Mapping[str, tuple[str, int]]) -> Layout:
        if isinstance(tree, ast.Name) and tree.id in names:
            return self._tensor(*names[tree.id])
        if isinstance(tree, ast.Subscript):
            return self._window(self._layout(tree.value, names), tree.slice)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            if tree.func.id in ("concat", "cat", "concatenate"):
                return self._concatenation(tree, names)
            if tree.func.id in ("transpose", "permute"):
                return self._permutation(tree, names)
        raise self._wrong("may only use name@rank, [start:stop], concat([..], axis=..) and transpose(.., (..))")

    def _tensor(self, name: str, rank: int) -> Block:
        if rank >= len(self.program.graphs):
            raise self._wrong(f"names rank {rank} of {len(self.program.graphs)}")
        graph = self.program.graphs[rank]
        tensors = graph.inputs if self.of == "inputs" else graph.outputs
        if name not in tensors:
            raise self._wrong(f"names {name}@{rank}, which is no {self.of.removesuffix('s')} of that rank")
        shape = graph.nodes[tensors[name]].type.shape
        if not all(isinstance(n, int) for n in shape):
            raise self._wrong(f"names {name}@{rank}, whose sizes are symbols; use a placement")
        return Block(rank, name, tuple((0, int(str(n))) for n in shape), tuple(range(len(shape))))

    def _window(self, layout: Layout, index: ast.expr) -> Block:
        if not isinstance(layout, Block):
            raise self._wrong("slices something that is no rank tensor")
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        box = list(layout.box)
        for axis, item in enumerate(items):
            if not isinstance(item, ast.Slice) or item.step is not None or axis >= len(box):
                raise self._wrong("has an index that is no start:stop")
            low, high = box[layout.order[axis]]
            start = low + (self._number(item.lower) if item.lower else 0)
            stop = low + self._number(item.upper) if item.upper else high
            if not low <= start <= stop <= high:
                raise self._wrong(f"slices axis {axis} out of range")
            box[layout.order[axis]] = start, stop
        return Block(layout.rank, layout.name, tuple(box), layout.order)

    def _concatenation(self, call: ast.Call, names: Mapping[str, tuple[str, int]]) -> Layout:
        axis = next((self._number(k.value) for k in call.keywords if k.arg in ("axis", "dim")), None)
        if axis is None and len(call.args) > 1:
            axis = self._number(call.args[1])
        if not call.args or not isinstance(call.args[0], ast.List | ast.Tuple) or not call.args[0].elts:
            raise self._wrong("needs concat([..], axis=..)")
        parts = tuple(self._layout(part, names) for part in call.args[0].elts)
        rank = len(parts[0].shape)
        axis = (axis or 0) + (rank if (axis or 0) < 0 else 0)
        rest = {(*p.shape[:axis], *p.shape[axis + 1 :]) for p in parts}
        if len(rest) != 1 or any(len(p.shape) != rank for p in parts) or not 0 <= axis < rank:
            raise self._wrong(f"joins shapes {[p.shape for p in parts]} along axis {axis}")
        return Joined(axis, parts)

    def _permutation(self, call: ast.Call, names: Mapping[str, tuple[str, int]]) -> Layout:
        layout = self._layout(call.args[0], names)
        if not isinstance(layout, Block) or len(call.args) != 2 or not isinstance(call.args[1], ast.Tuple | ast.List):
            raise self._wrong("needs transpose(name@rank, (axes))")
        order = [self._number(item) for item in call.args[1].elts]
        if sorted(order) != list(range(len(layout.order))):
            raise self._wrong(f"permutes by {order}, which is no permutation")
        return Block(layout.rank, layout.name, layout.box, tuple(layout.order[a] for a in order))

    def _number(self, tree: ast.expr) -> int:
        try:
            value: object = ast.literal_eval(tree)
        except ValueError:
            value = None
        if not isinstance(value, int):
            raise self._wrong("has an index that is no number")
        return value

    def _wrong(self, what: str) -> RewrightError:
        return RewrightError(f"the equation {self.equation.name!r} = {self.equation.text!r} {what}")


__all__ = ["Block", "Equation", "Joined", "Layout", "Of", "Pieces", "View", "layout_of", "rename_equation", "solve"]
