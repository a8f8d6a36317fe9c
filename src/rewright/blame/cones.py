"""The part of a program between values that are known to be equal and one that should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rewright import ops
from rewright.blame.layouts import Layout
from rewright.interp.arithmetic import is_exact
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType
from rewright.proof.rewriting.parts import convert_node, copy_nodes, depends_on_inputs

LARGEST = 256


@dataclass(frozen=True)
class Cone:
    """Nodes in order, the last one the result; leaves by position with the name of the value that they hold."""

    graph: Graph
    positions: tuple[int, ...]
    leaves: Mapping[int, int]

    def part(
        self,
        names: Mapping[int, str],
        types: Mapping[str, TensorType],
        layouts: Mapping[int, Layout] | None = None,
        result: tuple[Layout, TensorType] | None = None,
    ) -> Graph:
        """The cone as a program over its leaves.

        Args:
            names: by value that leaves hold what the program calls it.
            types: of its inputs, which are reshaped and cast where leaves have another shape or float type.
            layouts: of leaves, by position, where the inputs have their axes in another order.
            result: the layout and the type that its result is to have.

        Raises TypeMismatch where the sizes do not agree.
        """
        builder, places = GraphBuilder("part"), dict[int, int]()
        inputs: dict[str, int] = {}
        for position, key in self.leaves.items():
            name, kind = names[key], self.graph.nodes[position].type
            if name not in inputs:
                inputs[name] = builder.input(name, ops.Input(name, types[name]))
            layout = (layouts or {}).get(position) or Layout.of(len(types[name].shape))
            places[position] = convert_node(builder, layout.build(builder, inputs[name], kind.shape), kind)
        copy_nodes(builder, self.graph, self.positions, places)
        made = places[self.positions[-1]]
        if result is not None:
            layout, kind = result
            made = convert_node(builder, layout.build(builder, made, kind.shape), kind)
        builder.output("result", made)
        return builder.build()


class Cutter:
    """Cuts cones out of one program."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        depends = depends_on_inputs(graph)
        self._simple: list[bool] = []
        for position, node in enumerate(graph.nodes):
            plain = not depends[position] and _is_exact(graph, node)
            self._simple.append(plain and all(self._simple[p] for p in node.operands))

    def is_exact(self, position: int) -> bool:
        """Whether a node depends on no input and is made without rounding: a mask, or whole numbers."""
        return self._simple[position]

    def cone(self, root: int, leaf: Callable[[int], int | None], largest: int = LARGEST) -> Cone | None:
        """The nodes behind ``root`` up to those for which ``leaf`` gives a key; None where there are too many.

        Masks and numbers that depend on no input are always a part of the cone, never a leaf, but for masks whose
        elements are written out: nothing is to be known of these but that both programs have them.
        """
        found: set[int] = set()
        leaves: dict[int, int] = {}
        stack = [root]
        while stack:
            position = stack.pop()
            if position in found or position in leaves:
                continue
            node = self.graph.nodes[position]
            inside = self._simple[position] and not _is_held_mask(node)
            key = leaf(position) if position != root and not inside else None
            if key is not None:
                leaves[position] = key
                continue
            if isinstance(node.op, ops.Input | ops.Collective):
                return None
            found.add(position)
            if len(found) > largest:
                return None
            stack.extend(node.operands)
        return Cone(self.graph, tuple(sorted(found)), leaves)


def _is_exact(graph: Graph, node: Node) -> bool:
    """Whether an operator holds or moves numbers, or makes numbers that every evaluator has of those that it reads."""
    if isinstance(node.op, ops.Elementwise):
        return is_exact(node.op.function(graph.nodes[node.operands[0]].type.dtype))
    return isinstance(node.op, ops.Layout) or not (node.operands or node.op.is_met)


def _is_held_mask(node: Node) -> bool:
    return ops.is_table(node.op) and node.type.dtype is DType.BOOL
