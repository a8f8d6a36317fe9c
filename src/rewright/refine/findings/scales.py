"""Gradients that are all wrong by one number: the loss that they are of has another scale than on one device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from rewright import ops
from rewright.blame.editing import Editor
from rewright.blame.factors import describe_factor
from rewright.blame.repairs import Repair
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine.case import Case, Ran
from rewright.refine.proof import Proof
from rewright.refine.twin.twin import TwinResult
from rewright.refine.verdict import Where

GRADIENT = "grad:"
_OTHER_SEED = 1
_LARGEST = 1 << 10
"""Numbers with a larger denominator are no scale that somebody wrote."""


def common_scale(case: Case, proof: Proof, ran: Ran) -> Fraction | None:
    """The number by which every gradient is wrong, where all else that the ranks return is right.

    It is the same on other inputs: the quotient of two factors of clipping is a number too, and no scale of a loss.
    """
    returned = {name for graph in case.program.graphs for name in graph.outputs}
    wrong = [name for name in ran.wrong_of(proof.failed) if name in returned]
    gradients = {name for name in case.sequential.outputs if name.startswith(GRADIENT)}
    factor = _factor(ran.result, wrong)
    if not factor or not gradients or set(wrong) != gradients & returned or ran.twin is None:
        return None
    again = ran.twin.compare(_OTHER_SEED, ran.expected_outputs(case), 1, wrong)
    exact = Fraction(factor).limit_denominator(_LARGEST)
    is_exact = abs(float(exact) - factor) <= 1e-5 * abs(factor)
    return exact if is_exact and _factor(again, wrong) == factor else None


def _factor(result: TwinResult, names: Sequence[str]) -> float | None:
    """The number by which all of some outputs are wrong."""
    found = {result.factors.get(name) for name in names}
    return next(iter(found)) if len(found) == 1 else None


def loss_places(case: Case) -> Where | None:
    """The nodes of both programs that compute the loss: what the first backward node is the derivative of."""
    alone = _loss_of(case.sequential)
    found = [(rank, _loss_of(graph)) for rank, graph in enumerate(case.program.graphs)]
    places = [(rank, place) for rank, place in found if place is not None]
    # A rank of a pipeline that has no loss begins its backward pass with the gradient of another tensor.
    single = [(rank, place) for rank, place in places if case.program.graphs[rank].nodes[place].type.rank == 0]
    for rank, place in single[:1] or places[:1]:
        return Where(alone, rank, place)
    return None


def _loss_of(graph: Graph) -> int | None:
    first = next((p for p, node in enumerate(graph.nodes) if node.span.backward), None)
    if first is None:
        return None
    span = replace(graph.nodes[first].span, backward=False)
    forward = (p for p in range(first - 1, -1, -1) if graph.nodes[p].span == span)
    return next(forward, first)


def scale_message(case: Case, factor: Fraction, where: Where, outputs: Sequence[str]) -> str:
    """What is wrong, in one sentence."""
    assert where.distributed is not None
    span = case.program.graphs[where.rank].nodes[where.distributed].span.forward
    many = f"all {len(outputs)} gradients are" if len(outputs) > 1 else f"{outputs[0]} is"
    wrong = describe_factor(float(factor), case.program.mesh)
    return f"{many} {wrong}: the loss at {span}, or the average of its gradients, has another scale than on one device"


def rescale_loss(program: RankProgram, factor: Fraction, where: Where, outputs: Sequence[str]) -> Iterator[Repair]:
    """The loss divided by the factor before it is differentiated, which is every gradient divided by it."""
    assert where.distributed is not None
    span = program.graphs[where.rank].nodes[where.distributed].span.forward
    if factor.numerator == 1:
        text = f"multiply the loss at {span} by {factor.denominator} before backward()"
    elif factor == -1:
        text = f"change the sign of the loss at {span} before backward()"
    else:
        by = str(factor) if factor.denominator == 1 else f"({factor})"
        text = f"divide the loss at {span} by {by} before backward()"
    graphs = tuple(_scaled(graph, factor, outputs) for graph in program.graphs)
    yield Repair(text, replace(program, graphs=graphs))


def _scaled(graph: Graph, factor: Fraction, outputs: Sequence[str]) -> Graph:
    nodes, places = list(graph.nodes), dict(graph.outputs)
    for name in outputs:
        if name not in places:
            continue
        node = graph.nodes[places[name]]
        editor = Editor(nodes, node.span, 0)
        for number, op in ((factor.denominator, ops.Multiply()), (factor.numerator, ops.Divide())):
            if number != 1:
                constant = editor.add(ops.Constant(node.type, (float(number),)))
                places[name] = editor.add(op, places[name], constant)
    return replace(graph, nodes=tuple(nodes), outputs=places)
