"""Certificates of two programs that a forger would write by hand, each against one check of their steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, SourceSpan, TensorType
from rewright.ops.facts import NOTHING, Facts, facts_between, of_dtype
from rewright.proof.rewriting.evidence import NUMBERS, PROVED, Checked
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.splices import Rewriting, Splice, Stage
from rewright.proof.rewriting.stages import splice_stage, why_not
from rewright.proof.wrapping import insert_wrapping
from tests.proof.rewriting.forging import NONE, forged, stage, why_refused

F, I8, I32, I64, TRUTH = (TensorType((3,), kind) for kind in (DType.F32, DType.I8, DType.I32, DType.I64, DType.BOOL))
SUM = ops.AllReduce("sum", ((0, 1),))


class Build(GraphBuilder):
    """Writes small programs."""

    def x(self, name: str, kind: TensorType = F) -> int:
        return self.input(name, ops.Input(name, kind))

    def c(self, *values: float | int | bool, kind: TensorType = F) -> int:
        return self.add(ops.Constant(kind, values))


def graph(write: Callable[[Build], int], name: str = "result") -> Graph:
    build = Build()
    build.output(name, write(build))
    return build.build()


def of(graph: Graph, name: str, number: int = 0) -> int:
    """Where an operator is, the first one or a later one."""
    return [p for p, node in enumerate(graph.nodes) if node.op.name == name][number]


def refused(left: Graph, right: Graph | RankProgram, *rewritings: Rewriting) -> str:
    """Why a certificate with these stages, all else being right, is refused."""
    found = forged(left, right, rewritings)
    assert found is not None
    return why_refused(found, left, right) or "accepted"


def after(*stages: Stage) -> tuple[Rewriting, Rewriting]:
    return Rewriting((), stages), NONE


def before(*stages: Stage) -> tuple[Rewriting, Rewriting]:
    return Rewriting(stages), NONE


def test_what_is_given_counts_to_the_last_digit() -> None:
    """That a number is 1 shows nothing of one that is close to it, though both print alike."""
    one, x = graph(lambda b: b.c(1.0)), graph(lambda b: b.x("x"))
    true, false = (
        Lemma("", one, x, PROVED, (), (("x", known),))
        for known in (facts_between(1.0, 1.0), facts_between(0.9999999, 1.0000001))
    )
    assert str(true.given) != str(false.given)
    assert true.key != false.key

    def small(b: Build) -> int:
        held, x = b.c(1.0), b.x("x")
        moved = b.add(ops.Add(), held, b.add(ops.Multiply(), b.add(ops.Tanh(), x), b.c(1e-8)))
        return b.add(ops.Multiply(), b.add(ops.Subtract(), moved, b.c(1.0)), b.c(1e8))

    left = graph(small)
    steps = stage((of(left, "constant"), true, {"x": 0})), stage((of(left, "add"), false, {"x": of(left, "add")}))
    why = refused(left, graph(lambda b: (b.x("x"), b.c(0.0))[1]), *before(*steps))
    assert "lemma 0 of stage" in why


def test_a_name_that_reads_like_facts_is_another_name() -> None:
    x = graph(lambda b: b.x("x"))
    known = facts_between(0, 1)
    two = Lemma("", x, x, PROVED, (), (("x", known), ("y", known)))
    one = Lemma("", x, x, PROVED, (), ((f"x: {known}y", known),))
    assert two.key != one.key


def test_an_input_is_read_under_its_own_name() -> None:
    """What proves a lemma goes by the name in the operator, and what makes use of it by that of the graph."""
    right = graph(lambda b: b.add(ops.Subtract(), b.x("a"), b.x("b")))
    left = replace(right, inputs={"a": right.inputs["b"], "b": right.inputs["a"]})
    swapped = graph(lambda b: (lambda a, c: b.add(ops.Subtract(), c, a))(b.x("a"), b.x("b")))
    step = stage((2, Lemma("", left, right, PROVED), {"a": 0, "b": 1}))
    assert "other inputs than they name" in refused(right, swapped, *before(step))


def test_a_condition_between_two_steps_is_not_lost() -> None:
    """``x < x + 1`` holds of all numbers, and not of minus infinity, about which the next step asks."""

    def later(b: Build, x: int) -> int:
        return b.add(ops.Compare("LT"), x, b.add(ops.Add(), x, b.c(1.0)))

    def chosen(b: Build) -> int:
        x, infinite = b.x("x"), b.c(-math.inf)
        own = b.add(ops.Select(), b.c(True, kind=TRUTH), x, b.add(ops.Negate(), x))
        return b.add(ops.Add(), own, b.add(ops.Exponential(), infinite))

    left, right = graph(chosen), graph(lambda b: b.add(ops.Negate(), b.x("x")))
    holds = Lemma("", graph(lambda b: later(b, b.x("m"))), graph(lambda b: b.c(True, kind=TRUTH)), PROVED)
    first = stage((2, holds, {"m": 1}))
    fails = Lemma("", graph(lambda b: b.c(False, kind=TRUTH)), graph(lambda b: later(b, b.c(-math.inf))), NUMBERS)
    second = stage((of(splice_stage(left, first), "compare"), fails, {}))
    assert "none of its programs" in refused(left, right, *before(first, second))


@pytest.mark.parametrize(("kind", "number", "wrapped"), [(I8, 200, -56), (I32, 1 << 40, 0)])
def test_integers_have_an_end_in_every_step_or_in_none(kind: TensorType, number: int, wrapped: int) -> None:
    """A cast there and back keeps a number that has no end, and the machine makes another one of it."""

    def plus(b: Build, n: int) -> int:
        return b.add(ops.Add(), n, b.c(0, kind=I64))

    def cast(b: Build, n: int) -> int:
        return b.add(ops.Convert(DType.I64), b.add(ops.Convert(kind.dtype), plus(b, n)))

    def scaled(b: Build) -> int:
        x = b.x("x")
        return b.add(ops.Multiply(), x, b.add(ops.Convert(DType.F32), plus(b, b.c(number, kind=I64))))

    left, right = graph(scaled), graph(lambda b: b.add(ops.Multiply(), b.x("x"), b.c(float(wrapped))))
    kept = Lemma("", graph(lambda b: cast(b, b.x("n", I64))), graph(lambda b: plus(b, b.x("n", I64))), PROVED)
    first = stage((of(left, "add"), kept, {"n": of(left, "constant")}))
    made = Lemma("", graph(lambda b: b.c(wrapped, kind=I64)), graph(lambda b: cast(b, b.c(number, kind=I64))), NUMBERS)
    second = stage((of(splice_stage(left, first), "convert", 1), made, {}))
    assert refused(left, right, *after(first, second)) != "accepted"


def test_of_a_short_integer_that_has_no_end_nothing_is_given() -> None:
    """That a byte is between -128 and 127 is known of the machine, and would undo the remainder that says so."""
    own = insert_wrapping(
        graph(lambda b: b.add(ops.Convert(DType.F32), b.add(ops.Add(), b.x("x", I8), b.c(100, kind=I8))))
    )
    total, root = of(own, "add"), [p for p, node in enumerate(own.nodes) if node.type == I8][-1]

    def written(b: Build) -> int:
        places = {total: b.x("a", I8)}
        for p in sorted(own.ancestors([root]) - own.ancestors([total])):
            places[p] = b.add(own.nodes[p].op, *(places[o] for o in own.nodes[p].operands))
        return places[root]

    lemma = Lemma("", graph(lambda b: b.x("a", I8)), graph(written), PROVED, (), (("a", of_dtype(DType.I8)),))
    assert Checked().why_not(lemma, counts=True) is None
    step = stage((root, lemma, {"a": total}))
    assert "not known to be" in (why_not(own, step, counts=True) or "")


def test_a_collective_that_nothing_reads_is_still_met() -> None:
    """Without it the next one of a rank would meet that of the others in its place."""
    mesh = Mesh.of({"tp": 2})

    def of_rank(rank: int) -> Graph:
        build = Build()
        inputs = [build.x(name) for name in "ab"]
        sums = [build.add(SUM, x, span=SourceSpan("program.py", 1 + line)) for line, x in enumerate(inputs)]
        build.output("y", build.add(ops.Add(), build.c(0.0), sums[1 - rank]))
        return build.build()

    whole = {name: place((3,), mesh, ["Replicate()"]) for name in "aby"}
    ranks = tuple(map(of_rank, range(2)))
    program = RankProgram(ranks, mesh, {n: whole[n] for n in "ab"}, {"y": whole["y"]})
    left = graph(lambda b: b.add(ops.Add(), b.x("a"), b.x("b")), "y")
    zero = Lemma("", graph(lambda b: b.x("q")), graph(lambda b: b.add(ops.Add(), b.c(0.0), b.x("q"))), PROVED)
    steps = [Rewriting((stage((5, zero, {"q": 3 - rank})),)) for rank in range(2)]
    assert forged(left, program, (NONE, *steps)) is None
    for own, step in zip(ranks, steps, strict=True):
        kept = splice_stage(own, step.before[0])
        assert [node.op.name for node in kept.nodes].count("all_reduce") == 2


def test_two_messages_are_not_one() -> None:
    """They are one expression, which reads the next message of a kind."""
    build = Build()
    messages = [build.add(ops.Recv(0, 7, F)) for _ in range(2)]
    build.output("y", build.add(ops.Subtract(), *messages))
    both = graph(lambda b: (lambda x: b.add(ops.Subtract(), x, x))(b.x("x")))
    lemma = Lemma("", graph(lambda b: b.c(0.0)), both, PROVED)
    assert Checked().why_not(lemma, counts=False) is None
    step = Stage((Splice(2, lemma.key, (("x", tuple(messages)),)),), (lemma,))
    assert "other expressions" in (why_not(build.build(), step) or "")


def test_rounding_does_not_lead_anywhere() -> None:
    """A constant is as good as one that is close to it, and not as one that is far away by many small steps."""

    def scaled(value: float) -> Graph:
        return graph(lambda b: b.add(ops.Multiply(), b.x("x"), b.c(value)))

    value, steps = 0.1, list[Stage]()
    for _ in range(20):
        more = value * (1 + 2.4e-7)
        lemma = Lemma("", *(graph(lambda b, v=v: b.c(v)) for v in (more, value)), NUMBERS)
        steps.append(stage((1, lemma, {})))
        value = more
    assert "again and again" in refused(scaled(0.1), scaled(value), *before(*steps))


@pytest.mark.parametrize(
    "turned", [lambda b, _, low: b.add(ops.Negate(), low), lambda b, x, low: b.add(ops.Subtract(), x, low)]
)
def test_the_most_negative_number_is_no_infinity_once_it_is_positive(turned: Callable[[Build, int, int], int]) -> None:
    """``exp(-1e-38 * 3.4e38)`` is 0.03, and was accepted as zero: only what it was added to was looked at."""
    lowest = -3.4028234663852886e38

    def power(b: Build, low: int) -> int:
        small = b.add(ops.Multiply(), turned(b, b.x("x"), low), b.c(1e-38))
        return b.add(ops.Exponential(), b.add(ops.Negate(), small))

    left, right = graph(lambda b: power(b, b.c(lowest))), graph(lambda b: (b.x("x"), b.c(0.0))[1])
    infinite = Lemma("", graph(lambda b: b.c(-math.inf)), graph(lambda b: b.c(lowest)), NUMBERS)
    why = refused(left, right, *before(stage((of(left, "constant"), infinite, {}))))
    assert "most negative number" in why


@pytest.mark.parametrize("kind", [F, I64, TRUTH])
@pytest.mark.parametrize(
    "known",
    [
        replace(NOTHING, plus_infinity=True),
        Facts(10**400, 10**400, zero=False, whole=True, nan=False, plus_infinity=False, minus_infinity=False),
        Facts(math.nan, math.nan, nan=False),
        facts_between(0.5, 0.5),
    ],
)
def test_nothing_is_given_that_breaks_the_checker(kind: TensorType, known: Facts) -> None:
    x, other = graph(lambda b: b.x("x", kind)), graph(lambda b: b.c(1, kind=kind))
    for evidence in (PROVED, NUMBERS, "law growing"):
        assert Checked().why_not(Lemma("", other, x, evidence, (), (("x", known),)), counts=False) is not None
