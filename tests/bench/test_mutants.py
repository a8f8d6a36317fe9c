"""Injected bugs: enough of them, the same every time, well typed, and mostly wrong."""

from collections import Counter

import pytest

from bench.mutants import Mutant, generate, is_equivalent
from bench.mutants.generating import KINDS
from rewright.analysis.meetings import match_collectives
from rewright.ir.graph import validate
from tests.programs import ALL, cross_entropy, mlp, vocabulary_embedding


def described(mutants: list[Mutant]) -> list[tuple[str, str, str]]:
    return [(mutant.kind, mutant.description, str(mutant.site)) for mutant in mutants]


@pytest.mark.parametrize("name", ALL)
def test_mutants_are_valid_programs_that_differ_from_the_original(name: str) -> None:
    _, program = ALL[name](4)
    for mutant in generate(program):
        assert mutant.kind in KINDS
        assert mutant.program != program
        match_collectives(mutant.program.graphs)
        for graph in mutant.program.graphs:
            validate(graph)
        for rank, position in mutant.positions.items():
            assert 0 <= position < len(mutant.program.graphs[rank])


def test_the_same_seed_gives_the_same_sample() -> None:
    _, program = cross_entropy(2)
    first, second = (described(list(generate(program, seed=5, per_kind=2))) for _ in range(2))
    assert first == second
    assert first != described(list(generate(program, seed=6, per_kind=2)))
    assert max(Counter(kind for kind, _, _ in first).values()) == 2


def test_every_kind_that_the_programs_allow_occurs() -> None:
    found = {mutant.kind for build in ALL.values() for mutant in generate(build(4)[1])}
    assert found == set(KINDS) - {"dropped_gradient_term", "shifted_positions", "shifted_slice", "wrong_exchange"}


@pytest.mark.parametrize("name", ALL)
def test_almost_all_mutants_are_wrong(name: str) -> None:
    sequential, program = ALL[name](2)
    outcomes = Counter(is_equivalent(sequential, mutant, seeds=(0,)) for mutant in generate(program))
    assert outcomes[None] == 0
    assert outcomes[False] > 5 * outcomes[True]


def test_off_by_one_vocabulary_bounds_are_caught_although_tokens_are_few() -> None:
    """The last rank's upper bound may be too large: no token lies behind it."""
    sequential, program = vocabulary_embedding(2, tokens=4, vocabulary=4000)
    bounds = [mutant for mutant in generate(program) if mutant.kind == "shifted_bound"]
    equivalent = [mutant for mutant in bounds if is_equivalent(sequential, mutant, seeds=(0,))]
    assert len(bounds) == 14
    assert [mutant.description for mutant in equivalent] == ["integer constant shifted by 1 on rank 1"]


def test_a_true_equivalence_is_recognised() -> None:
    """The maximum that cross-entropy subtracts cancels, whatever it is."""
    sequential, program = cross_entropy(2)
    equivalent = [mutant for mutant in generate(program) if is_equivalent(sequential, mutant)]
    assert ("wrong_reduction", "all_reduce of kind maximum made sum") in [(m.kind, m.description) for m in equivalent]


def test_collectives_that_no_longer_meet_are_wrong() -> None:
    sequential, program = mlp(2)
    dropped = next(m for m in generate(program) if m.kind == "dropped_collective")
    mixed = Mutant(
        dropped.kind,
        "on rank 0 only",
        (0,),
        dropped.site,
        {0: 1},
        {0: 1},
        type(program)((dropped.program.graphs[0], program.graphs[1]), program.mesh, program.inputs, program.outputs),
    )
    assert is_equivalent(sequential, mixed) is False
