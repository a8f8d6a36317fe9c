"""Lifted values against execution: every node of a program, of one device or of all ranks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rewright.interp.placing import cut
from rewright.interp.program import run_nodes
from rewright.interp.ranks import run_ranks
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.lifting.programs import Lifted, Lifter
from rewright.lifting.terms.forms import USUAL, Forms
from rewright.refine.relations.inputs import input_values
from tests.lifting.evaluate import Meaning

Arrays = Mapping[str, NDArray[np.generic]]


def differences(
    lifter: Lifter, lifted: Lifted, meaning: Meaning, values: Mapping[int, NDArray[np.generic]]
) -> list[str]:
    """The nodes at which what was lifted is not what was executed; elements that are no number do not count."""
    found: list[str] = []
    for position, wanted in values.items():
        node = lifted.graph.nodes[position]
        number = lifted.values[position]
        got = meaning.value(lifter.values[number])
        exact = np.asarray(wanted, np.float64)
        if got.shape != exact.shape:
            found.append(f"%{position} {node.op}{node.operands}: shape {got.shape}, executed {exact.shape}")
            continue
        usual = np.abs(exact[np.isfinite(exact)]).max(initial=1.0)
        with np.errstate(all="ignore"):
            same = np.isnan(exact) | (got == exact) | (np.abs(got - exact) <= 1e-9 * usual)
        if not same.all():
            where = tuple(int(i) for i in np.argwhere(~same)[0])
            found.append(f"%{position} {node.op}{node.operands} at {where}: {got[where]}, executed {exact[where]}")
    return found


def sequential_differences(graph: Graph, inputs: Arrays, forms: Forms = USUAL) -> list[str]:
    """Where the lifted program of one device differs from its execution."""
    lifter = Lifter(forms=forms)
    lifted = lifter.sequential(graph)
    values = run_nodes(graph, inputs)
    return differences(lifter, lifted, Meaning(lifter.algebra.terms, inputs), values)


def rank_differences(sequential: Graph, program: RankProgram, inputs: Arrays, forms: Forms = USUAL) -> list[str]:
    """Where the lifted programs of the ranks differ from their execution, on one set of global inputs."""
    lifter = Lifter(forms=forms)
    known = input_values(lifter, sequential, program, program.inputs, ())
    lifter.sequential(sequential, known.sequential)
    lifted = lifter.ranks(program.graphs, known.ranks)
    local = [
        {name: cut(np.asarray(inputs[name]), program.inputs[name].runs[rank]) for name in graph.inputs}
        for rank, graph in enumerate(program.graphs)
    ]
    executions = run_ranks(program.graphs, local, keep=[range(len(graph)) for graph in program.graphs])
    meaning = Meaning(lifter.algebra.terms, inputs)
    found: list[str] = []
    for rank, execution in enumerate(executions):
        found += [f"rank {rank}: {text}" for text in differences(lifter, lifted[rank], meaning, execution.values)]
    return found
