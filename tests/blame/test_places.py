"""Places of all ranks: neighbours, likeness, and stretches that only move data."""

from rewright import ops
from rewright.blame.editing import edit_program
from rewright.blame.holding import Holding
from rewright.blame.movement import Stretch, spoiler, stretch
from rewright.blame.places import Places
from rewright.interp.trial import Trial
from rewright.ir.operator import Unsupported
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import TensorType
from rewright.refine.findings.values import holding_of
from rewright.refine.twin.twin import make_twin
from tests.programs import F32, Builder, Pair, exchanged, mlp


def held(pair: Pair) -> Holding:
    twin = make_twin(*pair)
    assert not isinstance(twin, Unsupported)
    trial = twin.run_all()
    assert isinstance(trial, Trial)
    return holding_of(twin, trial)


def test_operands_and_operators_of_a_place() -> None:
    places = Places(*mlp(2))
    output = places.output("output")
    assert output is not None
    assert places.operator(output) is ops.Add
    assert [places.operator(at) for at in places.operands(output)] == [ops.Input, ops.Add]
    assert places.label(places.operands(output)[0]) == "x"
    assert places.output("nothing") is None


def test_counterparts_depend_on_the_same_inputs_and_lead_to_the_same_outputs() -> None:
    sequential, program = mlp(2)
    places = Places(sequential, program)
    output = places.output("output")
    assert output is not None
    assert places.unlikeness(sequential.outputs["output"], output) == 0
    assert places.unlikeness(sequential.inputs["x"], output) > 0
    assert places.leads_to(output) == {"output"}


def test_the_terms_of_a_sum() -> None:
    sequential, program = mlp(2)
    places = Places(sequential, program)
    terms = places.addends(sequential.outputs["output"])
    assert [sequential.nodes[p].op.name for p in terms] == ["input", "dot_general", "broadcast_in_dim"]


def test_tensors_are_held_as_shards_and_sums() -> None:
    holding = held(mlp(2))
    nodes = holding.sequential.nodes
    product = next(p for p, node in enumerate(nodes) if node.op.name == "tanh") + 1
    reduced = holding.holder(product)
    assert reduced is not None
    assert str(holding.holds(product, reduced)) == 'Partial("sum")'
    assert holding.error(product, reduced) > 0.0
    assert holding.holds(holding.sequential.inputs["x"], reduced) is None


def exchange_of(pair: Pair) -> tuple[int, int]:
    """Positions of the join before an exchange, and of the exchange."""
    names = [node.op.name for node in pair[1].graphs[0].nodes]
    return names.index("concatenate"), names.index("all_to_all")


def test_a_stretch_of_moves_starts_at_what_was_computed() -> None:
    pair = exchanged(False)
    joined, traded = exchange_of(pair)
    found = stretch(held(pair), (traded, traded))
    assert found is not None
    assert found.source == (0, 0)
    assert found.places[-2:] == ((joined, joined), (traded, traded))


def test_a_stretch_of_views_ends_at_what_is_padded() -> None:
    """Elements that a tensor is padded with come from nowhere."""
    build = Builder("moved")
    x = build.tensor("x", (4, 3))
    padded = build.add(ops.Pad((1, 0), (0, 0), (0, 0)), x, build.add(ops.Constant(TensorType((), F32), (0.0,))))
    wide = build.add(ops.BroadcastInDim((2, 5, 3), (1, 2)), padded)
    end = build.add(ops.Reverse((0,)), wide)
    build.output("y", end)
    graph, mesh = build.build(), Mesh((("one", 1),))
    program = RankProgram((graph,), mesh, {"x": place((4, 3), mesh, ("Replicate()",))}, {})
    found = stretch(held((graph, program)), (end,))
    assert found == Stretch((padded,), ((wide,), (end,)))


def test_the_step_that_loses_elements_is_named() -> None:
    """Both parts are the first half: what was in the second is gone after they are joined."""
    sequential, program = exchanged(False)
    joined, traded = exchange_of((sequential, program))
    site = dict.fromkeys(range(2), joined)
    lossy, _ = edit_program(program, site, lambda editor, node: editor.add(node.op, *node.operands[:1] * 2))
    holding = held((sequential, lossy))
    found = stretch(holding, (traded, traded))
    assert found is not None
    assert spoiler(holding, found) == (joined, joined)


def test_an_exchange_is_suspected_where_nothing_is_lost() -> None:
    pair = exchanged(True)
    _, traded = exchange_of(pair)
    holding = held(pair)
    found = stretch(holding, (traded, traded))
    assert found is not None
    assert spoiler(holding, found) == (traded, traded)
