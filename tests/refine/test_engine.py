"""``refine`` by example: what is proved, what is refuted and where, and what is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bench.mutants import Mutant, generate, is_equivalent
from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import TensorType
from rewright.refine import refine
from rewright.refine.check import attempt
from rewright.refine.relations.known import input_relations, output_expectations
from tests.programs import ALL, F32, Builder, Pair, mlp, sequence_parallel_norm, vocabulary_embedding


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("name", ALL)
def test_right_programs_are_proved(name: str, world: int) -> None:
    verdict = refine(*ALL[name](world))
    assert verdict.status == "proved", verdict.reason
    assert all(relation.holds for relation in verdict.relation.values())


def test_three_ranks_are_as_good_as_two() -> None:
    assert refine(*mlp(3, inner=12)).status == "proved"
    assert refine(*vocabulary_embedding(3)).status == "proved"


def test_outputs_are_told_as_equations() -> None:
    relation = refine(*sequence_parallel_norm(2)).relation
    assert relation["output"].placement == "Shard(0)"
    assert str(relation["output"]) == "output = concat([output@0, output@1], axis=0)"
    assert str(relation["grad:norm.weight"]) == "grad:norm.weight = grad:norm.weight@0"


def test_full_size_costs_no_more() -> None:
    assert refine(*mlp(8, batch=65536, hidden=8192, inner=28672)).status == "proved"


def proved(sequential: Graph, mutant: Mutant) -> bool:
    """Whether the proof goes through; what it says otherwise needs no numeric twin here."""
    known = input_relations(sequential, mutant.program, None)
    expected = output_expectations(sequential, mutant.program, None)
    proof = attempt(sequential, mutant.program, known, expected)
    return not proof.failed and not proof.mismatch


@pytest.mark.sample(5)
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("name", ALL)
def test_no_mutant_is_proved_but_equivalent_ones(name: str, world: int) -> None:
    sequential, program = ALL[name](world)
    mutants = list(generate(program, per_kind=6))
    assert mutants
    for mutant in mutants:
        if proved(sequential, mutant):
            assert is_equivalent(sequential, mutant), mutant.description


@pytest.mark.parametrize("name", ["mlp", "vocabulary_embedding"])
def test_one_mutant_of_every_kind_is_refuted(name: str) -> None:
    sequential, program = ALL[name](2)
    for mutant in generate(program, per_kind=1):
        if is_equivalent(sequential, mutant, seeds=(0,)) is False:
            verdict = refine(sequential, mutant.program)
            assert verdict.status == "refuted", mutant.description
            assert verdict.findings, mutant.description


def test_a_dropped_reduction_is_told_at_its_line_with_the_repair() -> None:
    sequential, program = mlp(2)
    mutant = next(m for m in generate(program) if m.kind == "dropped_collective")
    (finding, *_) = refine(sequential, mutant.program).findings
    assert finding.kind == "missing_reduction"
    assert finding.distributed is not None
    assert str(finding.distributed) == "parallel.py:10"
    assert finding.suggestion is not None
    assert finding.suggestion.startswith("insert all_reduce over tp after parallel.py:10")


def test_without_an_explanation_the_status_and_the_counterexample_are_the_same() -> None:
    sequential, program = mlp(2)
    mutant = next(m for m in generate(program) if m.kind == "dropped_collective")
    (finding, *_) = (short := refine(sequential, mutant.program, explain=False)).findings
    assert short.status == "refuted"
    assert finding.suggestion is None
    assert finding.counterexample == refine(sequential, mutant.program).findings[0].counterexample


def test_a_sum_that_is_left_partial_is_no_proof() -> None:
    """Nothing is expected of the output, and it can be related: as a sum. That is not what anyone wants."""
    sequential, program = mlp(2)
    mutant = next(m for m in generate(program) if m.kind == "dropped_collective")
    loose = replace(mutant.program, outputs={})
    assert refine(sequential, loose).status == "refuted"


def test_another_placement_than_the_expected_one_is_refuted() -> None:
    sequential, program = mlp(2)
    verdict = refine(sequential, program, expect={"output": "Shard(0)"})
    assert verdict.status == "refuted"
    assert refine(sequential, program, expect={"out*": "Replicate()"}).status == "proved"


def test_no_time_gives_no_answer() -> None:
    verdict = refine(*mlp(2), budget=0)
    assert verdict.status == "unknown"
    assert "budget of 0 s" in verdict.reason


def test_collectives_that_do_not_meet_are_refuted() -> None:
    sequential, program = mlp(2)
    silent = next(m for m in generate(program) if m.kind == "dropped_collective").program.graphs[0]
    verdict = refine(sequential, replace(program, graphs=(silent, program.graphs[1])))
    assert verdict.status == "refuted"
    assert [finding.kind for finding in verdict.findings] == ["collective_mismatch"]


# --- what does not fit together ---------------------------------------------------------------------------------------
def renamed(graph: Graph, old: str, new: str) -> Graph:
    position = graph.inputs[old]
    node = graph.nodes[position]
    assert isinstance(node.op, ops.Input)
    nodes = list(graph.nodes)
    nodes[position] = Node(ops.Input(new, node.op.tensor), (), node.type, node.span)
    inputs = {new if name == old else name: p for name, p in graph.inputs.items()}
    return Graph(tuple(nodes), inputs, graph.outputs, graph.name)


def without_programs(pair: Pair) -> None:
    refine(pair[0], [])


def fewer_programs(pair: Pair) -> None:
    refine(pair[0], replace(pair[1], graphs=pair[1].graphs[:1]))


def other_input(pair: Pair) -> None:
    refine(pair[0], replace(pair[1], graphs=tuple(renamed(g, "x", "hidden") for g in pair[1].graphs)))


def input_of_one_rank(pair: Pair) -> None:
    first, *rest = pair[1].graphs
    refine(pair[0], replace(pair[1], graphs=(renamed(first, "x", "hidden"), *rest)))


def other_output(pair: Pair) -> None:
    graphs = tuple(replace(g, outputs={"y": g.outputs["output"]}) for g in pair[1].graphs)
    refine(pair[0], replace(pair[1], graphs=graphs))


def wrong_shard(pair: Pair) -> None:
    refine(*pair, relations={"up.weight": "Shard(0)"})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (without_programs, "no program of any rank was given"),
        (fewer_programs, "the mesh has 2 ranks and 1 programs were given"),
        (other_input, "nothing is known about input 'hidden' of rank 0"),
        (input_of_one_rank, "exists only on some ranks"),
        (other_output, "give the outputs equal names"),
        (wrong_shard, "gives rank 0 the shape 2x8, but its program declares 4x4xf32"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(call: Callable[[Pair], None], message: str) -> None:
    with pytest.raises(RewrightError, match=message) as caught:
        call(mlp(2))
    assert "\n" not in str(caught.value)


# --- partial inputs, guards, empty shards -----------------------------------------------------------------------------
def pair_of(
    world: int,
    program: Callable[[Builder, int | None], None],
    inputs: dict[str, tuple[tuple[int, ...], str]],
) -> Pair:
    """A program for one device (rank None) and for every rank."""
    mesh = Mesh((("tp", world),))
    graphs: list[Graph] = []
    for rank in (None, *range(world)):
        build = Builder("sequential" if rank is None else "parallel")
        program(build, rank)
        graphs.append(build.build())
    placements = {name: place(shape, mesh, (text,)) for name, (shape, text) in inputs.items()}
    return graphs[0], RankProgram(tuple(graphs[1:]), mesh, placements, {})


@pytest.mark.parametrize("reduced", [True, False])
def test_addends_that_come_in_are_reduced_before_a_tanh(reduced: bool) -> None:
    def program(build: Builder, rank: int | None) -> None:
        x = build.tensor("x", (3,))
        total = build.all_reduce(x, 2) if rank is not None and reduced else x
        y = build.add(ops.Tanh(), total)
        build.output("output", y if rank is None or reduced else build.all_reduce(y, 2))

    assert (refine(*pair_of(2, program, {"x": ((3,), "Partial(sum)")})).status == "proved") == reduced


def test_a_rank_without_rows_is_no_obstacle() -> None:
    def program(build: Builder, rank: int | None) -> None:
        rows = 5 if rank is None else (2, 2, 1, 0)[rank]
        y = build.matmul(build.tensor("x", (2, rows)), build.tensor("w", (rows, 3)))
        build.output("output", y if rank is None else build.all_reduce(y, 4))

    pair = pair_of(4, program, {"x": ((2, 5), "Shard(1)"), "w": ((5, 3), "Shard(0)")})
    assert refine(*pair).status == "proved"


@pytest.mark.parametrize(("kind", "status"), [("maximum", "proved"), ("sum", "refuted")])
def test_maxima_of_shards_are_combined_by_their_maximum(kind: str, status: str) -> None:
    def program(build: Builder, rank: int | None) -> None:
        top = build.reduce(build.tensor("x", (2, 6 if rank is None else 3)), 1, kind="maximum")
        build.output("output", top if rank is None else build.all_reduce(top, 2, kind))

    assert refine(*pair_of(2, program, {"x": ((2, 6), "Shard(1)")})).status == status


@pytest.mark.parametrize(("masked", "status"), [(True, "vacuous"), (False, "refuted")])
def test_an_infinite_mask_counts(masked: bool, status: str) -> None:
    """A mask of -inf added before a softmax and subtracted from what goes around it does not cancel."""

    def program(build: Builder, rank: int | None) -> None:
        x = build.tensor("x", (4,))
        mask = build.add(ops.Constant(TensorType((4,), F32), (0.0, 0.0, float("-inf"), 0.0)))
        scores = build.add(ops.Add(), x, mask)
        if rank is not None and not masked:
            scores = x
        build.output("output", build.add(ops.Exponential(), scores))

    assert refine(*pair_of(2, program, {"x": ((4,), "Replicate()")})).status == status


def test_integers_and_reals_divide_differently() -> None:
    """The same two numbers; only the sequential program divides them as reals."""

    def program(build: Builder, rank: int | None) -> None:
        x, y = (build.add(ops.Convert(dtype), build.tensor(name, (4,), i64)) for name, dtype, i64 in _numbers(rank))
        quotient = build.add(ops.Divide(), x, y)
        build.output("output", build.add(ops.Convert(F32), quotient))

    pair = pair_of(2, program, {"x": ((4,), "Replicate()"), "y": ((4,), "Replicate()")})
    assert refine(*pair).status != "proved"


def _numbers(rank: int | None) -> list[tuple[str, object, object]]:
    from tests.programs import I64

    return [(name, F32 if rank is None else I64, I64) for name in ("x", "y")]


def test_addends_laid_out_in_ways_that_do_not_fit() -> None:
    """Two transposed matrices of different shapes, flattened and added: there is no common view, and no crash."""

    def program(build: Builder, rank: int | None) -> None:
        inputs = [build.tensor("x", (4, 6)), build.tensor("y", (6, 4))]
        flat = [build.add(ops.Reshape((24,)), build.add(ops.Transpose((1, 0)), v)) for v in inputs]
        build.output("output", build.add(ops.Add(), *flat) if rank is None else build.all_reduce(flat[rank], 2))

    pair = pair_of(2, program, {"x": ((4, 6), "Replicate()"), "y": ((6, 4), "Replicate()")})
    assert refine(*pair).status == "unknown"


def test_a_look_up_out_of_range_before_the_mask_is_not_proved() -> None:
    """``select(own, table[ids - start], 0)`` has the right values where it has any: it reads outside of the shard."""
    sequential, program = vocabulary_embedding(2)
    graphs: list[Graph] = []
    for graph in program.graphs:
        look_up = next(p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Gather))
        masked = graph.nodes[look_up].operands[1]
        while not isinstance(graph.nodes[masked].op, ops.Select):
            masked = graph.nodes[masked].operands[0]
        local = graph.nodes[masked].operands[2]
        nodes = [
            replace(node, operands=tuple(local if p == masked else p for p in node.operands)) for node in graph.nodes
        ]
        graphs.append(replace(graph, nodes=tuple(nodes)))
    verdict = refine(sequential, replace(program, graphs=tuple(graphs)))
    assert verdict.status == "refuted"
    assert "out of range" in verdict.reason or "fails" in verdict.reason


def test_a_bug_that_few_inputs_show_is_refuted() -> None:
    """The largest element of all ranks, of which one takes its smallest: that counts where it has the largest."""
    world = 6

    def program(rows: int, kind: str) -> Graph:
        build = Builder("sequential" if rows > 1 else "parallel")
        largest = build.reduce(build.reduce(build.tensor("x", (rows, 8)), 1, kind=kind), 0, kind="maximum")
        build.output("output", largest if rows > 1 else build.all_reduce(largest, world, "maximum"))
        return build.build()

    mesh = Mesh.of({"dp": world})
    graphs = tuple(program(1, "minimum" if rank == 2 else "maximum") for rank in range(world))
    held = {"x": place((world, 8), mesh, ["Shard(0)"])}
    assert refine(program(world, "maximum"), RankProgram(graphs, mesh, held, {})).status == "refuted"
