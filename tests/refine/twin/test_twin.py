"""The numeric twin agrees with right programs and gives a counterexample for wrong ones."""

from dataclasses import replace

import pytest

from rewright import ops
from rewright.ir.dims import symbol
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, TensorType
from rewright.ops.agreement import CollectiveMismatch
from rewright.refine.twin.twin import Twin, make_twin
from tests.programs import ALL, Builder, mlp, vocabulary_embedding


def twin_of(sequential: Graph, program: RankProgram) -> Twin:
    twin = make_twin(sequential, program)
    assert not isinstance(twin, Unsupported), twin
    return twin


def with_operator(program: RankProgram, kind: type[Operator], change: dict[str, object]) -> RankProgram:
    """The program with attributes of every operator of one kind replaced."""
    graphs = []
    for graph in program.graphs:
        nodes = tuple(replace(n, op=replace(n.op, **change)) if isinstance(n.op, kind) else n for n in graph.nodes)
        graphs.append(replace(graph, nodes=nodes))
    return replace(program, graphs=tuple(graphs))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("world", [2, 4])
def test_right_programs_agree(name: str, world: int) -> None:
    sequential, program = ALL[name](world)
    result = twin_of(sequential, program).compare(seed=1)
    assert result.agrees is True
    assert result.largest_error < 1e-12
    assert result.placements == program.outputs


def test_placements_are_read_off_the_values_where_none_is_expected() -> None:
    sequential, program = ALL["sequence_parallel_norm"](2)
    result = twin_of(sequential, replace(program, outputs={})).compare()
    assert {name: str(p) for name, p in result.placements.items()} == {
        "output": "Shard(0)",
        "grad:norm.weight": "Replicate()",
    }


def test_a_counterexample_is_reproducible() -> None:
    sequential, program = mlp(2)
    wrong = with_operator(program, ops.AllReduce, {"kind": "maximum"})
    first, second = (twin_of(sequential, wrong).compare(seed=3) for _ in range(2))
    assert first == second
    assert first.agrees is False
    example = first.counterexample
    assert example is not None
    assert example.output == "output"
    assert example.sizes["x"] == (3, 4)
    assert len(example.index) == 2
    assert example.sequential_value != example.distributed_value


def test_a_missing_all_reduce_is_a_partial_output() -> None:
    sequential, program = vocabulary_embedding(2)
    graphs = []
    for graph in program.graphs:
        output = graph.outputs["output"]
        graphs.append(replace(graph, outputs={"output": graph.nodes[output].operands[0]}))
    result = twin_of(sequential, replace(program, graphs=tuple(graphs))).compare()
    assert result.agrees is False
    assert result.reason == "output 'output' does not have the placement Replicate(); it is Partial(\"sum\")"


def test_every_shard_boundary_is_among_the_tokens() -> None:
    """With five tokens of a thousand, random ones alone would miss a bound that is off by one."""
    sequential, program = vocabulary_embedding(2, tokens=5, vocabulary=1000)
    graphs = []
    for graph in program.graphs:
        nodes = list(graph.nodes)
        for position, node in enumerate(nodes):
            # The upper bound, which rank 0 has at 500, is the second comparison.
            if isinstance(node.op, ops.Constant) and node.op.values == (500,) and position > 4:
                nodes[position] = replace(node, op=replace(node.op, values=(499,)))
        graphs.append(replace(graph, nodes=tuple(nodes)))
    twin = twin_of(sequential, replace(program, graphs=tuple(graphs)))
    assert {0, 498, 499, 500, 501, 999} <= set(twin.draws.integers["input_ids"].special)
    assert twin.compare().agrees is False


def test_symbolic_sizes_get_numbers() -> None:
    tokens = symbol("s")
    build = Builder("any")
    x = build.input("x", ops.Input("x", TensorType((tokens, 4), DType.F32)))
    build.output("output", build.add(ops.Reshape((tokens * 4,)), x))
    mesh = Mesh((("dp", 2),))
    same = {"x": place((tokens, 4), mesh, ("Replicate()",))}
    program = RankProgram((build.build(),) * 2, mesh, same, {})
    result = twin_of(build.build(), program).compare()
    assert result.agrees is True


def test_what_cannot_be_executed_is_said() -> None:
    sequential, program = mlp(2)
    without = replace(program, inputs={k: v for k, v in program.inputs.items() if k != "up.bias"})
    assert make_twin(sequential, without) == Unsupported("input 'up.bias' has no placement over the ranks")


def test_collectives_that_do_not_meet_are_an_error() -> None:
    sequential, program = mlp(2)
    lonely = with_operator(program, ops.AllReduce, {"groups": ((0,), (1,))}).graphs[0]
    with pytest.raises(CollectiveMismatch, match="deadlock"):
        make_twin(sequential, replace(program, graphs=(lonely, program.graphs[1])))


def test_programs_that_take_roots_get_positive_inputs() -> None:
    build = Builder("root")
    build.output("output", build.add(ops.Log(), build.tensor("x", (50,))))
    mesh = Mesh((("dp", 2),))
    program = RankProgram((build.build(),) * 2, mesh, {"x": place((50,), mesh, ("Replicate()",))}, {})
    assert twin_of(build.build(), program).compare().agrees is True


def zero_but_for_rounding(build: Builder, rows: int, factor: float, world: int = 1) -> None:
    """The difference of the same sums, computed in two orders."""
    x = build.tensor("x", (rows, 20, 40))
    by_rows = build.reduce(build.reduce(x, 2), 0)
    by_columns = build.reduce(build.reduce(x, 0), 1)
    scaled = build.add(ops.Multiply(), by_columns, build.full(factor, by_columns))
    total = build.add(ops.Subtract(), by_rows, scaled)
    build.output("zero", build.all_reduce(total, world) if world > 1 else total)


@pytest.mark.parametrize(("factor", "agrees"), [(1.0, True), (1.001, False)])
def test_an_output_that_is_zero_but_for_rounding(factor: float, agrees: bool) -> None:
    sequential, rank = Builder("sequential"), Builder("rank")
    zero_but_for_rounding(sequential, 60, 1.0)
    zero_but_for_rounding(rank, 30, factor, 2)
    mesh = Mesh((("tp", 2),))
    inputs, outputs = {"x": place((60, 20, 40), mesh, ("Shard(0)",))}, {"zero": place((20,), mesh, ("Replicate()",))}
    twin = twin_of(sequential.build(), RankProgram((rank.build(),) * 2, mesh, inputs, outputs))
    assert [twin.compare(seed).agrees for seed in range(8)] == [agrees] * 8
