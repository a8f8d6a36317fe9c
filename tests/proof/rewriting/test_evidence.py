"""What is evidence of a lemma, what may be given of its inputs, and what is neither."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import NOTHING, REAL, Facts, facts_between, of_values
from rewright.proof.rewriting.evidence import LAW, NUMBERS, PROVED, Checked
from rewright.proof.rewriting.files import rewriting_table, rewritings_of
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.splices import Rewriting, Splice, Stage

F, I8, I64 = (TensorType((3,), dtype) for dtype in (DType.F32, DType.I8, DType.I64))


class Side(GraphBuilder):
    """One side of a lemma over inputs of three numbers."""

    def read(self, name: str, kind: TensorType = F) -> int:
        return self.input(name, ops.Input(name, kind))

    def number(self, value: float, kind: TensorType = F) -> int:
        return self.add(ops.Constant(kind, (value,)))

    def of(self, op: Operator, *operands: int) -> int:
        return self.add(op, *operands)

    def done(self, position: int) -> Graph:
        self.output("result", position)
        return self.build()


def side(write: Callable[[Side], int]) -> Graph:
    builder = Side()
    return builder.done(write(builder))


def floor_of_zero(b: Side) -> int:
    return b.of(ops.Maximum(), b.read("x"), b.number(0.0))


def through_bytes(b: Side) -> int:
    return b.of(ops.Convert(DType.F32), b.of(ops.Convert(DType.I64), b.read("x")))


def itself(b: Side) -> int:
    return b.read("x")


def why_not(left: Graph, right: Graph, evidence: str = PROVED, *, counts: bool = True, **given: Facts) -> str | None:
    return Checked().why_not(Lemma("", left, right, evidence, (), tuple(given.items())), counts=counts)


@pytest.mark.parametrize(
    ("write", "given"),
    [
        (floor_of_zero, facts_between(0, math.inf)),
        (floor_of_zero, facts_between(2, 5)),
        (through_bytes, replace(REAL, whole=True)),
        (through_bytes, facts_between(-128, 127, whole=True)),
    ],
)
def test_what_is_given_is_used(write: Callable[[Side], int], given: Facts) -> None:
    assert why_not(side(itself), side(write), x=given) is None
    assert why_not(side(itself), side(write)) is not None


@pytest.mark.parametrize(
    "given", [facts_between(-1, 5), facts_between(-1, 5, whole=True), Facts(low=0), Facts(nan=False, low=-0.5)]
)
def test_what_is_given_may_be_too_little(given: Facts) -> None:
    assert why_not(side(itself), side(floor_of_zero), x=given) is not None


def test_an_input_that_is_one_number_is_this_number() -> None:
    minus_infinity = of_values([-math.inf])
    assert why_not(side(lambda b: b.number(-math.inf)), side(itself), x=minus_infinity) is None
    assert (
        why_not(side(lambda b: b.number(0.0)), side(lambda b: b.of(ops.Exponential(), b.read("x"))), x=minus_infinity)
        is None
    )
    assert why_not(side(lambda b: b.number(2.0)), side(itself), x=of_values([2])) is None
    assert why_not(side(lambda b: b.number(2.0)), side(itself), x=of_values([2, 3])) is not None
    assert why_not(side(lambda b: b.number(2.0)), side(itself), x=replace(of_values([2]), nan=True)) is not None


@pytest.mark.parametrize("given", [NOTHING, facts_between(1, -1), facts_between(3, 2, whole=True)])
def test_nothing_follows_from_what_cannot_be(given: Facts) -> None:
    assert why_not(side(lambda b: b.number(7.0)), side(itself), x=given) is not None


def test_short_integers_have_an_end_until_that_is_written_out() -> None:
    """``x + 1 > x`` is true of whole numbers and not of 127 in eight bits."""

    def grows(b: Side) -> int:
        x = b.read("x", I8)
        return b.of(ops.Compare("GT"), b.of(ops.Add(), x, b.number(1, I8)), x)

    true = side(lambda b: b.of(ops.Constant(TensorType((3,), DType.BOOL), (True,))))
    assert why_not(true, side(grows), counts=True) is None
    assert "too large for its type" in str(why_not(true, side(grows), counts=False))


@pytest.mark.parametrize("evidence", ["", "certain", "tested", LAW, LAW + "none", LAW + "growing", NUMBERS])
def test_nothing_else_is_evidence(evidence: str) -> None:
    doubled = side(lambda b: b.of(ops.Add(), b.read("x"), b.read("y")))
    assert why_not(doubled, side(lambda b: b.of(ops.Add(), b.read("y"), b.read("x"))), evidence) is not None


def test_what_is_inner_is_computed_on_both_sides() -> None:
    """``exp(x) * exp(x)`` where ``e`` is the ``exp(x)`` of the other side: ``e * e``."""
    right = side(lambda b: b.of(ops.Multiply(), *[b.of(ops.Exponential(), b.read("x"))] * 2))
    left = side(lambda b: b.of(ops.Multiply(), *[b.read("e")] * 2))
    assert [type(node.op) for node in right.nodes] == [ops.Input, ops.Exponential, ops.Multiply]
    inner = Lemma("", left, right, PROVED, (), (), (("e", 1),))
    assert Checked().why_not(inner, counts=True) is None
    assert Checked().why_not(replace(inner, inner=(("e", 0),)), counts=True) is not None
    assert Checked().why_not(replace(inner, inner=()), counts=True) is not None
    assert len({inner.key, replace(inner, inner=()).key, replace(inner, inner=(("e", 0),)).key}) == 3


def test_rewritings_are_read_as_they_were_written() -> None:
    given = (("x", facts_between(-math.inf, 3.5)), ("y", replace(of_values([math.inf]), exact=False)))
    lemmas = [
        Lemma("lemma 1", side(itself), side(floor_of_zero), PROVED, (), given),
        Lemma("lemma 2", side(itself), side(through_bytes), LAW + "places", (), (), (("e", 1),)),
    ]
    stages = [Stage((Splice(4, lemma.key, (("x", (1, 2)),)),), (lemma,)) for lemma in lemmas]
    written = (Rewriting((stages[0],), (stages[1], stages[0])), Rewriting())
    table = rewriting_table(written)
    assert len(table["lemmas"]) == 2
    assert rewritings_of(json.loads(json.dumps(table))) == written


def test_a_byte_without_an_end_is_not_one_of_256_numbers() -> None:
    """``x % 256`` is x for each number of a byte, and is what counts it from the other end where it has no end."""

    def counted(b: Side) -> int:
        wide = b.of(ops.Convert(DType.I64), b.read("x", I8))
        return b.of(ops.Convert(DType.I8), b.of(ops.Remainder(), wide, b.number(256, I64)))

    byte = side(lambda b: b.read("x", I8))
    assert why_not(byte, side(counted), NUMBERS, counts=False) is None
    assert why_not(byte, side(counted), NUMBERS, counts=True) is not None
