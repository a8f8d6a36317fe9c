"""Verdicts on rules of every kind: true ones, wrong ones, and what cannot be decided."""

from __future__ import annotations

import pytest

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.types import TensorType
from rewright.rules import (
    DType,
    Tensor,
    absolute,
    apply,
    boolean,
    concat,
    constant,
    dot,
    exp,
    floats,
    integers,
    iota,
    log,
    maximum,
    natural,
    rule,
    scalar,
    select,
    size,
)
from rewright.rules.library.models import causal, plain_softmax, softmax
from rewright.rules.verdict import judge

m, n, k, p, q = (size(name) for name in ("m", "n", "k", "p", "q"))
s, f = natural("s"), natural("f")
A, B, V = floats("A", m, n), floats("B", m, n), floats("V", n)
X, Y = floats("X", p), floats("Y", q)
I, J = integers("I", n), integers("J", n)  # noqa: E741
P, Q = boolean("P", m, n), boolean("Q", k, n)
c = scalar("c")
cumulative = apply(ops.ReduceWindow("sum", (n,), (1,), ((n - 1, 0),)), V)
scatter = ops.Scatter("sum", (), (0,), (), (), (0,), 1)
ascending = ops.Sort(0, False, "values")
places, updates = integers("i", m), floats("u", m)
seven = floats("Z", *[size(f"d{axis}") for axis in range(7)])
square = floats("S", n, n)
table = apply(ops.Constant(TensorType((3,), DType.F32), (1.0, 2.0, 3.0)))

TRUE: dict[str, tuple[Tensor, Tensor]] = {
    "maximum over what may be empty": (concat(0, X.slice(s, f), Y).max(0), maximum(X.slice(s, f).max(0), Y.max(0))),
    "minimum of integers": (concat(0, I, J).reduce("minimum", 0), concat(0, J, I).reduce("minimum", 0)),
    "any of two parts": (concat(0, P, Q).reduce("or", 0), P.reduce("or", 0) | Q.reduce("or", 0)),
    "not any = all not": (~P.reduce("or", 0), (~P).reduce("and", 0)),
    "mask with a finite number": (softmax(select(P, A, -1e9)), plain_softmax(select(P, A, -1e9))),
    "floor of an integer": (apply(ops.Floor(), I.convert(DType.F32)), I.convert(DType.F32)),
    "integer to float and back": (I.convert(DType.F32).convert(DType.I64), I),
    "second power": (apply(ops.Power(), A, constant(2.0, (m, n))), A * A),
    "sign times absolute value": (apply(ops.Sign(), A) * absolute(A), A),
    "last cumulative sum": (cumulative.slice(n - 1, n).reshape(), V.sum(0)),
    "cumulative sum as a triangle": (cumulative, dot((iota((n, n), 0) >= iota((n, n), 1)).convert(DType.F32), V)),
    "sorting equal arguments": (apply(ascending, V.reverse().reverse()), apply(ascending, V)),
    "sum of a choice": (select(P, A, 0.0).sum(0), (P.convert(DType.F32) * A).sum(0)),
    "exp of minus infinity": (exp(A + constant(float("-inf"), (m, n))) + exp(A), exp(A)),
    "logsumexp of a shift": (log(exp(A + c).sum(1)), log(exp(A).sum(1)) + c),
    "scatter of equal arguments": (apply(scatter, V, places, updates), apply(scatter, V + 0.0, places, updates)),
    "a table reversed": (table.reverse(), apply(ops.Constant(TensorType((3,), DType.F32), (3.0, 2.0, 1.0)))),
    "maximum of a shift": ((A + c).max(1), A.max(1) + c),
    "a row that may be masked out": (softmax(select(P, A, float("-inf"))), plain_softmax(select(P, A, float("-inf")))),
    "maximum of a positive multiple": ((A * exp(c)).max(1), A.max(1) * exp(c)),
    "no axes": (c + 0.0, c),
    "bits of integers": (~~I, I),
    "an axis without elements": (floats("Z", 0, n).sum(0), constant(0.0, (n,))),
    "seven axes": (seven.transpose().transpose(), seven),
}  # fmt: skip

WRONG: dict[str, tuple[Tensor, Tensor]] = {
    "maximum of any multiple": ((A * c).max(1), A.max(1) * c),
    "maximum of a shift by a row": ((A + V.broadcast((m, n), (1,))).max(1), A.max(1) + V.sum(0).broadcast((m,))),
    "any = all": (P.reduce("or", 0), P.reduce("and", 0)),
    "boolean and back": (I.convert(DType.BOOL).convert(DType.I64), I),
    "root of a square": (apply(ops.Power(), A * A, constant(0.5, (m, n))), A),
    "square of a sign": (apply(ops.Sign(), A) * apply(ops.Sign(), A), constant(1.0, (m, n))),
    "cumulative from the other end": (cumulative, apply(ops.ReduceWindow("sum", (n,), (1,), ((0, n - 1),)), V)),
    "sorted already": (apply(ops.Sort(0, False, "values"), V), V),
    "sort of a reversal": (apply(ops.Sort(0, False, "values"), V.reverse()), apply(ops.Sort(0, True, "values"), V)),
    "infinity times zero": (constant(float("inf"), (m, n)) * (A - A), constant(0.0, (m, n))),
    "exp of minus infinity is one": (exp(A + constant(float("-inf"), (m, n))) + exp(A), exp(A) * 2.0),
    "quotients are finite": (apply(ops.IsFinite(), A / B).convert(DType.F32), constant(1.0, (m, n)) + A * 0.0),
    "log of a sum": (log(exp(A).sum(1)), A.sum(1)),
    "every second element twice": (V.slice(0, n, 2).sum(0) + V.slice(0, n, 2).sum(0), V.sum(0)),
    "another dtype": (V.convert(DType.F64), V),
    "not a number": (V + float("nan"), V),
    "a mask of -40": (softmax(causal(square)), softmax(select(iota((n, n), 1) <= iota((n, n), 0), square, -40.0))),
}  # fmt: skip

OPEN: dict[str, tuple[Tensor, Tensor]] = {
    "other ranks": (apply(ops.AllReduce("sum", ((0, 1),)), V), V + V),
    "an opaque kernel": (apply(ops.CustomCall("kernel", (), (V.type,), 0), V), V),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_true_rules_are_proved(name: str) -> None:
    verdict = judge(rule(name, "", *TRUE[name]))
    assert (verdict.status, verdict.reason) == ("proved", "")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_are_refuted(name: str) -> None:
    verdict = judge(rule(name, "", *WRONG[name]))
    assert verdict.status == "refuted"
    assert verdict.counterexample is not None


@pytest.mark.parametrize("name", OPEN)
def test_what_cannot_be_decided_is_unknown_with_a_reason(name: str) -> None:
    verdict = judge(rule(name, "", *OPEN[name]), budget=3)
    assert verdict.status == "unknown"
    assert verdict.reason


def test_depth_and_size_end_as_unknown_and_in_time() -> None:
    deep, wide = V, V
    for number in range(300):
        deep = deep * 2.0 + 1.0
        if number < 14:
            wide = wide * (floats(f"B{number}", n) + floats(f"C{number}", n) + 1.0)
    for side in (deep, wide):
        assert judge(rule("large", "", side, side + V), budget=2, search=False).status == "unknown"


def test_large_exponents_are_not_written_out() -> None:
    assert judge(rule("large", "", exp(V * 1e9), exp(V)), budget=2).status == "refuted"


@pytest.mark.parametrize(
    ("dtype", "grade"),
    [(DType.I32, "real"), (DType.U64, "real"), (DType.F32, "real"), (DType.F64, "real"), (DType.I64, "move")],
)
def test_a_cast_that_may_lose_an_integer_is_no_data_movement(dtype: DType, grade: str) -> None:
    """Numbers have no bounds in proofs, so it is proved; bit by bit it holds where every integer is one of both."""
    verdict = judge(rule("there and back", "int(cast(I)) = I", I.convert(dtype).convert(DType.I64), I))

    assert (verdict.status, verdict.grade) == ("proved", grade)


@pytest.mark.parametrize(
    ("narrow", "between", "wide"),
    [(DType.I8, DType.I16, DType.I32), (DType.U8, DType.I16, DType.I64), (DType.I16, DType.F32, DType.F64)],
)
def test_casts_to_wider_dtypes_move_data(narrow: DType, between: DType, wide: DType) -> None:
    small = Tensor(ops.Input("K", TensorType((n,), narrow)))

    verdict = judge(
        rule("wider", "wide(between(K)) = wide(K)", small.convert(between).convert(wide), small.convert(wide))
    )

    assert (verdict.status, verdict.grade) == ("proved", "move")


def test_what_is_no_condition_is_an_error() -> None:
    with pytest.raises(RewrightError, match="True is no condition"):
        rule("no condition", "V = V", V, V, where=[True])  # type: ignore[list-item]


W, E = floats("W", n), floats("E", s)
CONTRADICTORY: dict[str, tuple[Tensor, ...]] = {
    "an interval": (V > 1.0, V < 0.0),
    "a circle": (V > W, W > V),
    "a square": (V * V < 0.0,),
    "an exponential": (exp(V) < 0.0,),
    "a maximum": (maximum(V, W) > 0.0, V < 0.0, W < 0.0),
    "another order of axes": (A > 0.0, A.transpose(1, 0) < 0.0),
    "integers between two neighbours": (I > 3, I < 4),
    "truth values": (P, ~P),
}


@pytest.mark.parametrize("name", CONTRADICTORY)
def test_conditions_on_elements_that_contradict_each_other_are_an_error(name: str) -> None:
    left = concat(0, V, W, I.convert(DType.F32), A.sum(0), select(P, A, B).sum(0))
    right = concat(0, V, W, I.convert(DType.F32), A.sum(0), select(P, A, B).sum(0)) * 1.0

    with pytest.raises(RewrightError, match="holds for nothing"):
        judge(rule(name, "x = x 1", left, right, where=CONTRADICTORY[name]))


@pytest.mark.parametrize("conditions", [(V > W,), (maximum(V, W) > 0.0, V < 0.0), (I > 3, I < 5), (E > 1.0, E < 0.0)])
def test_conditions_that_some_elements_satisfy_are_none(conditions: tuple[Tensor, ...]) -> None:
    """Two conditions that exclude each other hold together of a tensor without elements."""
    left, right = concat(0, V, W, I.convert(DType.F32), E), concat(0, V, W, I.convert(DType.F32), E * 1.0)

    assert judge(rule("possible", "x = x 1", left, right, where=conditions)).status == "proved"
