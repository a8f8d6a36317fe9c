"""Certificates that an attacker would write by hand, each against one check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from bench.mutants import generate
from rewright import ops
from rewright.claims.language import Access, Addend, Definition, Input, Pieces, Tensor, View
from rewright.interp.program import run
from rewright.ir.digest import digest
from rewright.ir.dims import symbol
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, TensorType
from rewright.ops.agreement import meets
from rewright.proof.certificate import SEQUENTIAL, Certificate, Equation, Meeting, NodeEquation, Output, RangeFact
from rewright.proof.checker import Refused, audit
from rewright.proof.conditions import REALS
from rewright.proof.programs import Chunk, Collective, Exchanged
from rewright.refine import refine
from tests.programs import Builder, Pair, exchanged, mlp, sequence_parallel_norm, vocabulary_embedding
from tests.proof.defining import define
from tests.refine.exchanges import ulysses

ONE, HALF = Fraction(1), Fraction(1, 2)
I0: Access = ((0, ((0, 1),)),)
MESH = Mesh.of({"tp": 1})


def whole(term: int, *shape: int) -> View:
    """All of a term."""
    access = tuple((0, ((axis, 1),)) for axis in range(len(shape)))
    return View(tuple((n,) for n in shape), (Addend(ONE, term, access),))


def term(kind: str, data: tuple[object, ...], *operands: tuple[int, Access], rank: int = 1) -> Definition:
    return define(kind, data, tuple(o for o, _ in operands), tuple(a for _, a in operands), rank)


def claims(pair: Pair, terms: list[Definition], values: list[Tensor], steps: list[Equation]) -> Certificate:
    """A certificate about an input x and an output y that one rank holds as they are; value 0 is x."""
    sequential, program = pair
    placed = {n: place(sequential.nodes[p].type.shape, MESH, ["Replicate()"]) for n, p in sequential.inputs.items()}
    shape = sequential.nodes[sequential.outputs["y"]].type.shape
    return Certificate(
        digest(sequential),
        tuple(map(digest, program.graphs)),
        MESH.axes,
        placed,
        {"y": Output(place(shape, MESH, ["Replicate()"]), ())},
        (REALS,),
        (),
        tuple(terms),
        tuple(values),
        ((SEQUENTIAL, "x", 0), (0, "x", 0)),
        tuple(steps),
    )


def alone(make: Callable[[Builder, bool], None]) -> Pair:
    """A sequential program and that of one rank."""
    graphs: list[Graph] = []
    for parallel in (False, True):
        build = Builder("attack")
        make(build, parallel)
        graphs.append(build.build())
    return graphs[0], RankProgram((graphs[1],), MESH, {}, {})


def rounding(dtype: DType, op: Callable[[Builder, int], int]) -> Pair:
    """The sequential program drops the fraction of what the rank leaves as it is."""

    def make(build: Builder, parallel: bool) -> None:
        y = op(build, build.tensor("x", (3,), dtype))
        if not parallel:
            y = build.add(ops.Convert(DType.F32), build.add(ops.Convert(DType.I64), y))
        build.output("y", y)

    return alone(make)


def not_rounded(pair: Pair, terms: list[Definition]) -> Certificate:
    """Claims that the last term, which is said to be an integer, is both."""
    last, looked_into = len(terms) - 1, tuple(range(len(terms)))
    sequential = pair[0]
    first = sequential.nodes.index(next(n for n in sequential.nodes if n.op == ops.Convert(DType.I64)))
    steps: list[Equation] = []
    for program, graph in ((SEQUENTIAL, sequential), (0, pair[1].graphs[0])):
        for position, node in enumerate(graph.nodes):
            if isinstance(node.op, ops.Constant):
                steps.append(NodeEquation(program, position, 2))
            elif position not in graph.inputs.values():
                rounds = program == SEQUENTIAL and position >= first
                steps.append(NodeEquation(program, position, 1, () if rounds else looked_into))
    half = View(((3,),), (Addend(HALF, len(terms), ()),))
    return claims(pair, [*terms, term("number", (1,), rank=0)], [whole(0, 3), whole(last, 3), half], steps)


X = term("input", ("x",))
REVERSED = rounding(DType.F32, lambda b, x: b.add(ops.Reverse((0,)), x))
SAME = rounding(DType.F32, lambda b, x: b.add(ops.Reshape((3,)), x))
HALVED = rounding(
    DType.I64,
    lambda b, x: b.add(
        ops.Multiply(), b.add(ops.Convert(DType.F32), x), b.add(ops.Constant(TensorType((3,), DType.F32), (0.5,)))
    ),
)
FALSE_INTEGERS = {
    "an operator of integers": (
        REVERSED,
        term("opaque", (ops.Reverse((0,)), ("i64",), (((3,),),), 1, ((0, 0, 3),)), (0, I0)),
    ),
    "a position that is no integer": (SAME, term("take", (), (1, ((0, ((-1, 1),)),)), (0, I0))),
    "half of an integer": (HALVED, term("add", ((HALF,),), (0, I0))),
}


@pytest.mark.parametrize("name", FALSE_INTEGERS)
def test_a_term_that_is_no_integer_is_not_taken_for_one(name: str) -> None:
    pair, forged = FALSE_INTEGERS[name]
    terms = [X, term("index", ()), forged] if forged.kind == "take" else [X, forged]
    with pytest.raises(Refused, match="equation"):
        audit(not_rounded(pair, terms), *pair)


def test_a_range_that_counts_half_is_no_integer() -> None:
    fold = define("fold", ("sum", ()), (0,), (), 1)
    ranged = define("ranged", ((((), HALF),),), (1,), (), 1)
    with pytest.raises(Refused, match="equation"):
        audit(not_rounded(HALVED, [X, fold, ranged]), *HALVED)


def wrong() -> Pair:
    """A rank that computes another function."""

    def make(build: Builder, parallel: bool) -> None:
        x = build.tensor("x", (4,))
        build.output("y", build.add(ops.Sine() if parallel else ops.Tanh(), x))

    return alone(make)


TANH, SINE = term("apply", ("tanh",), (0, I0)), term("apply", ("sine",), (0, I0))


def forged(tanh: Tensor, sine: Tensor, *terms: Definition) -> Certificate:
    looked_into = tuple(range(1, 1 + len(terms)))
    steps: list[Equation] = [NodeEquation(SEQUENTIAL, 1, 1, looked_into), NodeEquation(0, 1, 2, looked_into)]
    return claims(wrong(), [X, *terms], [whole(0, 4), tanh, sine], steps)


NOTHING = View(((0,),), ())
BACKWARDS = View(((-1, -4),), ())
CLAIMS: dict[str, tuple[Tensor, Tensor]] = {
    "nothing": (NOTHING, NOTHING),
    "one element": (View(((1,),), ()), View(((1,),), ())),
    "axes of negative size": (BACKWARDS, BACKWARDS),
    "no axes": (View((), ()), View((), ())),
    "no parts": (Pieces(0, 1, (), ()), Pieces(0, 1, (), ())),
    "parts of nothing": (Pieces(0, 4, (0,), (NOTHING,)), Pieces(0, 4, (0,), (NOTHING,))),
    "no rows": (Pieces(0, 0, (4,), (NOTHING,)), Pieces(0, 0, (4,), (NOTHING,))),
    "rows that are not there": (Pieces(0, -1, (-4,), (View(((4,),), ()),)), Pieces(0, -1, (-4,), (View(((4,),), ()),))),
    "a part too long": (Pieces(0, 1, (4,), (NOTHING,)), Pieces(0, 1, (4,), (NOTHING,))),
    "a symbol of no size": (View(((symbol("n") - 1,),), ()), View(((symbol("n") - 1,),), ())),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_about_all_elements(name: str) -> None:
    with pytest.raises(Refused):
        audit(forged(*CLAIMS[name]), *wrong())


def test_the_true_claims_are_not_the_same_claims() -> None:
    with pytest.raises(Refused, match="output 'y' of rank 0 does not follow"):
        audit(forged(whole(1, 4), whole(2, 4), TANH, SINE), *wrong())


@pytest.mark.parametrize(
    "terms",
    [
        (term("add", ((ONE, ONE),), (1, I0), (0, I0)),),
        (term("add", ((ONE,),), (2, I0)), term("add", ((ONE,),), (1, I0))),
        (term("apply", ("tanh",), (-1, I0)),),
    ],
)
def test_no_term_is_defined_over_itself(terms: tuple[Definition, ...]) -> None:
    with pytest.raises(Refused, match=r"term 1 \(\w+\) is no term: it is defined over terms that are not earlier"):
        audit(forged(whole(1, 4), whole(1, 4), *terms), *wrong())


def test_addends_are_compared_at_all_indices() -> None:
    """The output is claimed to be the sum of what one rank holds, whose digits leave no index at all."""
    sequential, program = wrong()
    certificate = forged(BACKWARDS, BACKWARDS)
    partial = place((4,), MESH, ["Partial(sum)"])
    with pytest.raises(Refused):
        audit(replace(certificate, outputs={"y": Output(partial, ())}), sequential, program)


def test_nothing_is_known_of_an_input_without_elements() -> None:
    """That its values lie in no set at all follows, and must say nothing of what is not in it."""

    def make(build: Builder, parallel: bool) -> None:
        ids, table = build.tensor("ids", (0,), DType.I64), build.tensor("x", (4, 2))
        build.add(ops.Gather((1,), (0,), (), (), (0,), 1, (1, 2)), table, ids)
        build.output("y", build.add(ops.Sine() if parallel else ops.Tanh(), table))

    pair = alone(make)
    certificate = refine(pair[0], RankProgram((pair[0],), MESH, {}, {})).certificate
    assert certificate is not None
    ids = next(n for n, t in enumerate(certificate.terms) if t.content == Input("ids"))
    facts = (RangeFact(ids, (), 2, ((0, 0),), ((0, ((0, 1),)), (0, ()))),)
    ranks = tuple(map(digest, pair[1].graphs))
    with pytest.raises(Refused):
        audit(replace(certificate, ranks=ranks, facts=facts), *pair)


def test_a_fact_needs_a_look_up() -> None:
    pair = vocabulary_embedding(2)
    certificate = refine(*pair).certificate
    assert certificate is not None
    (fact,) = certificate.facts
    for region in ((), ((((0, 11),), ONE),), ((((1, 12),), ONE),), ((((0, 5),), ONE), (((6, 12),), ONE))):
        with pytest.raises(Refused, match="fact 0 does not follow"):
            audit(replace(certificate, facts=(replace(fact, allowed=region),)), *pair)


def test_a_missing_reduction_is_not_excused_by_the_meeting_of_another_program() -> None:
    sequential, program = mlp(2)
    certificate = refine(sequential, program).certificate
    assert certificate is not None
    dropped = next(m for m in generate(program) if m.kind == "dropped_collective").program
    meeting = next(e for e in certificate.equations if isinstance(e, Meeting))
    ranks = tuple(map(digest, dropped.graphs))
    alone_there = [
        e if not isinstance(e, Meeting) else NodeEquation(0, meeting.members[0][1], meeting.members[0][2], e.unfold)
        for e in certificate.equations
    ]
    for equations in (certificate.equations, tuple(alone_there), ()):
        with pytest.raises(Refused):
            audit(replace(certificate, ranks=ranks, equations=equations), sequential, dropped)


@pytest.mark.parametrize(
    ("communicator", "posted", "why"),
    [(0, False, "other calls on their communicator"), (1, False, "runs earlier"), (0, True, "other calls on their")],
)
def test_ranks_run_in_the_order_of_their_programs(communicator: int, posted: bool, why: str) -> None:
    """Two reductions that ranks run in another order never meet."""

    def of_rank(order: tuple[str, str]) -> Graph:
        build = Builder("parallel")
        x = {name: build.tensor(name, (2,)) for name in ("a", "b")}
        sums = {
            name: ops.AllReduce("sum", ((0, 1),), number, posted) for name, number in (("a", 0), ("b", communicator))
        }
        done = {name: build.add(sums[name], x[name]) for name in order}
        for name in ("a", "b"):
            build.output(name, done[name])
        return build.build()

    sequential = Builder("sequential")
    for name in ("a", "b"):
        x = sequential.tensor(name, (2,))
        sequential.output(name, sequential.add(ops.Add(), x, x))
    mesh = Mesh.of({"tp": 2})
    placed = {name: place((2,), mesh, ["Replicate()"]) for name in ("a", "b")}
    right = RankProgram((of_rank(("a", "b")), of_rank(("a", "b"))), mesh, placed, placed)
    crossed = RankProgram((of_rank(("a", "b")), of_rank(("b", "a"))), mesh, placed, placed)
    whole_graph = sequential.build()
    certificate = refine(whole_graph, right).certificate
    assert certificate is not None
    audit(certificate, whole_graph, right)
    first, second = (e for e in certificate.equations if isinstance(e, Meeting))
    swap = {first.members[1][1]: second.members[1][1], second.members[1][1]: first.members[1][1]}
    met = {m: replace(m, members=(m.members[0], (1, swap[m.members[1][1]], m.members[1][2]))) for m in (first, second)}
    equations = tuple(met.get(e, e) if isinstance(e, Meeting) else e for e in certificate.equations)
    ranks = tuple(map(digest, crossed.graphs))
    with pytest.raises(Refused, match=why):
        audit(replace(certificate, ranks=ranks, equations=equations), whole_graph, crossed)


def test_what_arrives_has_the_type_that_is_expected() -> None:
    def stage(first: bool, rows: int) -> Graph:
        build = Builder("stage")
        x = build.tensor("x", (2,))
        if first:
            build.add(ops.Send(1, 0), x)
            build.output("y", x)
        else:
            arrived = build.add(ops.Recv(0, 0, TensorType((rows,), DType.F32)))
            build.output("y", arrived if rows == 2 else build.add(ops.Slice((0,), (2,), (1,)), arrived))
        return build.build()

    sequential = Builder("sequential")
    sequential.output("y", sequential.tensor("x", (2,)))
    mesh = Mesh.of({"pp": 2})
    placed = {name: place((2,), mesh, ["Replicate()"]) for name in ("x", "y")}
    inputs, outputs = {"x": placed["x"]}, {"y": placed["y"]}
    right = RankProgram((stage(True, 2), stage(False, 2)), mesh, inputs, outputs)
    odd = RankProgram((stage(True, 2), stage(False, 3)), mesh, inputs, outputs)
    graph = sequential.build()
    certificate = refine(graph, right).certificate
    assert certificate is not None
    audit(certificate, graph, right)
    forged = replace(certificate, ranks=tuple(map(digest, odd.graphs)))
    with pytest.raises(Refused, match="receives 2xf32 and expects 3xf32"):
        audit(forged, graph, odd)


def two_ranks(first: Callable[[Builder], None], second: Callable[[Builder], None]) -> Pair:
    """Programs of two ranks that are to compute y = 2x."""
    sequential, graphs = Builder("sequential"), list[Graph]()
    x = sequential.tensor("x", (2,))
    sequential.output("y", sequential.add(ops.Add(), x, x))
    for make in (first, second):
        build = Builder("parallel")
        make(build)
        graphs.append(build.build())
    mesh = Mesh.of({"tp": 2})
    placed = place((2,), mesh, ["Replicate()"])
    return sequential.build(), RankProgram(tuple(graphs), mesh, {"x": placed}, {"y": placed})


def reduces(build: Builder) -> None:
    build.output("y", build.all_reduce(build.tensor("x", (2,)), 2))


def shifts(build: Builder) -> None:
    """To the next rank and back: who receives nothing has zeros, of which the sum takes no notice."""
    x = build.tensor("x", (2,))
    gone = build.add(ops.CollectivePermute(((0, 1),)), x)
    back = build.add(ops.CollectivePermute(((1, 0),)), gone)
    build.output("y", build.add(ops.Add(), x, build.all_reduce(back, 2)))


def test_who_receives_nothing_has_zeros() -> None:
    pair = two_ranks(shifts, shifts)
    certificate = refine(*pair).certificate
    assert certificate is not None
    audit(certificate, *pair)
    meeting = next(e for e in certificate.equations if isinstance(e, Meeting))
    (first, at, _), other = meeting.members
    forged = replace(meeting, members=((first, at, other[2]), other))
    equations = tuple(forged if e is meeting else e for e in certificate.equations)
    with pytest.raises(Refused, match="collective_permute of ranks"):
        audit(replace(certificate, equations=equations), *pair)


def test_a_collective_that_only_one_rank_reaches_is_not_left_out() -> None:
    def waits(build: Builder) -> None:
        reduces(build)
        build.all_reduce(1, 2)

    right, stuck = two_ranks(reduces, reduces), two_ranks(reduces, waits)
    certificate = refine(*right).certificate
    assert certificate is not None
    audit(certificate, *right)
    with pytest.raises(Refused, match="no equation is about %2 of the program of rank 1"):
        audit(replace(certificate, ranks=tuple(map(digest, stuck[1].graphs))), *stuck)


def test_a_message_is_not_sent_before_its_turn() -> None:
    """Rank 0 sends after a reduction, for which rank 1 would need what is sent."""

    def sends(late: bool) -> Callable[[Builder], None]:
        def make(build: Builder) -> None:
            x = build.tensor("x", (2,))
            if not late:
                build.add(ops.Send(1, 0), x)
            build.output("y", build.all_reduce(x, 2))
            if late:
                build.add(ops.Send(1, 0), x)

        return make

    def receives(build: Builder) -> None:
        build.tensor("x", (2,))
        build.output("y", build.all_reduce(build.add(ops.Recv(0, 0, TensorType((2,), DType.F32))), 2))

    right, stuck = two_ranks(sends(False), receives), two_ranks(sends(True), receives)
    certificate = refine(*right).certificate
    assert certificate is not None
    audit(certificate, *right)
    moved: list[Equation] = []
    for equation in certificate.equations:
        if isinstance(equation, NodeEquation) and equation.program == 0:
            moved.append(replace(equation, position=2))
        elif isinstance(equation, Meeting):
            members = ((0, 1, equation.members[0][2]), equation.members[1])
            moved.append(replace(equation, members=members))
        else:
            moved.append(equation)
    with pytest.raises(Refused, match="runs earlier"):
        audit(replace(certificate, ranks=tuple(map(digest, stuck[1].graphs)), equations=tuple(moved)), *stuck)


def test_a_collective_is_no_step_and_a_step_no_collective() -> None:
    pair = two_ranks(reduces, reduces)
    certificate = refine(*pair).certificate
    assert certificate is not None
    meeting = next(e for e in certificate.equations if isinstance(e, Meeting))
    others = [e for e in certificate.equations if e is not meeting]
    alone_there = [*others, *(NodeEquation(rank, position, value) for rank, position, value in meeting.members)]
    for equations, says in (
        (alone_there, "which no rank computes alone"),
        ([*others, Meeting(())], "no meeting of ranks"),
        ([*others, replace(meeting, members=((SEQUENTIAL, 1, 0),))], "no meeting of ranks"),
        ([*others, replace(meeting, members=((0, 0, 0),))], "no meeting of ranks"),
        ([*others, replace(meeting, members=meeting.members[:1])], "other ranks than the group"),
    ):
        with pytest.raises(Refused, match=says):
            audit(replace(certificate, equations=tuple(equations)), *pair)


@dataclass(frozen=True, slots=True)
class _Silent(ops.GroupCollective):
    """A collective of which nothing is said: not even what its members hold afterwards."""

    groups: tuple[tuple[int, ...], ...]
    communicator: int = 0
    posted: bool = False
    name: ClassVar[str] = "silent"


def test_a_collective_that_says_nothing_gives_no_value() -> None:
    pair = two_ranks(reduces, reduces)
    certificate = refine(*pair).certificate
    assert certificate is not None
    graphs = tuple(
        replace(graph, nodes=tuple(replace(n, op=_Silent(((0, 1),))) if meets(n.op) else n for n in graph.nodes))
        for graph in pair[1].graphs
    )
    with pytest.raises(Refused, match="silent is no collective whose members meet"):
        audit(replace(certificate, ranks=tuple(map(digest, graphs))), pair[0], replace(pair[1], graphs=graphs))


def test_members_of_a_reduce_scatter_keep_chunks_of_one_sum() -> None:
    pair = sequence_parallel_norm(4)
    certificate = refine(*pair).certificate
    assert certificate is not None
    meetings = [e for e in certificate.equations if isinstance(e, Meeting)]
    (scattered,) = (e for e in meetings if e.whole is not None)
    gathered = next(e for e in meetings if e.whole is None)
    assert scattered.whole is not None

    def changed(old: Meeting, new: Meeting) -> Certificate:
        return replace(certificate, equations=tuple(new if e is old else e for e in certificate.equations))

    audit(certificate, *pair)
    audit(changed(scattered, replace(scattered, whole=None)), *pair)
    (a, at, first), (b, there, second), *rest = scattered.members
    crossed = ((a, at, second), (b, there, first), *rest)
    operand = next(e.value for e in certificate.equations if isinstance(e, NodeEquation) and e.program == 0)
    for damaged, says in (
        (changed(scattered, replace(scattered, whole=operand)), "does not follow"),
        (changed(scattered, replace(scattered, whole=len(certificate.values))), "does not have"),
        (
            changed(scattered, replace(scattered, members=crossed)),
            "does not follow",
        ),
        (changed(gathered, replace(gathered, whole=gathered.members[0][2])), "no member an equal chunk of a whole"),
    ):
        with pytest.raises(Refused, match=says):
            audit(damaged, *pair)


@pytest.mark.parametrize("pair", [ulysses(4), exchanged(False)], ids=["two axes", "one axis"])
def test_members_of_an_exchange_in_equal_parts_keep_chunks_of_one_whole(pair: Pair) -> None:
    """Ranks that cut one axis and join another, and ranks that trade parts of one axis."""
    certificate = refine(*pair).certificate
    assert certificate is not None
    meeting = next(e for e in certificate.equations if isinstance(e, Meeting))
    assert isinstance(pair[1].graphs[0].nodes[meeting.members[0][1]].op, ops.AllToAll)
    (first, at, one), (second, there, other), *rest = meeting.members
    audit(certificate, *pair)
    for new, fine in (
        (replace(meeting, whole=None), True),
        (replace(meeting, members=((first, at, other), (second, there, one), *rest)), False),
        (replace(meeting, whole=one), False),
    ):
        changed = replace(certificate, equations=tuple(new if e is meeting else e for e in certificate.equations))
        if fine:
            audit(changed, *pair)
        else:
            with pytest.raises(Refused, match=r"all_to_all of ranks .* does not follow"):
                audit(changed, *pair)


def test_an_exchange_of_stated_parts_has_no_whole() -> None:
    sequential, program = exchanged(False)

    def stated(graph: Graph) -> Graph:
        nodes = [
            replace(n, op=replace(n.op, send_splits=(2, 2), receive_splits=(2, 2)))
            if isinstance(n.op, ops.AllToAll)
            else n
            for n in graph.nodes
        ]
        return replace(graph, nodes=tuple(nodes))

    pair = sequential, replace(program, graphs=tuple(map(stated, program.graphs)))
    certificate = refine(*pair).certificate
    assert certificate is not None
    (meeting,) = (e for e in certificate.equations if isinstance(e, Meeting))
    assert meeting.whole is None
    forged = replace(meeting, whole=meeting.members[0][2])
    equations = tuple(forged if e is meeting else e for e in certificate.equations)
    with pytest.raises(Refused, match="no member an equal chunk of a whole"):
        audit(replace(certificate, equations=equations), *pair)


@pytest.mark.parametrize(("split", "concat"), [(0, 0), (1, 1), (0, 1), (1, 0), (2, 0)])
def test_chunks_of_the_whole_of_an_exchange_are_what_arrives(split: int, concat: int) -> None:
    """By numbers: the two definitions of an all-to-all are the same."""
    world, kind = 3, TensorType((3, 6, 9), DType.F32)
    sent = {f"x{k}": np.arange(k * 1000.0, k * 1000.0 + 162).reshape(kind.shape) for k in range(world)}
    exchange = Exchanged((kind,) * world, split, concat)
    (both,) = run(exchange.graph(), sent).values()
    operator = ops.AllToAll(split, concat, ())
    for member in range(world):
        (kept,) = run(Chunk(exchange.whole, split, world, member).graph(), {"x0": both}).values()
        (arrived,) = run(Collective((operator,) * world, (kind,) * world, member).graph(), sent).values()
        assert np.array_equal(kept, arrived)


def test_what_arrives_is_what_was_sent() -> None:
    """Rank 0 sends x, and the certificate says that rank 1 receives 2x."""

    def sends(twice: bool) -> Callable[[Builder], None]:
        def make(build: Builder) -> None:
            x = build.tensor("x", (2,))
            y = build.add(ops.Add(), x, x)
            build.add(ops.Send(1, 0), y if twice else x)
            build.output("y", y)

        return make

    def receives(build: Builder) -> None:
        build.tensor("x", (2,))
        build.output("y", build.add(ops.Recv(0, 0, TensorType((2,), DType.F32))))

    right, odd = two_ranks(sends(True), receives), two_ranks(sends(False), receives)
    certificate = refine(*right).certificate
    assert certificate is not None
    audit(certificate, *right)
    with pytest.raises(Refused, match="another value than the tensor that was sent"):
        audit(replace(certificate, ranks=tuple(map(digest, odd[1].graphs))), *odd)
