"""Parts of rank tensors that the sequential program has nothing of: rows by which a vocabulary is padded, say.

They may hold anything. So they are inputs of their own, which the sequential program does not read, and what becomes of
them, such as their gradient, is no output.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import RankProgram
from rewright.ir.types import TensorType
from rewright.proof.certificate import Block

_BECOMES = ("grad:", "updated:")


@dataclass(frozen=True)
class Padding:
    """A box of a tensor of one rank, by start and stop of every axis."""

    rank: int
    held: str
    box: tuple[tuple[int, int], ...]

    @property
    def name(self) -> str:
        """The input of the sequential program that it is."""
        return f"{self.held}@{self.rank}[{', '.join(f'{start}:{stop}' for start, stop in self.box)}]"


def told_of(padding: Iterable[Padding]) -> tuple[str, ...]:
    """What a proof says of such parts."""
    return tuple(f"{one.name} may hold anything, and nothing is said of what becomes of it" for one in padding)


def padding_of(blocks: Iterable[Block], sequential: Graph) -> list[Padding]:
    """The blocks of a certificate that are about no tensor of the sequential program, and are called so."""
    found = {b.name: Padding(b.rank, b.held, tuple((start, start + n) for start, n in b.box)) for b in blocks}
    return [one for name, one in found.items() if name not in sequential.inputs and name == one.name]


def with_padding(sequential: Graph, program: RankProgram, padding: Sequence[Padding]) -> tuple[Graph, RankProgram]:
    """Both programs where these parts are inputs of their own, and no outputs."""
    graphs = list(program.graphs)
    nodes, inputs = list(sequential.nodes), dict(sequential.inputs)
    for one in padding:
        graph = graphs[one.rank]
        dtype = graph.nodes[graph.inputs[one.held]].type.dtype
        kind = TensorType(tuple(stop - start for start, stop in one.box), dtype)
        inputs[one.name] = len(nodes)
        nodes.append(Node(ops.Input(one.name, kind), (), kind))
        graphs[one.rank] = _without(graph, one)
    whole = replace(sequential, nodes=tuple(nodes), inputs=inputs) if padding else sequential
    return whole, replace(program, graphs=tuple(graphs)) if padding else program


def _without(graph: Graph, padding: Padding) -> Graph:
    """The program with the rest alone of what becomes of a tensor, where that is one box too."""
    shape = graph.nodes[graph.inputs[padding.held]].type.shape
    rest = _rest(shape, padding.box)
    names = [f"{prefix}{padding.held}" for prefix in _BECOMES]
    nodes, outputs = list(graph.nodes), dict(graph.outputs)
    for name in names if rest is not None else ():
        if name in outputs and graph.nodes[outputs[name]].type.shape == shape:
            assert rest is not None
            starts, stops = zip(*rest, strict=True)
            op = ops.Slice(starts, stops, (1,) * len(rest))
            held = nodes[outputs[name]]
            outputs[name] = len(nodes)
            kind = TensorType(tuple(stop - start for start, stop in rest), held.type.dtype)
            nodes.append(Node(op, (graph.outputs[name],), kind, held.span))
    return replace(graph, nodes=tuple(nodes), outputs=outputs)


def _rest(shape: Sequence[object], box: Sequence[tuple[int, int]]) -> list[tuple[int, int]] | None:
    """What is left of a tensor without a box at one end of one axis; None for other boxes."""
    cut = [axis for axis, size in enumerate(shape) if box[axis] != (0, size)]
    if len(cut) != 1 or not all(isinstance(size, int) for size in shape):
        return None
    (axis,) = cut
    rest = [(0, int(str(size))) for size in shape]
    start, stop = box[axis]
    if start and stop != shape[axis]:
        return None
    rest[axis] = (0, start) if start else (stop, rest[axis][1])
    return rest
