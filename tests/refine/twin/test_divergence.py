"""Values say which sequential tensors the ranks hold, and where they part."""

import pytest

from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.refine.mutants import generate, is_equivalent
from rewright.refine.twin.divergence import correspondences, first_divergence, run_all
from rewright.refine.twin.twin import Trial, Twin, make_twin
from tests.programs import ALL, Pair


def twin_of(pair: Pair) -> Twin:
    twin = make_twin(*pair)
    assert not isinstance(twin, Unsupported)
    return twin


@pytest.mark.parametrize("name", ALL)
def test_outputs_and_inputs_of_right_programs_are_held(name: str) -> None:
    twin = twin_of(ALL[name](2))
    trial = run_all(twin)
    assert isinstance(trial, Trial)
    held = correspondences(twin, trial)
    for position in [*twin.sequential.inputs.values(), *twin.sequential.outputs.values()]:
        assert position in held
    assert len(held) > 0.7 * len(twin.sequential)


def test_placements_of_intermediate_tensors() -> None:
    """The hidden layer of the MLP is split along its width, and its product is a sum over the ranks."""
    twin = twin_of(ALL["mlp"](2))
    trial = run_all(twin)
    assert isinstance(trial, Trial)
    held = correspondences(twin, trial)
    operators = {twin.sequential.nodes[p].op.name: str(h.placement) for p, h in held.items()}
    assert operators["tanh"] == "Shard(1)"


def steps(graph: Graph, start: int, end: int) -> int:
    """Operators between two nodes."""
    users = graph.users()
    found, distance = {start}, 0
    while end not in found and distance < 9:
        found |= {near for position in found for near in (*graph.nodes[position].operands, *users[position])}
        distance += 1
    return distance


@pytest.mark.parametrize("name", ["mlp", "attention", "sequence_parallel_norm"])
def test_the_first_wrong_place_is_near_the_bug(name: str) -> None:
    sequential, program = ALL[name](2)
    near, all_ = 0, 0
    for mutant in generate(program):
        if is_equivalent(sequential, mutant, (0,)) is not False:
            continue
        twin = twin_of((sequential, mutant.program))
        wrong = twin.compare().wrong_outputs
        found = first_divergence(twin, wrong)
        assert found is not None
        all_ += 1
        rank = min(mutant.positions)
        graph = mutant.program.graphs[rank]
        # A node that is left out was between its operands and its readers; operands keep their positions.
        injected = [mutant.positions[rank], *program.graphs[rank].nodes[mutant.original[rank]].operands]
        places = [place[rank] for place in (found.site, found.end) if place is not None]
        near += min((steps(graph, place, bug) for place in places for bug in injected), default=9) <= 2
    assert near > 0.85 * all_, (near, all_)
