"""Equations that numbers decide: what is one tensor, what that takes for granted, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.numbers.closed import Taken, by_value, compare_closed, taken_sentences
from rewright.proof.rewriting.numbers.taken import FOLDED, INVERSES, MASKS, filling_assumption

F16, BF16, F32, F64 = DType.F16, DType.BF16, DType.F32, DType.F64
I8, I32, I64, U8, BOOL = DType.I8, DType.I32, DType.I64, DType.U8, DType.BOOL
LOWEST = -3.4028234663852886e38

Build = Callable[[GraphBuilder], int]
Values = Sequence[float | int | bool]


def program(build: Build) -> Graph:
    b = GraphBuilder()
    b.output("result", build(b))
    return b.build()


def held(*values: float | int | bool, dtype: DType = F32, shape: tuple[int, ...] | None = None) -> Build:
    """A constant: a scalar, or a table in one row."""
    own = ((len(values),) if len(values) > 1 else ()) if shape is None else shape
    return lambda b: b.add(ops.Constant(TensorType(own, dtype), values))


def places(count: int, dtype: DType = F32) -> Build:
    return lambda b: b.add(ops.Iota(TensorType((count,), dtype), 0))


def of(op: ops.TensorOperator, *operands: Build) -> Build:
    """An operator on what others make."""
    return lambda b: b.add(op, *(operand(b) for operand in operands))


def spread(build: Build, *shape: int) -> Build:
    """A scalar everywhere."""
    return of(ops.BroadcastInDim(shape, ()), build)


def taken(left: Build, right: Build) -> tuple[Taken, ...] | None:
    """What is taken for granted where ``left`` is put in for ``right``."""
    return compare_closed(Lemma("", program(left), program(right), "numbers"))


def sentences(left: Build, right: Build) -> tuple[str, ...]:
    found = taken(left, right)
    assert found is not None
    return taken_sentences(found)


# --- nothing is taken for granted


SAME = [
    pytest.param(held(0.1), held(0.1), id="a constant"),
    pytest.param(held(6.0), of(ops.Multiply(), held(2.0), held(3.0)), id="whole numbers"),
    pytest.param(held(0.75), of(ops.Divide(), held(3.0), held(4.0)), id="a quotient that comes out even"),
    pytest.param(held(1.0), of(ops.Exponential(), held(0.0)), id="an exponential of zero"),
    pytest.param(held(3.0), of(ops.Sqrt(), held(9.0)), id="a root of a square"),
    pytest.param(held(8.0), of(ops.Power(), held(2.0), held(3.0)), id="a power"),
    pytest.param(held(0, 1, 2, 3, dtype=I64), places(4, I64), id="positions"),
    pytest.param(held(-128, dtype=I8), of(ops.Add(), held(127, dtype=I8), held(1, dtype=I8)), id="integers wrap"),
    pytest.param(held(255, dtype=U8), of(ops.Convert(U8), held(-1, dtype=I32)), id="a cast of integers wraps"),
    pytest.param(held(2, dtype=I32), of(ops.Convert(I32), held(2.5)), id="a number that is cut off"),
    pytest.param(held(2.0), of(ops.Floor(), held(2.9999)), id="a floor"),
    pytest.param(held(0.2, 0.1), of(ops.Reverse((0,)), held(0.1, 0.2)), id="a move"),
    pytest.param(
        held(False, True, dtype=BOOL), of(ops.Compare("GT"), held(0.1, 0.3), held(0.2, 0.2)), id="a comparison"
    ),
    pytest.param(held(-math.inf), of(ops.Add(), held(-math.inf), held(1.0)), id="an infinity"),
    pytest.param(held(0.0), held(-0.0), id="both zeros, which are one number"),
    pytest.param(
        of(ops.Select(), held(True, False, dtype=BOOL), spread(held(0.0), 2), spread(held(-math.inf), 2)),
        held(0.0, -math.inf),
        id="a mask as a choice",
    ),
    pytest.param(
        held(1, dtype=I32),
        of(ops.Convert(I32), of(ops.Exponential(), held(0.5))),
        id="a rounded number far from whole ones that is cut off",
    ),
    pytest.param(
        held(True, dtype=BOOL),
        of(ops.Compare("LT"), of(ops.Exponential(), held(0.5)), held(1.7)),
        id="a rounded number that is compared with one far away",
    ),
    pytest.param(
        held(6.0),
        of(ops.DotGeneral((), (), (0,), (0,)), held(1.0, 2.0), held(2.0, 2.0)),
        id="a product of whole numbers",
    ),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_the_same_numbers_need_nothing(left: Build, right: Build) -> None:
    assert taken(left, right) == ()


OTHERS = [
    pytest.param(held(0.5), held(-math.inf), id="a score for an infinity"),
    pytest.param(held(-math.inf), held(0.5), id="an infinity for a score"),
    pytest.param(held(-math.inf), held(-100.0), id="an infinity for a low score"),
    pytest.param(held(-1e9), held(-math.inf), id="a low number for an infinity"),
    pytest.param(held(-math.inf), held(math.inf), id="infinities of both signs"),
    pytest.param(held(math.nan), held(math.nan), id="no number"),
    pytest.param(held(0.0), held(math.nan), id="zero for no number"),
    pytest.param(held(1, dtype=I32), held(1, dtype=I64), id="another type of integer"),
    pytest.param(held(1, dtype=I8), held(True, dtype=BOOL), id="a truth value"),
    pytest.param(held(0.5, dtype=F32), held(0.5, dtype=F16), id="another type of float"),
    pytest.param(held(1, shape=(2,), dtype=I32), held(1, shape=(1, 2), dtype=I32), id="another shape"),
    pytest.param(held(0, 1, 3, 3, dtype=I64), places(4, I64), id="other integers"),
    pytest.param(held(3, dtype=I32), of(ops.Convert(I32), held(2.9999)), id="a number that is rounded up"),
    pytest.param(held(3.0), of(ops.Floor(), held(2.9999)), id="a floor that is rounded up"),
    pytest.param(held(1.0), held(1.001), id="numbers apart"),
    pytest.param(held(16777216.0), held(16777217.0), id="whole numbers that single precision rounds to one"),
    pytest.param(held(0.1, 0.2), held(0.1, 0.2002), id="tables apart"),
    pytest.param(held(300, dtype=I8), of(ops.Convert(I8), held(300.0)), id="a float that its type does not hold"),
    pytest.param(held(-1, dtype=I32), of(ops.Divide(), held(1, dtype=I32), held(0, dtype=I32)), id="by zero"),
    pytest.param(held(math.inf), of(ops.Divide(), held(1.0), held(0.0)), id="a pole"),
    pytest.param(
        held(120000.0, dtype=F16), of(ops.Add(), held(60000.0, dtype=F16), held(60000.0, dtype=F16)), id="overflow"
    ),
    pytest.param(held(math.inf, dtype=F16), of(ops.Exponential(), held(20.0, dtype=F16)), id="infinite by overflow"),
    pytest.param(held(math.inf, dtype=F64), of(ops.Exponential(), held(1e4, dtype=F64)), id="larger than any float"),
]


@pytest.mark.parametrize(("left", "right"), OTHERS)
def test_other_numbers_are_refused(left: Build, right: Build) -> None:
    assert taken(left, right) is None


def test_what_reads_an_input_is_not_closed() -> None:
    b = GraphBuilder()
    b.output("result", b.input("x", ops.Input("x", TensorType((), F32))))
    assert compare_closed(Lemma("", b.build(), b.build(), "numbers")) is None


# --- rounding


def test_double_precision_is_taken_at_its_word() -> None:
    assert sentences(held(math.exp(0.5)), of(ops.Exponential(), held(0.5))) == (FOLDED,)
    assert sentences(held(1.0), of(ops.Tanh(), held(30.0))) == (FOLDED,)
    assert taken(held(math.exp(0.5) + 1e-5), of(ops.Exponential(), held(0.5))) is None


def test_constants_that_single_precision_rounds_are_one_number() -> None:
    assert sentences(held(1e-6), held(9.999999974752427e-07)) == (
        "constants that differ by the rounding of single precision are equal: 9.99999997e-07 and 1e-06",
    )
    assert sentences(held(1e-6, 0.5), held(9.999999974752427e-07, 0.5)) == (
        "tables of constants that differ by the rounding of single precision are equal",
    )


def test_inverses() -> None:
    assert sentences(held(1 / 0.7), of(ops.Divide(), held(1.0), held(0.7))) == (INVERSES,)
    assert sentences(of(ops.Divide(), held(1.0), held(3.0)), held(0.3333333432674408)) == (INVERSES,)
    assert sentences(held(1 / 3, 1 / 7), of(ops.Divide(), spread(held(1.0), 2), held(3.0, 7.0))) == (INVERSES,)
    assert taken(held(0.125), of(ops.Divide(), held(1.0), held(8.0))) == ()
    assert taken(of(ops.Divide(), held(1.0), held(3.0)), held(0.3334)) is None
    assert taken(of(ops.Divide(), held(1.0), held(0.0)), held(0.3334)) is None


def test_roots() -> None:
    assert sentences(of(ops.Sqrt(), held(0.125)), held(8**-0.5)) == (
        "constants that are rounded roots stand for the roots: 0.353553391",
    )
    assert taken(of(ops.Sqrt(), of(ops.Sqrt(), held(0.125))), held(8**-0.25)) == (Taken("root", (8**-0.25,)),)
    assert taken(of(ops.Sqrt(), held(0.125)), held(0.3537)) is None


# --- masks


def test_numbers_that_stand_for_minus_infinity() -> None:
    infinite = held(-math.inf)
    assert sentences(infinite, held(LOWEST)) == (MASKS,)
    assert sentences(held(-math.inf, dtype=F16), held(-65504.0, dtype=F16)) == (MASKS,)
    assert sentences(infinite, held(-1e9)) == (MASKS, filling_assumption(-1e9))
    assert taken(infinite, held(-65504.0)) == (Taken("mask"), Taken("filling", (-65504.0,)))
    chosen = of(ops.Select(), held(True, False, dtype=BOOL), spread(held(0.0), 2), spread(infinite, 2))
    assert sentences(chosen, held(0.0, LOWEST)) == (MASKS,)
    assert taken(chosen, held(LOWEST, 0.0)) is None
    assert taken(chosen, held(0.5, LOWEST)) is None


def test_a_low_number_that_was_rounded_stands_for_nothing() -> None:
    assert taken(held(-math.inf), of(ops.Multiply(), held(-1e9), of(ops.Exponential(), held(0.5)))) is None


# --- tables


def cosines(count: int) -> Build:
    return of(ops.Cosine(), places(count))


def test_a_table_that_is_held_where_the_other_program_computes_it() -> None:
    values = [math.cos(k) for k in range(8)]
    assert sentences(cosines(8), held(*values)) == (FOLDED,)
    rounded = [1.0, *(v * (1 + 3e-7) for v in values[1:])]
    assert sentences(cosines(8), held(*rounded)) == (
        "tables that one program holds are those that the other computes, which rounding moved by up to 3.0e-07",
    )
    assert taken(cosines(8), held(1.0, *(v + 1e-5 for v in values[1:]))) is None
    assert taken(held(*rounded), held(*values)) is None


def test_the_longer_an_angle_the_more_it_is_rounded() -> None:
    """1e-5 is what single precision makes of the cosine of 300.1, and not of that of 3.1."""
    long, short = ([offset + k for k in range(8)] for offset in (300.1, 3.1))
    for angles, is_explained in (long, True), (short, False):
        computed = of(ops.Cosine(), of(ops.Add(), places(8), spread(held(angles[0]), 8)))
        assert (taken(computed, held(*(math.cos(a) + 1e-5 for a in angles))) is not None) is is_explained


def test_a_table_of_other_frequencies_is_another_one() -> None:
    """Rotary tables of a base of 10,000 and of 10,020 are 2e-3 apart at most, which no rounding explains."""
    tables = [[math.cos(k * base ** (-1 / 4)) for k in range(8)] for base in (10_000.0, 10_020.0)]
    step = of(ops.Power(), held(10_000.0), held(-0.25))
    computed = of(ops.Cosine(), of(ops.Multiply(), places(8), spread(step, 8)))
    assert taken(computed, held(*tables[0])) is not None
    assert max(abs(a - b) for a, b in zip(*tables, strict=True)) < 2e-3
    assert taken(computed, held(*tables[1])) is None


def test_whole_numbers_of_a_table_are_not_rounded() -> None:
    assert taken(places(2000), held(*map(float, range(2000)))) == ()
    assert taken(places(2000), held(0.0, 1.0, 2.0, 4.0, *map(float, range(4, 2000)))) is None


def test_tables_of_short_types_are_rounded_by_more() -> None:
    found = taken(of(ops.Cosine(), places(4, BF16)), held(1.0, 0.5390625, -0.416015625, -0.98828125, dtype=BF16))
    assert found is not None and [one.kind for one in found] == ["moved"]


# --- whole numbers


def test_a_number_next_to_a_whole_one_stands_for_it() -> None:
    quotient = of(ops.Divide(), of(ops.Log(), held(125.0)), of(ops.Log(), held(5.0)))
    assert sentences(held(3, dtype=I32), of(ops.Convert(I32), quotient)) == (
        "numbers that are cut off to whole ones are exact: 3.0000000000000004 stands for 3",
    )
    assert taken(held(2, dtype=I32), of(ops.Convert(I32), quotient)) is None
    assert sentences(held(3.0), of(ops.Floor(), held(2.9999999899))) == (
        "numbers that are cut off to whole ones are exact: 2.9999999899000001 stands for 3",
    )


def test_cancellation_leaves_nothing_to_be_cut_off() -> None:
    """(1e16 + e) - 1e16 is 2 or 4 in double precision, and 2.718 over the reals."""
    large = held(1e16, dtype=F64)
    lost = of(ops.Subtract(), of(ops.Add(), large, of(ops.Exponential(), held(1.0, dtype=F64))), large)
    for value in (2, 4):
        assert taken(held(value, dtype=I32), of(ops.Convert(I32), lost)) is None


def test_floats_within_rounding_of_each_other_are_not_compared() -> None:
    root = of(ops.Exponential(), held(0.5))
    near = held(math.exp(0.5) + 1e-9)
    for value in (False, True):
        assert taken(held(value, dtype=BOOL), of(ops.Compare("LT"), root, near)) is None
        assert taken(held(value, dtype=BOOL), of(ops.Compare("LT"), held(0.1), held(0.1 + 1e-9))) is None
    assert taken(held(True, dtype=BOOL), of(ops.Compare("GE"), root, held(math.exp(0.5)))) == (Taken("folded"),)


def test_what_an_infinity_is_cut_off_to_is_chosen_nowhere() -> None:
    logs = of(ops.Convert(I32), of(ops.Log(), places(3)))
    is_small = of(ops.Compare("LT"), places(3, I32), spread(held(1, dtype=I32), 3))
    chosen = of(ops.Select(), is_small, spread(held(7, dtype=I32), 3), logs)
    assert taken(held(7, 0, 0, dtype=I32), chosen) == ()
    smallest = of(ops.Minimum(), logs, spread(held(0, dtype=I32), 3))
    for first in (-2147483648, 0, -12345):
        assert taken(held(first, 0, 0, dtype=I32), smallest) is None


def test_buckets_of_relative_positions() -> None:
    """As T5 makes them: a logarithm, cut off, and small distances as they are."""
    count = 64
    distance = places(count, I32)
    ratio = of(ops.Divide(), of(ops.Convert(F32), distance), spread(held(8.0), count))
    scale = of(ops.Divide(), of(ops.Log(), ratio), spread(of(ops.Log(), held(16.0)), count))
    steps = of(ops.Convert(I32), of(ops.Multiply(), scale, spread(held(8.0), count)))
    large = of(
        ops.Minimum(), of(ops.Add(), steps, spread(held(8, dtype=I32), count)), spread(held(15, dtype=I32), count)
    )
    is_small = of(ops.Compare("LT"), distance, spread(held(8, dtype=I32), count))
    buckets = of(ops.Select(), is_small, distance, large)
    wanted = [n if n < 8 else min(15, 8 + int(math.log(n / 8) / math.log(16) * 8 + 1e-9)) for n in range(count)]
    found = taken(held(*wanted, dtype=I32), buckets)
    assert found is not None and {one.kind for one in found} <= {"cut", "folded"}
    assert taken(held(*wanted[:-1], 15, dtype=I32), buckets) is None


# --- sentences


def test_sentences_are_put_together() -> None:
    pairs = [Taken("scalars", (k + 0.5, k + 0.50000001)) for k in range(5)]
    everything = [Taken("moved", (1e-5,)), Taken("moved", (2e-4,)), *reversed(pairs), Taken("folded"), Taken("folded")]
    masks = [Taken("filling", (-1e4,)), Taken("mask"), Taken("filling", (-1e9,)), Taken("cut", (0.1, 0.0))]
    found = taken_sentences([*everything, *masks])
    assert found == taken_sentences(reversed([*everything, *masks]))
    assert found == (
        "numbers that are cut off to whole ones are exact: 0.10000000000000001 stands for 0",
        MASKS,
        filling_assumption(-1e9),
        filling_assumption(-1e4),
        FOLDED,
        "constants that differ by the rounding of single precision are equal: 0.5 and 0.50000001, 1.5 and 1.50000001, "
        "2.5 and 2.50000001, 3.5 and 3.50000001 and more",
        "tables that one program holds are those that the other computes, which rounding moved by up to 2.0e-04",
    )
    assert taken_sentences([]) == ()


# --- functions of one byte


def reading(dtype: DType, build: Callable[[GraphBuilder, int], int], shape: tuple[int, ...] = (3,)) -> Graph:
    b = GraphBuilder()
    b.output("result", build(b, b.input("x", ops.Input("x", TensorType(shape, dtype)))))
    return b.build()


def is_one(left: Graph, right: Graph) -> bool:
    return by_value(Lemma("", left, right, "bytes"))


def with_number(op: ops.TensorOperator, dtype: DType, value: float | int | bool) -> Graph:
    return reading(dtype, lambda b, x: b.add(op, x, b.add(ops.Constant(TensorType((3,), dtype), (value,)))))


def cast(dtype: DType, target: DType) -> Graph:
    return reading(dtype, lambda b, x: b.add(ops.Convert(target), x))


def test_functions_of_one_byte() -> None:
    assert is_one(with_number(ops.And(), U8, 15), with_number(ops.Remainder(), U8, 16))
    assert not is_one(with_number(ops.And(), U8, 15), with_number(ops.Remainder(), U8, 15))
    assert not is_one(with_number(ops.And(), I8, 15), with_number(ops.Remainder(), I8, 16))
    assert is_one(with_number(ops.Add(), I8, -128), with_number(ops.Xor(), I8, -128))
    assert is_one(with_number(ops.Xor(), BOOL, True), with_number(ops.Compare("NE"), BOOL, True))
    assert not is_one(cast(U8, I32), cast(U8, I64))
    assert not is_one(cast(I8, F32), cast(I8, F16))


def test_functions_of_a_byte_with_an_inexact_step_are_refused() -> None:
    def tanh(b: GraphBuilder, x: int) -> int:
        return b.add(ops.Tanh(), b.add(ops.Convert(F32), x))

    assert not is_one(reading(I8, tanh), reading(I8, tanh))
    thirds = reading(
        U8,
        lambda b, x: b.add(
            ops.Divide(), b.add(ops.Convert(F32), x), b.add(ops.Constant(TensorType((3,), F32), (3.0,)))
        ),
    )
    assert not is_one(thirds, thirds)
    assert not is_one(with_number(ops.Divide(), I8, 0), with_number(ops.Divide(), I8, 0))
    halves = reading(
        U8,
        lambda b, x: b.add(
            ops.Divide(), b.add(ops.Convert(F32), x), b.add(ops.Constant(TensorType((3,), F32), (2.0,)))
        ),
    )
    assert is_one(halves, halves)


def looked_up(values: Values, mask: int = 15) -> Graph:
    def build(b: GraphBuilder, x: int) -> int:
        code = b.add(ops.And(), x, b.add(ops.Constant(TensorType((3,), U8), (mask,))))
        table = b.add(ops.Constant(TensorType((len(values),), F32), tuple(values)))
        return b.add(ops.Gather((), (0,), (), (), (0,), 1, (1,)), table, b.add(ops.Convert(I32), code))

    return reading(U8, build)


def test_look_ups_in_tables() -> None:
    halved = reading(
        U8,
        lambda b, x: b.add(
            ops.Divide(),
            b.add(ops.Convert(F32), b.add(ops.And(), x, b.add(ops.Constant(TensorType((3,), U8), (15,))))),
            b.add(ops.Constant(TensorType((3,), F32), (2.0,))),
        ),
    )
    assert is_one(looked_up([k / 2 for k in range(16)]), halved)
    assert not is_one(looked_up([*(k / 2 for k in range(15)), 7.0]), halved)
    assert not is_one(looked_up([k / 2 for k in range(16)], 31), looked_up([k / 2 for k in range(16)], 31))
    assert not is_one(looked_up([math.nan] * 16), looked_up([math.nan] * 16))


PLACED: list[Callable[[GraphBuilder, int], int]] = [
    lambda b, x: b.add(ops.Add(), x, b.add(ops.Iota(TensorType((3,), U8), 0))),
    lambda b, x: b.add(ops.Add(), x, b.add(ops.Constant(TensorType((3,), U8), (1, 2, 3)))),
    lambda b, x: b.add(ops.Reverse((0,)), x),
    lambda b, x: b.add(ops.BroadcastInDim((3,), (0,)), b.add(ops.Slice((0,), (1,), (1,)), x)),
    lambda b, x: b.add(ops.BroadcastInDim((3,), ()), b.add(ops.Reduce("maximum", (0,)), x)),
    lambda b, x: b.add(
        ops.Gather((), (0,), (), (), (0,), 1, (1,)), x, b.add(ops.Constant(TensorType((3,), I32), (0,)))
    ),
]


@pytest.mark.parametrize("build", PLACED)
def test_programs_that_know_where_an_element_is_are_refused(build: Callable[[GraphBuilder, int], int]) -> None:
    assert not is_one(reading(U8, build), reading(U8, build))


def test_two_inputs_and_wider_ones_are_refused() -> None:
    b = GraphBuilder()
    x, y = (b.input(name, ops.Input(name, TensorType((3,), U8))) for name in "xy")
    b.output("result", b.add(ops.Add(), x, y))
    assert not is_one(b.build(), b.build())
    assert not is_one(with_number(ops.Add(), I32, 0), with_number(ops.Add(), I32, 0))
    assert not is_one(reading(U8, lambda b, x: x), reading(I8, lambda b, x: b.add(ops.Convert(U8), x)))
    one_alone = reading(U8, lambda b, x: b.add(ops.Xor(), x, x))
    assert is_one(one_alone, program(held(0, dtype=U8, shape=(3,))))
    assert not is_one(one_alone, program(held(0, dtype=U8, shape=(4,))))
