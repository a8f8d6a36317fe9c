"""What operators say of the integers that they read and make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from rewright import ops
from rewright.ir.types import DType, TensorType
from rewright.ops.base import TensorOperator
from rewright.ops.counts import Counts

IDS = TensorType((4,), DType.I32)
CUMULATIVE = ops.ReduceWindow("sum", (4,), (1,), ((3, 0),))
LOOKUP = ops.Gather((1,), (0,), (), (), (0,), 1, (1, 8))
BINCOUNT = ops.Scatter("sum", (), (0,), (), (), (0,), 1)


@dataclass
class Said(Counts):
    """What was said; the result is -1, operands are numbered."""

    found: list[object] = field(default_factory=list[object])

    def same(self, tensors: Sequence[int], /) -> None:
        if len(tensors) > 1:
            self.found.append(("same", *tensors))

    def index(self, places: int, tensor: int, axis: int, /) -> None:
        self.found.append(("index", places, tensor, axis))

    def number(self, result: int, tensor: int, axis: int, /) -> None:
        self.found.append(("number", result, tensor, axis))

    def test(self, operands: Sequence[int], /) -> None:
        self.found.append(("test", *operands))

    def total(self, result: int, operand: int, axes: Sequence[int], /) -> None:
        self.found.append(("total", result, operand, *axes))

    def mix(self, result: int, operands: Sequence[int], /) -> None:
        self.found.append(("mix", result, *operands))


@pytest.mark.parametrize(
    ("op", "count", "said"),
    [
        (ops.Iota(IDS, 0), 0, [("number", -1, -1, 0)]),
        (ops.Sort(0, False, "indices"), 1, [("number", -1, 0, 0)]),
        (ops.TopK(2, "values"), 1, [("same", -1, 0)]),
        (ops.Reshape((2, 2)), 1, [("same", -1, 0)]),
        (ops.Add(), 2, [("same", -1, 0, 1)]),
        (ops.Select(), 3, [("same", -1, 1, 2)]),
        (ops.Compare("EQ"), 2, [("same", 0, 1), ("test", 0, 1)]),
        (ops.Compare("LT"), 2, [("same", 0, 1)]),
        (ops.Multiply(), 2, [("mix", -1, 0, 1)]),
        (ops.Remainder(), 2, [("mix", -1, 0, 1), ("same", -1, 0, 1)]),
        (ops.And(), 2, [("mix", -1, 0, 1)]),
        (ops.Sign(), 1, []),
        (ops.Reduce("maximum", (0,)), 1, [("same", -1, 0)]),
        (ops.Reduce("sum", (0, 1)), 1, [("total", -1, 0, 0, 1)]),
        (ops.Reduce("product", (0,)), 1, []),
        (CUMULATIVE, 1, [("total", -1, 0, 0)]),
        (LOOKUP, 2, [("same", -1, 0), ("index", 1, 0, 0)]),
        (BINCOUNT, 3, [("same", -1, 0, 2), ("index", 1, 0, 0)]),
        (ops.AllReduce("sum", ((0, 1),)), 1, [("same", -1, 0)]),
        (ops.DotGeneral((), (), (0,), (0,)), 2, []),
    ],
    ids=lambda value: value.name if isinstance(value, TensorOperator) else None,
)
def test_operators_say_what_they_count(op: TensorOperator, count: int, said: list[object]) -> None:
    recorder = Said()
    op.relate_counts(recorder, range(count), -1)
    assert [one for one in recorder.found if one != ("same", -1)] == said
