"""Suggested repairs undo the injected bugs."""

from collections.abc import Collection, Iterator
from functools import partial

import pytest

from bench.mutants import generate, is_equivalent
from rewright import ops
from rewright.blame import repairs
from rewright.blame.editing import Site
from rewright.blame.repairs import Repair, candidates
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ops.agreement import CollectiveMismatch
from rewright.refine.twin.twin import make_twin
from tests.programs import ALL, Builder, cross_entropy, mlp, sequence_parallel_norm


def confirmed(
    sequential: Graph, program: RankProgram, site: Site, outputs: Collection[str] | None = None
) -> Iterator[Repair]:
    """The repairs near a place with which some outputs, or all, agree on numbers."""

    def agrees(other: RankProgram) -> bool:
        try:
            twin = make_twin(sequential, other)
        except CollectiveMismatch:
            return False
        return not isinstance(twin, Unsupported) and twin.compare(outputs=outputs).agrees is True

    try:
        twin = make_twin(sequential, program)
    except CollectiveMismatch:
        return repairs.confirm_repairs(program, program, site, agrees)
    assert not isinstance(twin, Unsupported)
    names = sequential.outputs if outputs is None else outputs
    return repairs.confirm_repairs(
        program, twin.program, site, partial(twin.agrees_with, expect=program.outputs, outputs=names)
    )


REPAIRED = [
    "bias_before_reduction",
    "doubled_collective",
    "dropped_collective",
    "missing_gradient_reduction",
    "reversed_operands",
    "shifted_bound",
    "wrong_group",
]
"""Kinds whose inverse is among the candidates."""


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", REPAIRED)
def test_the_bug_is_undone(name: str, kind: str) -> None:
    sequential, program = ALL[name](2)
    for mutant in generate(program, per_kind=4):
        if mutant.kind == kind and is_equivalent(sequential, mutant, seeds=(0,)) is False:
            assert next(confirmed(sequential, mutant.program, mutant.positions), None), mutant.description


@pytest.mark.parametrize(
    ("build", "kind", "text"),
    [
        (mlp, "dropped_collective", "insert all_reduce over tp after parallel.py:10"),
        (mlp, "doubled_collective", "remove the all_reduce at parallel.py:11"),
        (
            mlp,
            "bias_before_reduction",
            "add the second term of parallel.py:13 after the all_reduce at parallel.py:13",
        ),
        (cross_entropy, "dropped_collective", "insert all_reduce(maximum) over tp after parallel.py:5"),
        (sequence_parallel_norm, "wrong_scale", "divide by 2, the size of tp, after parallel.py:7"),
    ],
)
def test_the_text_says_what_to_do_and_where(build, kind: str, text: str) -> None:
    sequential, program = build(2)
    mutant = next(mutant for mutant in generate(program) if mutant.kind == kind)
    repair = next(confirmed(sequential, mutant.program, mutant.positions))
    assert repair.text.replace("multiply", "divide") == text


def test_candidates_are_distinct_programs() -> None:
    _, program = mlp(2)
    position = program.graphs[0].outputs["output"]
    found = list(candidates(program, {0: position, 1: position}))
    assert len(found) >= 10
    assert all(repair.program != program for repair in found)
    assert len({repair.text for repair in found}) > len(found) // 2


def test_nothing_is_confirmed_where_no_candidate_helps() -> None:
    sequential, program = mlp(2)
    mutant = next(m for m in generate(program) if m.kind == "dropped_residual")
    assert list(confirmed(sequential, mutant.program, mutant.positions)) == []


def test_programs_of_full_size_are_repaired_small() -> None:
    sequential, program = mlp(4, batch=8192, hidden=4096, inner=14336)
    mutant = next(m for m in generate(program) if m.kind == "dropped_collective")
    repair = next(confirmed(sequential, mutant.program, mutant.positions))
    assert repair.text == "insert all_reduce over tp after parallel.py:10"
    assert repair.program.graphs[0].nodes[mutant.positions[0] + 1].type.shape == (8192, 4096)


def test_only_some_outputs_have_to_agree() -> None:
    """A second bug elsewhere does not hide the repair of the first."""
    sequential, program = sequence_parallel_norm(2)
    second = next(m for m in generate(program) if m.kind == "missing_gradient_reduction").program
    mutant = next(m for m in generate(second) if m.description == "reduce_scatter of kind sum made maximum")
    assert list(confirmed(sequential, mutant.program, mutant.positions)) == []
    repair = next(confirmed(sequential, mutant.program, mutant.positions, outputs=["output"]))
    assert repair.text.endswith("a sum instead of a maximum")


def test_a_broadcast_too_many_has_one_repair() -> None:
    """Ranks of other groups would have nobody who sends."""
    mesh = Mesh((("a", 2), ("b", 2)))

    def program(broadcasts: bool) -> Graph:
        build = Builder("program")
        y = build.add(ops.Exponential(), build.tensor("x", (4,)))
        build.output("y", build.add(ops.CollectiveBroadcast(0, ((0, 1, 2, 3),)), y) if broadcasts else y)
        return build.build()

    halves = {name: place((8,), mesh, ("Shard(0)", "Replicate()")) for name in "xy"}
    ranks = RankProgram((program(True),) * 4, mesh, {"x": halves["x"]}, {"y": halves["y"]})
    build = Builder("sequential")
    build.output("y", build.add(ops.Exponential(), build.tensor("x", (8,))))
    found = list(confirmed(build.build(), ranks, dict.fromkeys(range(4), 2)))
    assert [repair.text.partition(" at ")[0] for repair in found] == ["remove the collective_broadcast"]
