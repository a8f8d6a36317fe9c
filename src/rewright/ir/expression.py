"""One output of a small graph as an expression over its inputs, for a person to read.

    divide(a, broadcast[3, 5](sum[1](a))) with a = exponential(subtract(x, broadcast[3, 5](maximum[1](x))))

What is read several times has a name. The text form of a graph (:mod:`rewright.ir.text`) says all; this leaves out
the types, and the dimensions of a broadcast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from string import ascii_lowercase

from rewright.ir.attributes import attributes
from rewright.ir.graph import Graph, Node
from rewright.ir.printing import print_value

_CONSTANT, _INPUT, _BROADCAST, _REDUCE, _SLICE = "constant", "input", "broadcast_in_dim", "reduce", "slice"


def expression(graph: Graph, output: str, most: int = 40) -> str:
    """The expression of an output; a number of operators instead where it has more than ``most``."""
    writer = _Writer(graph, graph.outputs[output])
    if writer.operators > most:
        return f"{writer.operators} operators of {', '.join(graph.inputs)}"
    return writer.text()


class _Writer:
    def __init__(self, graph: Graph, root: int) -> None:
        self._graph, self._root = graph, root
        live = sorted(graph.ancestors([root]))
        self.operators = sum(not self._is_leaf(graph.nodes[p]) for p in live)
        readers = Counter(operand for p in live for operand in graph.nodes[p].operands)
        taken, fresh = set(graph.inputs), _names()
        self._names = {position: name for name, position in graph.inputs.items()}
        self._shared: list[int] = []
        for position in live:
            if readers[position] > 1 and not self._is_leaf(graph.nodes[position]) and position not in self._names:
                self._names[position] = next(name for name in fresh if name not in taken)
                self._shared.append(position)

    def text(self) -> str:
        whole = self._write(self._root)
        shared = [f"{self._names[p]} = {self._write(p)}" for p in reversed(self._shared)]
        return f"{whole} with {', '.join(shared)}" if shared else whole

    def _is_leaf(self, node: Node) -> bool:
        """Whether a node is an input, or a number."""
        if node.op.name == _BROADCAST:
            return self._graph.nodes[node.operands[0]].op.name == _CONSTANT
        return node.op.name in (_INPUT, _CONSTANT)

    def _read(self, position: int) -> str:
        return self._names.get(position) or self._write(position)

    def _write(self, position: int) -> str:
        node = self._graph.nodes[position]
        if node.op.name == _INPUT:
            return self._names[position]
        given = attributes(node.op)
        if node.op.name == _CONSTANT:
            values: tuple[object, ...] = given["values"]
            return print_value(values[0]) if len(values) == 1 else f"constant[{node.type.shape}]"
        if self._is_leaf(node):
            return self._read(node.operands[0])
        if node.op.name == _SLICE:
            return f"{self._read(node.operands[0])}[{self._ranges(node)}]"
        operands = ", ".join(map(self._read, node.operands))
        return f"{_title(node)}({operands})"

    def _ranges(self, node: Node) -> str:
        """The parts of a slice as in Python."""
        given, shape = attributes(node.op), self._graph.nodes[node.operands[0]].type.shape
        parts: list[str] = []
        bounds = zip(given["start"], given["limit"], given["stride"], shape, strict=True)
        for start, limit, step, size in bounds:
            whole = f"{'' if start == 0 else start}:{'' if limit == size else limit}"
            parts.append(whole if step == 1 else f"{whole}:{step}")
        return ", ".join(parts)


def _title(node: Node) -> str:
    """The operator with the values of its attributes, in their order."""
    given = attributes(node.op)
    if node.op.name == _REDUCE:
        return f"{given['kind']}{print_value(given['dimensions'])}"
    if node.op.name == _BROADCAST:
        return f"broadcast{print_value(node.type.shape)}"
    values = [print_value(value) for value in given.values()]
    if not values:
        return node.op.name
    inner = ", ".join(values)
    return f"{node.op.name}{inner if len(values) == 1 and inner.startswith('[') else f'[{inner}]'}"


def _names() -> Iterator[str]:
    yield from ascii_lowercase
    yield from (f"{letter}{number}" for number in count(1) for letter in ascii_lowercase)
