"""Proofs that say nothing: of ranks that share no work, and of outputs that nothing reaches.

A plan that was never applied leaves every rank with the whole model, and that *is* the model. Such a proof is right and
worthless, so that it has a status of its own, ``vacuous``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, cast

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator
from rewright.ir.placement import Placement, RankProgram
from rewright.refine.relations.given import Given
from rewright.refine.verdict import Verdict

_LOSS, _GRADIENT = "loss", "grad:"


def judge_content(
    verdict: Verdict, sequential: Graph, program: RankProgram, given: Given | None, *, collectives: bool = False
) -> Verdict:
    """A proof, as ``vacuous`` where it says nothing of a plan.

    Args:
        verdict: any; only a proof is looked at.
        given: the relations of inputs that somebody stated; where these cover all inputs, ranks that each hold all are
            what is meant.
        collectives: whether a proof about ranks of which none calls a collective says nothing, whatever they hold.
    """
    if verdict.status != "proved":
        return verdict
    why = next(_reasons(verdict, sequential, program, given, collectives=collectives), "")
    return replace(verdict, status="vacuous", reason=why) if why else verdict


def _reasons(
    verdict: Verdict, sequential: Graph, program: RankProgram, given: Given | None, *, collectives: bool
) -> Iterator[str]:
    held = program.inputs if verdict.programs is None else verdict.programs[1].inputs
    many = program.mesh.size > 1
    if collectives and many and not any(_collectives(graph) for graph in program.graphs):
        yield f"none of the {program.mesh.size} ranks calls a collective, and --require-collectives asks for one"
    if many and not _covers(given, sequential):
        idle = [name for name, size in program.mesh.axes if size > 1 and not _is_used(name, program, held)]
        if len(idle) == sum(size > 1 for _, size in program.mesh.axes):
            yield (
                f"nothing is distributed over {program.mesh.size} ranks: none calls a collective, and each holds every "
                "tensor whole, as one device does; apply the plan, or state under [relations] that it is meant"
            )
        elif idle:
            yield (
                f"nothing is distributed over {' and '.join(idle)}: ranks along it exchange nothing, and hold and "
                "compute the same; apply the plan, or state under [relations] that it is meant"
            )
    yield from _of_constants(sequential)


def _of_constants(graph: Graph) -> Iterator[str]:
    """That the loss, all gradients or all outputs are constants; some others, such as a table of cosines, may be."""
    reached = _reached(graph)
    dead = [name for name, position in graph.outputs.items() if position not in reached]
    if len(dead) == len(graph.outputs):
        yield "no output depends on an input: both programs return constants"
    elif _LOSS in dead:
        yield "the loss depends on no input: both programs return a constant"
    gradients = [position for name, position in graph.outputs.items() if name.startswith(_GRADIENT)]
    if gradients and all(ops.splat(graph.nodes[position].op) == 0 for position in gradients):
        yield "all gradients are zero: the loss does not depend on the parameters"


def _covers(given: Given | None, sequential: Graph) -> bool:
    """Whether somebody said of every input how the ranks hold it."""
    return bool(given) and all(any(fnmatchcase(name, p) for p in given or ()) for name in sequential.inputs)


def _is_used(axis: str, program: RankProgram, held: Mapping[str, Placement]) -> bool:
    """Whether ranks along a mesh axis hold or compute different things, or exchange something."""
    mesh = program.mesh
    if any(set(graph.inputs) - set(held) for graph in program.graphs):
        return True  # equations say what ranks hold
    lines = {tuple(mesh.group(rank, (axis,))) for rank in range(mesh.size)}
    for placement in held.values():
        if axis in placement.partial or any(
            placement.runs[a] != placement.runs[line[0]] for line in lines for a in line
        ):
            return True
    place = [name for name, _ in mesh.axes].index(axis)
    for rank, graph in enumerate(program.graphs):
        for group in (group for op in _collectives(graph) for group in _meeting(op, rank)):
            if len({mesh.coordinates(member)[place] for member in group}) > 1:
                return True
    return any(_differ(program.graphs[line[0]], program.graphs[rank]) for line in lines for rank in line[1:])


def _collectives(graph: Graph) -> list[ops.Collective]:
    return [node.op for node in graph.nodes if isinstance(node.op, ops.Collective)]


def _meeting(op: ops.Collective, rank: int) -> Sequence[tuple[int, ...]]:
    """The groups of ranks that exchange something in a collective, or by a message of a rank."""
    match op:
        case ops.GroupCollective():
            return op.groups
        case ops.CollectivePermute():
            return op.pairs
        case ops.Send():
            return ((rank, op.destination),)
        case ops.Recv():
            return ((rank, op.source),)
        case _:
            raise AssertionError(f"{op.name} meets nobody that is known")


def _differ(one: Graph, other: Graph) -> bool:
    if one is other:
        return False
    pairs = zip(one.nodes, other.nodes, strict=True) if len(one) == len(other) else ()
    return not pairs or any(_kind(a.op) != _kind(b.op) or a.operands != b.operands for a, b in pairs)


def _kind(op: Operator) -> Operator:
    """An operator without the ranks that it meets, which are others for each rank."""
    match op:
        case ops.GroupCollective():
            return replace(cast(Any, op), groups=())
        case ops.Send():
            return replace(op, destination=0)
        case ops.Recv():
            return replace(op, source=0)
        case _:
            return op


def _reached(graph: Graph) -> set[int]:
    """The nodes that depend on an input."""
    found: set[int] = set()
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Input) or not found.isdisjoint(node.operands):
            found.add(position)
    return found
