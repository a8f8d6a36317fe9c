"""Execution of the programs of all ranks with numpy, in lock step in one process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from rewright import ops
from rewright.analysis.meetings import LocalNode, Meeting, Schedule, match_collectives
from rewright.interp.collectives import simulate
from rewright.interp.machine import ExecutionFailed as ExecutionFailed
from rewright.interp.machine import Floating, Machine, Settle
from rewright.interp.trial import Execution
from rewright.ir.graph import Graph
from rewright.ops.base import Array, Real


def run(graph: Graph, inputs: Mapping[str, Array], real: Real = np.float64, keep: Collection[int] = ()) -> Execution:
    """Execute one program without collectives; ``keep`` names the nodes whose values are returned.

    Raises RewrightError for a missing input, an input of the wrong shape, and what an operator cannot execute.
    """
    return run_ranks((graph,), (inputs,), real, (keep,))[0]


def run_ranks(
    graphs: Sequence[Graph],
    inputs: Sequence[Mapping[str, Array]],
    real: Real = np.float64,
    keep: Sequence[Collection[int]] | None = None,
    schedule: Schedule | None = None,
    settle: Sequence[Settle | None] | None = None,
) -> list[Execution]:
    """Execute the programs of all ranks, with collectives simulated over their groups.

    Args:
        graphs: the program of every rank.
        inputs: for every rank its tensors by input name; floats are computed in ``real``.
        keep: for every rank the positions of the nodes whose values are returned besides the outputs.
        schedule: the order from :func:`match_collectives`, where it is known already.
        settle: for every rank what becomes of values before they are read.

    Raises CollectiveMismatch where ranks do not meet, RewrightError for inputs that are missing or of the wrong
    shape and for operators that cannot be executed; the message names rank and source line.
    """
    kept = keep if keep is not None else [()] * len(graphs)
    settled = settle if settle is not None else [None] * len(graphs)
    alone = len(graphs) == 1
    machines = [
        Machine(graph, given, Floating(real), positions, None if alone else rank, own)
        for rank, (graph, given, positions, own) in enumerate(zip(graphs, inputs, kept, settled, strict=True))
    ]
    for step in match_collectives(graphs) if schedule is None else schedule:
        if isinstance(step, LocalNode):
            _compute(machines[step.rank], step.position)
        else:
            _meet(machines, step)
    return [Execution(machine.outputs(), machine.kept()) for machine in machines]


def _compute(machine: Machine, position: int) -> None:
    node = machine.graph.nodes[position]
    if isinstance(node.op, ops.Send):
        machine.hold(position)  # until the message is delivered
        machine.store(position, machine.values[node.operands[0]])
    else:
        machine.compute(position)


def _meet(machines: Sequence[Machine], meeting: Meeting) -> None:
    """Deliver a message, or compute a collective for all of its members."""
    first_rank, first_position = meeting.nodes[0]
    sender = machines[first_rank]
    if isinstance(sender.graph.nodes[first_position].op, ops.Send):
        rank, position = meeting.nodes[1]
        machines[rank].store(position, sender.values[first_position])
        sender.release(first_position)
        return
    nodes = [machines[rank].graph.nodes[position] for rank, position in meeting.nodes]
    operands = [machines[rank].values[node.operands[0]] for (rank, _), node in zip(meeting.nodes, nodes, strict=True)]
    results = simulate(nodes, [rank for rank, _ in meeting.nodes], operands)
    for (rank, position), value in zip(meeting.nodes, results, strict=True):
        machines[rank].store(position, value)
