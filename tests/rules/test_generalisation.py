"""From two programs at their sizes to a rule for all sizes: what is free, what is proved, and what is an instance."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from rewright import ops
from rewright.ir.dims import symbol
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.rules.counterexample import find
from rewright.rules.generalisation import generalise
from rewright.rules.reading import Counted, Given
from rewright.rules.scheme import Scheme

Sides = tuple[Graph, Graph]
SECONDS = 60.0
"""More than any scheme here needs: the tests wait for the proof, not for the clock."""


class Writer:
    """A program over float tensors."""

    def __init__(self) -> None:
        self.builder = GraphBuilder("part")

    def input(self, name: str, *shape: int) -> int:
        return self.builder.input(name, ops.Input(name, TensorType(shape, DType.F32)))

    def number(self, value: float, *shape: int) -> int:
        return self.builder.add(ops.Constant(TensorType(shape, DType.F32), (value,)))

    def table(self, *values: float) -> int:
        return self.builder.add(ops.Constant(TensorType((len(values),), DType.F32), values))

    def __call__(self, op: ops.Operator, *operands: int) -> int:
        return self.builder.add(op, *operands)

    def done(self, position: int) -> Graph:
        self.builder.output("result", position)
        return self.builder.build()


def mean(w: Writer, x: int, rows: int, columns: int) -> int:
    total = w(ops.Reshape((rows, 1)), w(ops.Reduce("sum", (1,)), x))
    return w(ops.Divide(), total, w.number(float(columns), rows, 1))


def variances(rows: int, columns: int, divisor: int | None = None) -> Sides:
    """The mean of squared differences, and the mean of squares without the squared mean."""
    w = Writer()
    x = w.input("x", rows, columns)
    apart = w(ops.Subtract(), x, w(ops.BroadcastInDim((rows, columns), (0, 1)), mean(w, x, rows, columns)))
    left = w.done(mean(w, w(ops.Multiply(), apart, apart), rows, columns))
    w = Writer()
    x = w.input("x", rows, columns)
    known = mean(w, x, rows, divisor or columns)
    squares = mean(w, w(ops.Multiply(), x, x), rows, columns)
    return left, w.done(w(ops.Subtract(), squares, w(ops.Multiply(), known, known)))


def rotations(heads: int, half: int, *, swapped: bool = False) -> Sides:
    """Two halves put beside each other the other way round, by slices and by a flip of an axis of two."""
    w, shape = Writer(), (heads, 2 * half)
    x = w.input("x", *shape)
    first = w(ops.Slice((0, 0), (heads, half), (1, 1)), x)
    second = w(ops.Slice((0, half), shape, (1, 1)), x)
    left = w.done(w(ops.Concatenate(1), *((first, second) if swapped else (second, first))))
    w = Writer()
    x = w(ops.Reshape((heads, 2, half)), w.input("x", *shape))
    return left, w.done(w(ops.Reshape(shape), w(ops.Reverse((1,)), x)))


def fused(rows: int, inner: int, sizes: Sequence[int]) -> Sides:
    """One product with joined weights, cut up and put together, and one product for each weight."""
    w = Writer()
    x, weights = w.input("x", rows, inner), [w.input(f"w{k}", inner, n) for k, n in enumerate(sizes)]
    dot = ops.DotGeneral((), (), (1,), (0,))
    whole = w(dot, x, w(ops.Concatenate(1), *weights))
    ends = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
    cuts = [w(ops.Slice((0, a), (rows, b), (1, 1)), whole) for a, b in zip(ends, ends[1:], strict=False)]
    left = w.done(w(ops.Concatenate(1), *reversed(cuts)))
    w = Writer()
    x, weights = w.input("x", rows, inner), [w.input(f"w{k}", inner, n) for k, n in enumerate(sizes)]
    return left, w.done(w(ops.Concatenate(1), *(w(dot, x, weight) for weight in reversed(weights))))


def scaled(rows: int, columns: int, scale: float, *, inverse: bool = True) -> Sides:
    """A product with a number, and a quotient by its inverse."""
    w = Writer()
    left = w.done(w(ops.Multiply(), w.input("x", rows, columns), w.number(scale, rows, columns)))
    w = Writer()
    other = w.number(1 / scale if inverse else scale, rows, columns)
    return left, w.done(w(ops.Divide(), w.input("x", rows, columns), other))


def tables(rows: int, values: Sequence[float]) -> Sides:
    """A row of numbers added before or after a sum with another tensor."""
    w, shape = Writer(), (rows, len(values))
    x, y = w.input("x", *shape), w.input("y", *shape)
    row = w(ops.BroadcastInDim(shape, (1,)), w.table(*values))
    left = w.done(w(ops.Add(), w(ops.Add(), x, row), y))
    w = Writer()
    x, y = w.input("x", *shape), w.input("y", *shape)
    row = w(ops.BroadcastInDim(shape, (1,)), w.table(*values))
    return left, w.done(w(ops.Add(), x, w(ops.Add(), y, row)))


CASES: list[tuple[str, Callable[..., Sides], tuple[object, ...], tuple[object, ...]]] = [
    ("variance", variances, (3, 8), (5, 12)),
    ("rotation", rotations, (4, 4), (3, 10)),
    ("one product for three", fused, (3, 8, (8, 4, 4)), (2, 6, (12, 3, 5))),
    ("scale", scaled, (3, 4, 0.25), (7, 2, 0.125)),
    ("table", tables, (3, (0.5, 1.5, 2.5)), (4, (7.0, 8.5))),
]


@pytest.mark.parametrize(("make", "example", "other"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_programs_of_other_sizes_are_an_instance(
    make: Callable[..., Sides], example: tuple[object, ...], other: tuple[object, ...]
) -> None:
    scheme = generalise(*make(*example), SECONDS)
    assert scheme is not None
    assert scheme.covers(*make(*example))
    assert scheme.covers(*make(*other))
    assert find(scheme.rule, tries=6, seconds=0.5) is None


def test_a_statement_in_sizes() -> None:
    scheme = generalise(*rotations(4, 4), SECONDS)
    assert scheme is not None
    assert scheme.statement == (
        "concatenate[1](t0[:, n1:], t0[:, :n1]) == reshape[<n0>, <2*n1>](reverse[1](reshape[<n0>, 2, <n1>](t0)))"
    )


def test_a_size_in_two_types_of_integers_is_stated_once() -> None:
    def counted(w: Writer, dtype: DType) -> int:
        kind = TensorType((5, 7), dtype)
        rows = w(ops.Multiply(), w(ops.Iota(kind, 0)), w(ops.Constant(kind, (7,))))
        return w(ops.Convert(DType.F32), w(ops.Reshape((35,)), w(ops.Add(), rows, w(ops.Iota(kind, 1)))))

    w = Writer()
    left = w.done(w(ops.Add(), counted(w, DType.I32), w(ops.Multiply(), counted(w, DType.I64), w.input("x", 35))))
    w = Writer()
    places = [w(ops.Convert(DType.F32), w(ops.Iota(TensorType((35,), dtype), 0))) for dtype in (DType.I32, DType.I64)]
    right = w.done(w(ops.Add(), places[0], w(ops.Multiply(), places[1], w.input("x", 35))))
    scheme = generalise(left, right, SECONDS)
    assert scheme is not None
    assert "convert[i64](n1)" in scheme.statement


def test_sizes_that_are_equal_by_chance_are_two() -> None:
    """Eight rows of eight elements say nothing about rows and elements."""
    scheme = generalise(*variances(8, 8), SECONDS)
    assert scheme is not None
    assert scheme.covers(*variances(3, 8))


def test_what_is_no_instance() -> None:
    variance, rotation, scale = (
        generalise(*pair, SECONDS) for pair in (variances(3, 8), rotations(4, 4), scaled(3, 4, 0.25))
    )
    assert variance is not None
    assert rotation is not None
    assert scale is not None
    assert not variance.covers(*variances(5, 12, divisor=11))
    assert not rotation.covers(*rotations(3, 10, swapped=True))
    assert not scale.covers(*scaled(3, 4, 0.25, inverse=False))
    assert not scale.covers(*scaled(3, 4, 0.3)), "1 / 0.3 is rounded"


def test_nothing_is_made_of_programs_that_differ() -> None:
    assert generalise(*variances(3, 8, divisor=7), SECONDS) is None
    assert generalise(*rotations(4, 4, swapped=True), SECONDS) is None
    assert generalise(*scaled(3, 4, 0.25, inverse=False), SECONDS) is None


def test_a_number_that_is_not_finite_is_no_given_number() -> None:
    scheme = generalise(*tables(3, (0.5, 1.5)), SECONDS)
    assert scheme is not None
    assert not scheme.covers(*tables(3, (0.5, float("inf"))))
    assert not scheme.covers(*tables(3, (0.5, float("nan"))))


def bounded(rows: int, columns: int, size: int) -> Sides:
    """The first elements of a row of positions, from a table that is longer and from one that is not."""
    w = Writer()
    positions = w(ops.Iota(TensorType((size,), DType.F32), 0))
    first = w(ops.Slice((0,), (columns,), (1,)), positions)
    row = w(ops.BroadcastInDim((rows, columns), (1,)), first)
    right = w.done(w(ops.Multiply(), w.input("x", rows, columns), row))
    w = Writer()
    row = w(ops.Iota(TensorType((rows, columns), DType.F32), 1))
    return w.done(w(ops.Multiply(), w.input("x", rows, columns), row)), right


def test_a_condition_on_sizes() -> None:
    """The table of one side must be long enough, which the other side does not say."""
    scheme = generalise(*bounded(2, 5, 64), SECONDS)
    assert scheme is not None
    assert scheme.statement.endswith("where n1 <= n2")
    assert scheme.covers(*bounded(3, 7, 8))
    assert scheme.covers(*bounded(3, 7, 7)), "all of the table"


def test_symbols_are_sizes_too() -> None:
    scheme = generalise(*variances(3, 8), SECONDS)
    assert scheme is not None
    left, right = (resized(graph) for graph in variances(3, 8))
    assert scheme.covers(left, right)


def resized(graph: Graph) -> Graph:
    """The program with a symbol for its rows."""
    builder = GraphBuilder("part")
    for node in graph.nodes:
        op = node.op
        shape = tuple(symbol("s") if n == 3 else n for n in node.type.shape)
        if isinstance(op, ops.Input):
            builder.input(op.label, ops.Input(op.label, TensorType(shape, DType.F32)))
        elif isinstance(op, ops.Reshape | ops.BroadcastInDim):
            builder.add(replace(op, shape=shape), *node.operands)
        elif isinstance(op, ops.Constant):
            builder.add(replace(op, tensor=TensorType(shape, DType.F32)))
        else:
            builder.add(op, *node.operands)
    builder.output("result", graph.outputs["result"])
    return builder.build()


def test_parts_that_do_not_belong_together() -> None:
    scheme = generalise(*scaled(3, 4, 0.25), SECONDS)
    assert scheme is not None
    (where, number), *rest = scheme.numbers
    assert isinstance(number, Given)
    multiply = (0, next(p for p, node in enumerate(scheme.left.nodes) if isinstance(node.op, ops.Multiply)))
    wrong: list[tuple[Scheme, str]] = [
        (replace(scheme, numbers=((multiply, number), *rest)), "no number of the programs"),
        (replace(scheme, numbers=((multiply, Counted(3)), *rest)), "no number of the programs"),
        (replace(scheme, numbers=(((0, 99), number),)), "no number of the programs"),
        (replace(scheme, numbers=((where, replace(number, name="t0")), *rest)), "two meanings"),
        (replace(scheme, numbers=(*scheme.numbers, (where, Counted(3)))), "two meanings"),
        (replace(scheme, positive=("t0",)), "above zero"),
    ]
    scheme.check()
    for other, why in wrong:
        with pytest.raises(RewrightError, match=why):
            other.check()


def random_pair(source: random.Random, sizes: Sequence[int]) -> Sides:
    """A chain of moves and sums, and the same chain with neighbours that commute the other way round."""
    rows, columns = sizes

    def chain(steps: Sequence[str]) -> Graph:
        w = Writer()
        x, shape = w.input("x", rows, columns), [rows, columns]
        for step in steps:
            if step == "transpose":
                x = w(ops.Transpose((1, 0)), x)
                shape.reverse()
            elif step == "scale":
                x = w(ops.Multiply(), x, w.number(3.5, *shape))
            elif step == "flat":
                x = w(ops.Reshape(tuple(shape)), w(ops.Reshape((shape[0] * shape[1],)), x))
            else:
                x = w(ops.Negate(), x)
        return w.done(x)

    steps = [source.choice(("transpose", "scale", "flat", "negate")) for _ in range(5)]
    others = [*steps]
    source.shuffle(others)
    return chain(steps), chain(others)


def test_random_chains_hold_at_all_sizes() -> None:
    """Steps in another order compute the same, whatever the order."""
    source = random.Random(3)
    for number in range(12):
        state = random.Random(number)
        scheme = generalise(*random_pair(state, (3, 4)), SECONDS)
        assert scheme is not None, number
        sizes = source.sample(range(2, 9), 2)
        assert scheme.covers(*random_pair(random.Random(number), sizes)), number
