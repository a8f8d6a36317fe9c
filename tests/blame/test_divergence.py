"""Values say which sequential tensors the ranks hold, and a wrong output leads back to where they part."""

from collections.abc import Callable
from itertools import product

import pytest

from bench.mutants import Mutant, generate, is_equivalent
from rewright import ops
from rewright.blame.divergence import CONVINCING, Divergence
from rewright.blame.index import TensorIndex
from rewright.interp.trial import Trial
from rewright.ir.operator import Unsupported
from rewright.ir.placement import Mesh, Placement, RankProgram, place
from rewright.refine.findings.values import search_trial
from rewright.refine.twin.twin import Twin, make_twin
from tests.programs import ALL, Builder, Pair, attention, mlp, sequence_parallel_norm


def twin_of(pair: Pair) -> Twin:
    twin = make_twin(*pair)
    assert not isinstance(twin, Unsupported)
    return twin


def part(pair: Pair) -> Divergence | None:
    """Where the programs part."""
    twin = twin_of(pair)
    result = twin.compare()
    search = search_trial(twin, result)
    return None if search is None else search.first(result.wrong_outputs, {})


def mutant_of(program: RankProgram, description: str) -> Mutant:
    return next(m for m in generate(program) if m.description == description)


def correspondences(twin: Twin, trial: Trial) -> dict[int, Placement]:
    """For every sequential node whose value the ranks hold: how the first place that does is placed."""
    index = TensorIndex(twin.program, trial)
    found = ((position, next(index.find(value), None)) for position, value in trial.sequential.values.items())
    return {position: held[1] for position, held in found if held is not None}


@pytest.mark.parametrize("name", ALL)
def test_outputs_and_inputs_of_right_programs_are_held(name: str) -> None:
    twin = twin_of(ALL[name](2))
    trial = twin.run_all()
    assert isinstance(trial, Trial)
    held = correspondences(twin, trial)
    for position in [*twin.sequential.inputs.values(), *twin.sequential.outputs.values()]:
        assert position in held
    assert len(held) > 0.7 * len(twin.sequential)


def test_placements_of_intermediate_tensors() -> None:
    """The hidden layer of the MLP is split along its width, and its product is a sum over the ranks."""
    twin = twin_of(ALL["mlp"](2))
    trial = twin.run_all()
    assert isinstance(trial, Trial)
    held = correspondences(twin, trial)
    operators = {twin.sequential.nodes[p].op.name: str(placement) for p, placement in held.items()}
    assert operators["tanh"] == "Shard(1)"


@pytest.mark.parametrize("name", ["mlp", "attention", "sequence_parallel_norm"])
def test_the_place_is_the_bug_or_next_to_it(name: str) -> None:
    sequential, program = ALL[name](2)
    for mutant in generate(program):
        if is_equivalent(sequential, mutant, (0,)) is not False:
            continue
        found = part((sequential, mutant.program))
        assert found is not None, mutant.description
        assert found.cost <= CONVINCING, mutant.description
        rank = min(mutant.positions)
        graph = mutant.program.graphs[rank]
        # A node that is left out was between its operands and its readers; operands keep their positions.
        injected = {mutant.positions[rank], *program.graphs[rank].nodes[mutant.original[rank]].operands}
        for _ in range(2):
            users = [reader for p in injected for reader in graph.users()[p]]
            injected |= {*users, *(operand for p in injected for operand in graph.nodes[p].operands)}
        assert injected & {found.place[rank], found.reader[rank]}, mutant.description


@pytest.mark.parametrize(
    ("build", "description", "cause", "sequential", "ranks"),
    [
        (mlp, "all_reduce dropped", "operator", "add", "add"),
        (mlp, "all_reduce called twice", "collective", "dot_general", "all_reduce"),
        (mlp, "all_reduce of kind sum made maximum", "collective", "dot_general", "all_reduce"),
        (mlp, "second term of a sum dropped", "term", "add", "dot_general"),
        (attention, "subtract reversed", "operands", "subtract", "subtract"),
        (attention, "constant of multiply made 2 times larger", "extra", "constant", "multiply"),
        (attention, "reduce of kind maximum made minimum", "operator", "reduce", "reduce"),
        (mlp, "ranks 0 and 1 hold each other's shard of up.weight", "input", "input", "input"),
        (sequence_parallel_norm, "all_reduce dropped", "output", "reduce", "reduce"),
    ],
)
def test_what_is_wrong_is_told_from_the_operands(
    build: Callable[[int], Pair], description: str, cause: str, sequential: str, ranks: str
) -> None:
    whole, program = build(2)
    mutant = mutant_of(program, description)
    found = part((whole, mutant.program))
    assert found is not None
    there = mutant.program.graphs[0].nodes[found.place[0]].op.name
    assert (found.cause, whole.nodes[found.sequential].op.name, there) == (cause, sequential, ranks)


def two_sums(first: Callable[[Builder, list[int]], int], second: Callable[[Builder, list[int]], int]) -> Pair:
    """Sums of one-element tensors, replicated over two ranks."""

    def program(name: str, total: Callable[[Builder, list[int]], int]) -> Builder:
        build = Builder(name)
        inputs = [build.tensor(label, (3,)) for label in "abc"]
        terms = [build.add(operator(), x) for operator, x in zip((ops.Tanh, ops.Cosine, ops.Sine), inputs, strict=True)]
        build.output("y", build.add(ops.Negate(), total(build, terms)))
        return build

    mesh = Mesh.of({"tp": 2})
    everywhere = place((3,), mesh, ["Replicate()"])
    graphs = tuple(program("parallel", second).build() for _ in range(2))
    ranks = RankProgram(graphs, mesh, dict.fromkeys("abc", everywhere), {"y": everywhere})
    return program("sequential", first).build(), ranks


def from_the_left(build: Builder, terms: list[int]) -> int:
    return build.add(ops.Add(), build.add(ops.Add(), terms[0], terms[1]), terms[2])


def from_the_right(build: Builder, terms: list[int]) -> int:
    return build.add(ops.Add(), terms[0], build.add(ops.Add(), terms[1], terms[2]))


def without_the_second(build: Builder, terms: list[int]) -> int:
    return build.add(ops.Add(), terms[2], terms[0])


def with_a_wrong_third(build: Builder, terms: list[int]) -> int:
    return from_the_right(build, [terms[0], terms[1], build.add(ops.Negate(), terms[2])])


def test_a_term_that_a_sum_lacks_is_named_however_it_is_associated() -> None:
    pair = two_sums(from_the_left, without_the_second)
    found = part(pair)
    assert found is not None
    assert found.cause == "term"
    assert found.other is not None
    assert pair[0].nodes[found.other].op.name == "cosine"


def test_an_operator_too_many_is_found_inside_a_sum() -> None:
    pair = two_sums(from_the_left, with_a_wrong_third)
    found = part(pair)
    assert found is not None
    assert found.cause == "extra"
    assert pair[0].nodes[found.sequential].op.name == "sine"
    assert pair[1].graphs[0].nodes[found.place[0]].op.name == "negate"


def test_right_programs_part_nowhere() -> None:
    twin = twin_of(two_sums(from_the_left, from_the_right))
    result = twin.compare()
    search = search_trial(twin, result)
    assert search is not None
    assert search.first(["y"], {}) is None


def test_an_unreduced_sum_is_followed_to_where_it_was_computed() -> None:
    sequential, program = mlp(2)
    mutant = mutant_of(program, "all_reduce dropped")
    twin = twin_of((sequential, mutant.program))
    result = twin.compare()
    search = search_trial(twin, result)
    assert search is not None
    found = search.first(result.wrong_outputs, {})
    assert found is not None
    pairs = product(search.places.addends(found.sequential), search.places.rank_addends(found.place))
    source, origin = search.origin(*next(pair for pair in pairs if search.is_partial(*pair)))
    assert sequential.nodes[source].op.name == mutant.program.graphs[0].nodes[origin[0]].op.name == "dot_general"
