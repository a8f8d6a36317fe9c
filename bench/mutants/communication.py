"""Bugs in communication: collectives dropped, doubled, of another kind, over another group, at another place."""

from __future__ import annotations

from collections.abc import Iterator

from bench.mutants.model import Bug, Place
from rewright import ops
from rewright.analysis.moving import LAYING_OUT
from rewright.blame.editing import Editor, Replacement, only_operand, with_attributes
from rewright.ir.dims import Dim, divide
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Node
from rewright.ir.placement import Mesh
from rewright.ops.collectives import Groups

OTHER_KIND = {"sum": "maximum", "maximum": "sum", "minimum": "maximum", "product": "sum", "and": "or", "or": "and"}


def dropped(place: Place) -> Iterator[Bug]:
    """A collective that is not called: every rank goes on with what it has."""
    op = place.node.op
    is_message = isinstance(op, ops.Send | ops.Recv)
    if isinstance(op, ops.Collective) and not is_message and place.operand(0).type == place.node.type:
        kind = "missing_gradient_reduction" if defines_gradient(place) else "dropped_collective"
        yield kind, f"{op.name} dropped", only_operand(0)
    elif isinstance(op, ops.ReduceScatter):
        yield "dropped_collective", "reduce_scatter replaced by a slice of the addend", _own_chunk
    elif isinstance(op, ops.AllGather):
        yield "stale_shard", "all_gather replaced by copies of the own shard", _copies


def doubled(place: Place) -> Iterator[Bug]:
    """An all_reduce that is called twice."""
    if isinstance(place.node.op, ops.AllReduce):
        yield "doubled_collective", "all_reduce called twice", _twice


def wrong_kind(place: Place) -> Iterator[Bug]:
    """A reduction of another kind."""
    op = place.node.op
    if isinstance(op, ops.Collective) and isinstance(op, ops.Combining):
        other = OTHER_KIND[op.kind]
        yield "wrong_reduction", f"{op.name} of kind {op.kind} made {other}", with_attributes(kind=other)


def wrong_group(place: Place) -> Iterator[Bug]:
    """The same collective over other ranks, or over the same ranks in another order."""
    op = place.node.op
    if isinstance(op, ops.AllReduce):
        for text, groups in other_groups(op.groups, place.program.mesh, place.rank):
            yield "wrong_group", f"all_reduce over {text}", with_attributes(groups=groups)
    elif isinstance(op, ops.GroupCollective) and not isinstance(op, ops.CollectiveBroadcast) and len(op.groups[0]) > 1:
        yield "wrong_group", f"{op.name} with the ranks of its group rotated", _rotated


def other_groups(groups: Groups, mesh: Mesh, rank: int) -> Iterator[tuple[str, Groups]]:
    """Groups that a programmer may confuse with these: of another mesh axis, or halves."""
    own = next(set(group) for group in groups if rank in group)
    for name, _ in mesh.axes:
        along = tuple(dict.fromkeys(mesh.group(other, (name,)) for other in range(mesh.size)))
        if own != set(mesh.group(rank, (name,))) and len(along[0]) > 1:
            yield f"mesh axis {name}", along
    size = len(groups[0])
    if size > 2 and size % 2 == 0:
        yield "half of its group", tuple(half for g in groups for half in (g[: size // 2], g[size // 2 :]))


def bias_before_reduction(place: Place) -> Iterator[Bug]:
    """A parameter that is added before the all_reduce instead of after it, so that every rank adds it."""
    if not isinstance(place.node.op, ops.Add):
        return
    for index in (0, 1):
        reduced = place.operand(index)
        if isinstance(reduced.op, ops.AllReduce) and reduced.op.kind == "sum" and _is_parameter(place, 1 - index):
            yield "bias_before_reduction", "parameter added before the all_reduce", _add_then_reduce(index)


def wrong_exchange(place: Place) -> Iterator[Bug]:
    """Messages in the opposite direction, and exchanges along swapped axes."""
    op = place.node.op
    if isinstance(op, ops.CollectivePermute):
        pairs = tuple((target, source) for source, target in op.pairs)
        if set(pairs) != set(op.pairs):
            yield "wrong_exchange", "collective_permute in the opposite direction", with_attributes(pairs=pairs)
    if isinstance(op, ops.AllToAll) and op.send_splits is None:
        if op.split_dimension != op.concat_dimension:
            swapped = with_attributes(split_dimension=op.concat_dimension, concat_dimension=op.split_dimension)
            yield "wrong_exchange", "all_to_all with its axes swapped", swapped
        else:
            yield "wrong_exchange", "chunks of an all_to_all received in the opposite order", _reversed_chunks


def defines_gradient(place: Place) -> bool:
    """Whether the result reaches a gradient output through nothing but scaling and layout."""
    graph, position = place.graph, place.site[place.rank]
    gradients = {p for name, p in graph.outputs.items() if name.startswith("grad:")}
    for _ in range(8):
        if position in gradients:
            return True
        readers = place.users[place.rank][position]
        if len(readers) != 1:
            return False
        position = readers[0]
        if not isinstance(graph.nodes[position].op, (*LAYING_OUT, ops.Multiply, ops.Divide)):
            return False
    return False


def _is_parameter(place: Place, index: int) -> bool:
    return isinstance(place.source(index).op, ops.Input)


def _twice(editor: Editor, node: Node) -> int:
    return editor.add(node.op, editor.add(node.op, *node.operands))


def _own_chunk(editor: Editor, node: Node) -> int:
    op, shape = node.op, editor.type(node.operands[0]).shape
    assert isinstance(op, ops.ReduceScatter)
    group = next(group for group in op.groups if editor.rank in group)
    start: list[Dim] = [0] * len(shape)
    limit: list[Dim] = list(shape)
    size = node.type.shape[op.dimension]
    start[op.dimension] = size * group.index(editor.rank)
    limit[op.dimension] = start[op.dimension] + size
    return editor.add(ops.Slice(tuple(start), tuple(limit), (1,) * len(shape)), node.operands[0])


def _copies(editor: Editor, node: Node) -> int:
    assert isinstance(node.op, ops.AllGather)
    return editor.add(ops.Concatenate(node.op.dimension), *node.operands * len(node.op.groups[0]))


def _rotated(editor: Editor, node: Node) -> int:
    op = node.op
    assert isinstance(op, ops.GroupCollective)
    rotated = tuple((*group[1:], group[0]) for group in op.groups)
    return with_attributes(groups=rotated)(editor, node)


def _reversed_chunks(editor: Editor, node: Node) -> int:
    assert isinstance(node.op, ops.AllToAll)
    axis, shape = node.op.concat_dimension, node.type.shape
    count = len(node.op.groups[0])
    received = editor.add(node.op, *node.operands)
    size = divide(shape[axis], count)
    if size is None:
        raise TypeMismatch(f"{shape[axis]} elements are no {count} equal chunks")
    starts = [size * number for number in range(count)]
    strides = (1,) * len(shape)

    def chunk(start: Dim) -> int:
        low = (*(0 for _ in shape[:axis]), start, *(0 for _ in shape[axis + 1 :]))
        return editor.add(ops.Slice(low, (*shape[:axis], start + size, *shape[axis + 1 :]), strides), received)

    return editor.add(ops.Concatenate(axis), *(chunk(start) for start in starts[::-1]))


def _add_then_reduce(index: int) -> Replacement:
    def build(editor: Editor, node: Node) -> int:
        reduced = editor.nodes[node.operands[index]]
        total = editor.add(ops.Add(), reduced.operands[0], node.operands[1 - index])
        return editor.add(reduced.op, total)

    return build


FAMILIES = (dropped, doubled, wrong_kind, wrong_group, bias_before_reduction, wrong_exchange)
