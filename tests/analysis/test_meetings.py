"""Which collectives meet, and what is said where they do not."""

import pytest

from rewright import ops
from rewright.analysis.meetings import LocalNode, Meeting, match_collectives
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.agreement import CollectiveMismatch
from tests.programs import ALL, Builder

PAIR = ((0, 1),)


def chain(*operators: Operator, name: str = "rank", shape: tuple[int, ...] = (4,)) -> Graph:
    """An input through a chain of operators of one operand; a recv starts a new chain."""
    build = Builder(name)
    last = build.input("x", ops.Input("x", TensorType(shape, DType.F32)))
    for op in operators:
        last = build.add(op) if isinstance(op, ops.Recv) else build.add(op, last)
    build.output("output", last)
    return build.build()


def error(*graphs: Graph) -> str:
    with pytest.raises(CollectiveMismatch) as caught:
        match_collectives(graphs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("world", [2, 4])
def test_every_node_is_scheduled_once_and_after_its_operands(name: str, world: int) -> None:
    graphs = ALL[name](world)[1].graphs
    done: list[set[int]] = [set() for _ in graphs]
    for step in match_collectives(graphs):
        nodes = [(step.rank, step.position)] if isinstance(step, LocalNode) else list(step.nodes)
        for rank, position in nodes:
            assert position not in done[rank]
            assert set(graphs[rank].nodes[position].operands) <= done[rank]
        for rank, position in nodes:
            done[rank].add(position)
    assert [len(found) for found in done] == [len(graph) for graph in graphs]


def test_members_come_in_the_order_of_the_group() -> None:
    graph = chain(ops.AllGather(0, ((1, 0),)))
    meetings = [step for step in match_collectives((graph, graph)) if isinstance(step, Meeting)]
    assert meetings == [Meeting(((1, 1), (0, 1)))]


def test_groups_of_two_meshes_axes_meet_independently() -> None:
    rows, columns = ((0, 1), (2, 3)), ((0, 2), (1, 3))
    graph = chain(ops.AllReduce("sum", rows), ops.AllReduce("sum", columns))
    meetings = [step for step in match_collectives((graph,) * 4) if isinstance(step, Meeting)]
    assert {frozenset(rank for rank, _ in meeting.nodes) for meeting in meetings} == {
        frozenset(group) for group in rows + columns
    }


def test_another_operator() -> None:
    text = error(chain(ops.AllReduce("sum", PAIR)), chain(ops.AllGather(0, PAIR), name="other"))
    assert text == (
        "all_reduce at rank.py:2 on rank 0 meets all_gather at other.py:2 on rank 1; "
        "call the same collective on every rank of [0, 1]"
    )


def test_another_reduction() -> None:
    text = error(chain(ops.AllReduce("sum", PAIR)), chain(ops.AllReduce("maximum", PAIR)))
    assert "kind is sum against maximum" in text


def test_another_shape() -> None:
    text = error(chain(ops.AllReduce("sum", PAIR)), chain(ops.AllReduce("sum", PAIR), shape=(5,)))
    assert "4xf32 against 5xf32" in text


def test_another_order_of_the_group() -> None:
    text = error(chain(ops.AllGather(0, ((0, 1),))), chain(ops.AllGather(0, ((1, 0),))))
    assert "order them alike" in text


def test_a_group_without_its_caller() -> None:
    text = error(chain(ops.AllReduce("sum", ((0,),))), chain(ops.AllReduce("sum", ((0,),))))
    assert text == "all_reduce at rank.py:2 on rank 1 has groups [(0,)]; put the calling rank in exactly one, once"


def test_a_rank_that_does_not_exist() -> None:
    assert "2 ranks; name existing ranks" in error(*[chain(ops.AllReduce("sum", ((0, 1, 2),)))] * 2)


def test_a_collective_that_only_one_rank_reaches() -> None:
    text = error(chain(ops.AllReduce("sum", PAIR)), chain(ops.Negate()))
    assert text == (
        "deadlock: all_reduce at rank.py:2 on rank 0 waits for ranks [0, 1], but rank 1 ends without it; "
        "call the collective on every rank of the group"
    )


def test_two_groups_in_opposite_order_lock_up() -> None:
    whole, rows = ((0, 1, 2),), ((0, 1),)
    first = chain(ops.AllReduce("sum", whole), ops.AllReduce("sum", rows))
    second = chain(ops.AllReduce("sum", rows), ops.AllReduce("sum", whole), name="other")
    text = error(first, second, chain(ops.AllReduce("sum", whole)))
    assert text.startswith("deadlock: all_reduce at rank.py:2 on rank 0 waits for ranks [0, 1, 2], while all_reduce at")
    assert "other.py:2 on rank 1 waits for ranks [0, 1]" in text


def test_split_sizes_must_agree() -> None:
    first = chain(ops.AllToAll(0, 0, PAIR, (1, 3), (1, 2)))
    second = chain(ops.AllToAll(0, 0, PAIR, (1, 3), (3, 3)))
    assert "sends 1 along the split axis to rank 0" in error(first, second)


def test_a_ring_of_messages_does_not_lock_up() -> None:
    """Every rank posts its receive before it sends, and reads it last."""
    graphs: list[Graph] = []
    for rank in range(3):
        build = Builder("ring")
        x = build.input("x", ops.Input("x", TensorType((4,), DType.F32)))
        received = build.add(ops.Recv((rank - 1) % 3, 0, TensorType((4,), DType.F32)))
        build.add(ops.Send((rank + 1) % 3, 0), x)
        build.output("output", build.add(ops.Add(), x, received))
        graphs.append(build.build())
    messages = [step for step in match_collectives(graphs) if isinstance(step, Meeting)]
    assert sorted(message.nodes for message in messages) == [((0, 2), (1, 1)), ((1, 2), (2, 1)), ((2, 2), (0, 1))]


def test_a_message_that_nobody_sends() -> None:
    text = error(chain(ops.Recv(1, 0, TensorType((4,), DType.F32)), ops.Negate()), chain(ops.Negate()))
    assert text == "recv at rank.py:2 on rank 0 receives nothing; add the matching send on the source rank"


def test_a_message_of_another_shape() -> None:
    text = error(chain(ops.Send(1, 0)), chain(ops.Recv(0, 0, TensorType((5,), DType.F32))))
    assert "sends 4xf32" in text
    assert "expects 5xf32" in text


def called_on(*calls: tuple[int, bool], reads_at_once: bool = False) -> Graph:
    """Reductions over ranks 0 and 1 on a communicator each, posted or not, whose results are read after them."""
    build = Builder("rank")
    x = build.tensor("x", (2,))
    found = []
    for number, posted in calls:
        result = build.add(ops.AllReduce("sum", ((0, 1),), number, posted), x)
        found.append(build.add(ops.Negate(), result) if reads_at_once else result)
    build.output("y", build.add(ops.Add(), *found))
    return build.build()


def positions(graphs: list[Graph]) -> list[tuple[tuple[int, int], ...]]:
    return [step.nodes for step in match_collectives(graphs) if isinstance(step, Meeting)]


def test_two_communicators_of_the_same_ranks_never_meet() -> None:
    posted = [called_on((0, True), (1, True)), called_on((1, True), (0, True))]
    assert sorted(positions(posted)) == [((0, 1), (1, 2)), ((0, 2), (1, 1))]
    alike = [called_on((0, True), (0, True)), called_on((0, True), (0, True))]
    assert sorted(positions(alike)) == [((0, 1), (1, 1)), ((0, 2), (1, 2))]


@pytest.mark.parametrize("posted", [True, False])
def test_ranks_wait_where_they_read(posted: bool) -> None:
    graphs = [
        called_on(*order, reads_at_once=True) for order in (((0, posted), (1, posted)), ((1, posted), (0, posted)))
    ]
    with pytest.raises(CollectiveMismatch, match=r"deadlock: .* on communicator 1 of theirs, while .* communicator 2"):
        match_collectives(graphs)
