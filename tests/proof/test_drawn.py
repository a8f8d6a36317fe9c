"""Which draws of ranks can be those of a sequential program: by the states of generators that they come from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rewright import ops
from rewright.ir.draws import DRAWS, START, Draw, text_of
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, TensorType
from rewright.proof.drawn import judge_draws

SHAPE = (4, 2)


def stream(begin: str, *values: str) -> list[Draw]:
    """Draws one after the other."""
    states = [begin, *(f"{begin} {value}" for value in values)]
    return [Draw("uniform", before, after, after, "here") for before, after in zip(states, states[1:], strict=False)]


def program(found: Sequence[Draw], shape: tuple[int, ...]) -> Graph:
    """A graph that reads what it draws, under the names ``a``, ``b``, ..."""
    builder = GraphBuilder()
    notes = {DRAWS: text_of(found)}
    for name, draw in zip("abc", found, strict=False):
        builder.output(f"out {name}", builder.input(name, ops.Input(name, TensorType(shape, DType.F32))))
        notes |= {f"drawn:{name}": draw.name, f"unknown:{name}": f"random:uniform at here #{name}"}
    graph = builder.build()
    return Graph(graph.nodes, graph.inputs, graph.outputs, graph.name, notes)


def judged(ranks: Sequence[Sequence[Draw]], mesh: dict[str, int], *placements: str) -> tuple[list[str], list[str]]:
    """The kinds of faults of ranks, and the conditions."""
    axes = Mesh.of(mesh)
    placed = place(SHAPE, axes, placements)
    local = tuple(int(str(n)) for n in placed.local_shape(0))
    graphs = tuple(program(draws, local) for draws in ranks)
    whole = program(stream(START, "x", "y"), SHAPE)
    found = judge_draws(whole, RankProgram(graphs, axes, {}, {}), dict.fromkeys("abc", placed))
    return [fault.kind for fault in found.faults], list(found.conditions)


def test_known_seeds_decide() -> None:
    one, other = stream("seed 1", "x"), stream("seed 2", "x")
    assert judged([one, other], {"dp": 2}, "Shard(0)") == ([], [])
    assert judged([one, one], {"dp": 2}, "Shard(0)") == (["agree"], [])
    assert judged([one, one], {"tp": 2}, "Replicate()") == ([], [])
    assert judged([one, other], {"tp": 2}, "Replicate()") == (["differ"], [])


def test_unknown_states_become_a_condition() -> None:
    own = stream(START, "x", "y")
    begin, also = (
        "generators whose seed the program does not set begin in",
        "; PyTorch begins every process in another one",
    )
    assert judged([own, own], {"dp": 2}, "Shard(0)") == ([], [f"{begin} different states on all ranks"])
    assert judged([own, own], {"tp": 2}, "Replicate()") == ([], [f"{begin} the same state on all ranks{also}"])
    found = judged([own] * 4, {"dp": 2, "tp": 2}, "Shard(0)", "Replicate()")
    assert found == ([], [f"{begin} the same state along tp, and in different ones along dp{also}"])
    found = judged([own] * 4, {"dp": 2, "tp": 2}, "Replicate()", "Shard(1)")
    assert found == ([], [f"{begin} the same state along dp, and in different ones along tp{also}"])


def test_parts_of_one_stream_need_no_condition() -> None:
    """As DTensor draws: ranks begin alike, each draws its own stretch, and all go on from the end of the whole."""
    parts = [[Draw("uniform", START, f"part {rank}", "all", "here")] for rank in range(2)]
    assert judged(parts, {"tp": 2}, "Shard(0)") == ([], [])
    assert judged(parts, {"tp": 2}, "Replicate()")[0] == ["differ"]


def test_one_stream_in_different_shapes_may_overlap() -> None:
    one, other = stream("seed 1", "x"), stream("seed 1", "another shape")
    assert judged([one, other], {"dp": 2}, "Shard(0)") == (["overlap"], [])
    later = [*stream("seed 1", "not read")[:0], *stream("seed 1", "x", "y")[1:]]
    assert judged([one, later], {"dp": 2}, "Shard(0)") == ([], [])


def test_a_draw_that_nobody_reads_moves_its_generator_too() -> None:
    """The second rank drew something else first, from the same seed: what it draws then may be the first one's."""
    first, second = stream("seed 1", "x"), stream("seed 1", "unread", "y")
    graph = program(second[1:], (2, 2))
    moved = Graph(graph.nodes, graph.inputs, graph.outputs, graph.name, graph.metadata | {DRAWS: text_of(second)})
    axes = Mesh.of({"dp": 2})
    placed = place(SHAPE, axes, ["Shard(0)"])
    ranks = RankProgram((program(first, (2, 2)), moved), axes, {}, {})
    found = judge_draws(program(stream(START, "x"), SHAPE), ranks, {"a": placed})
    assert [fault.kind for fault in found.faults] == ["overlap"]


def test_stages_with_one_seed_draw_the_same_for_other_layers() -> None:
    """Each of two ranks has a layer; the sequential program draws for one after the other."""
    axes = Mesh.of({"pp": 2})
    placed = place(SHAPE, axes, ["Replicate()"])
    (first,), (second,) = stream("seed 1", "x"), stream("seed 1", "x")
    one = program([first], SHAPE)
    two = program([second], SHAPE)
    notes = {f"drawn:{name}": text for name, text in (("b", second.name),)} | {DRAWS: two.metadata[DRAWS]}
    other = Graph(two.nodes, {"b": 0}, two.outputs, two.name, notes)
    found = judge_draws(
        program(stream(START, "x", "y"), SHAPE), RankProgram((one, other), axes, {}, {}), {"a": placed, "b": placed}
    )
    assert [fault.kind for fault in found.faults] == ["agree"]


@pytest.mark.parametrize("seed", ["seed 1", START])
def test_one_rank_that_draws_again_what_it_drew(seed: str) -> None:
    """A state that is set back between two layers: the sequential program draws for each."""
    (draw,) = stream(seed, "x")
    builder = GraphBuilder()
    notes = {DRAWS: text_of([draw, draw])}
    for name in "ab":
        builder.output(f"out {name}", builder.input(name, ops.Input(name, TensorType(SHAPE, DType.F32))))
        notes |= {f"drawn:{name}": draw.name}
    graph = builder.build()
    again = Graph(graph.nodes, graph.inputs, graph.outputs, graph.name, notes)
    axes = Mesh.of({"tp": 1})
    placed = place(SHAPE, axes, ["Replicate()"])
    whole = program(stream(START, "x", "y"), SHAPE)
    found = judge_draws(whole, RankProgram((again,), axes, {}, {}), {"a": placed, "b": placed})
    assert [fault.kind for fault in found.faults] == ["agree"]
