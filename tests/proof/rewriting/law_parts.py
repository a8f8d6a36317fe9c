"""Small programs that laws are about, written node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rewright import ops
from rewright.analysis.values import Setting, facts_of
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import REAL, UNKNOWN, Facts, facts_between
from rewright.proof.rewriting.laws import LAWS, remake

F, B, I64 = DType.F64, DType.BOOL, DType.I64
ROWS, SIZE = 3, 4
POSITIVE = facts_between(0, 50, zero=False)
Write = Callable[["Part"], int]


class Part(GraphBuilder):
    """Writes a program over inputs, of which something may be given."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k
        self.given: dict[str, Facts] = {}

    def read(self, name: str, shape: Shape = (ROWS, SIZE), dtype: DType = F, known: Facts = REAL) -> int:
        self.given[name] = known
        return self.input(name, ops.Input(name, TensorType(shape, dtype)))

    def number(self, value: float, shape: Shape = (ROWS, SIZE), dtype: DType = F) -> int:
        return self.add(ops.Constant(TensorType(shape, dtype), (value,)))

    def chosen(self, x: int, k: int | None = None) -> int:
        return self.add(ops.TopK(self.k if k is None else k, "indices"), x)

    def values(self, x: int) -> int:
        return self.add(ops.TopK(self.k, "values"), x)

    def spread(self, x: int, shape: Shape, *dimensions: int) -> int:
        return self.add(ops.BroadcastInDim(shape, dimensions), x)

    def written(self, base: int, places: int, updates: int) -> int:
        """A tensor written at places of each row."""
        rows = tuple(range(self.type(base).rank - 1))
        last = (len(rows),)
        op = ops.Scatter("replace", (), last, rows, rows, last, self.type(places).rank)
        return self.add(op, base, places, updates)

    def marks(self, places: int, dtype: DType = B, shape: Shape = (ROWS, SIZE), value: float = 1) -> int:
        """Ones, or truths, at places of each row, and zeros elsewhere."""
        ones = self.number(value, self.type(places).shape, dtype)
        return self.written(self.number(0, shape, dtype), places, ones)

    def looked_up(self, x: int, places: int) -> int:
        """The elements of each row at places."""
        rank = self.type(x).rank
        rows, last = tuple(range(rank - 1)), (rank - 1,)
        return self.add(ops.Gather((), last, rows, rows, last, rank, (1,) * rank), x, places)

    def rows_at(self, table: int, places: int) -> int:
        """Whole rows of a table at places."""
        shape, rank = self.type(table).shape, self.type(places).rank
        offsets = tuple(range(rank, rank + len(shape) - 1))
        return self.add(ops.Gather(offsets, (0,), (), (), (0,), rank, (1, *shape[1:])), table, places)

    def of(self, op: Operator, *operands: int) -> int:
        return self.add(op, *operands)


@dataclass(frozen=True)
class Small:
    """A small program, and what is given of its inputs."""

    graph: Graph
    given: Mapping[str, Facts] = field(default_factory=dict[str, Facts])

    def made(self, law: str) -> Graph | None:
        """The program with its output made another way; None where the law says nothing of it."""
        known = facts_of(self.graph, Setting(given=self.given, floats=UNKNOWN, assumes=True))
        return remake(self.graph, LAWS[law](self.graph, known))


def small(write: Write, k: int = 2) -> Small:
    b = Part(k)
    b.output("result", write(b))
    return Small(b.build(), b.given)
