"""Values say which sequential tensors the ranks hold, and where they part."""

import pytest

from rewright.ir.operator import Unsupported
from rewright.refine.mutants import generate, is_equivalent
from rewright.refine.twin.divergence import correspondences, first_divergence, run_all
from rewright.refine.twin.twin import Twin, make_twin
from tests.programs import ALL, Pair


def twin_of(pair: Pair) -> Twin:
    twin = make_twin(*pair)
    assert not isinstance(twin, Unsupported)
    return twin


@pytest.mark.parametrize("name", ALL)
def test_outputs_and_inputs_of_right_programs_are_held(name: str) -> None:
    twin = twin_of(ALL[name](2))
    trial = run_all(twin)
    assert trial is not None
    held = correspondences(twin, trial)
    for position in [*twin.sequential.inputs.values(), *twin.sequential.outputs.values()]:
        assert position in held
    assert len(held) > 0.7 * len(twin.sequential)


def test_placements_of_intermediate_tensors() -> None:
    """The hidden layer of the MLP is split along its width, and its product is a sum over the ranks."""
    twin = twin_of(ALL["mlp"](2))
    trial = run_all(twin)
    assert trial is not None
    held = correspondences(twin, trial)
    operators = {twin.sequential.nodes[p].op.name: str(h.placement) for p, h in held.items()}
    assert operators["tanh"] == "Shard(1)"


@pytest.mark.parametrize("name", ["mlp", "attention", "sequence_parallel_norm"])
def test_the_first_wrong_place_is_near_the_bug(name: str) -> None:
    sequential, program = ALL[name](2)
    near, all_ = 0, 0
    for mutant in generate(program):
        if mutant.kind in ("swapped_shards", "stale_shard") or is_equivalent(sequential, mutant, (0,)) is not False:
            continue
        twin = twin_of((sequential, mutant.program))
        wrong = twin.compare().wrong_outputs
        found = first_divergence(twin, wrong)
        assert found is not None
        all_ += 1
        if found.site is not None and abs(found.site[0] - mutant.positions[0]) <= 2:
            near += 1
    assert near > 0.8 * all_, (near, all_)
