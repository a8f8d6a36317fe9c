"""What writes by index leave at a place, in normal form."""

from __future__ import annotations

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph
from rewright.ir.types import DType, TensorType
from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.denoting.denote import Denoter
from rewright.terms.normal.polynomials.atoms import ZERO, Polynomial, symbol
from tests.programs import Builder


def number(size: Dim) -> Polynomial:
    assert isinstance(size, int)
    return ZERO + size


def written(rows: tuple[int, ...] | None, count: int, size: int = 6) -> Graph:
    """``x`` with ``y`` written at numbers, or at indices from data."""
    b = Builder("written")
    x, y = b.tensor("x", (size,)), b.tensor("y", (count,))
    kind = TensorType((count,), DType.I64)
    indices = b.tensor("i", (count,), DType.I64) if rows is None else b.add(ops.Constant(kind, rows))
    b.output("z", b.add(ops.Scatter("replace", (), (0,), (), (), (0,), 1), x, indices, y))
    return b.build()


def at(graph: Graph, place: int | str, size: int = 6) -> str:
    context = new_context(10.0)
    denoter = Denoter(context, graph, number)
    if isinstance(place, int):
        return str(denoter.value(graph.outputs["z"], (ZERO + place,)))
    with context.ranges([(place, ZERO, ZERO + size)]):
        return str(denoter.value(graph.outputs["z"], (symbol(place),)))


def test_a_place_has_the_last_value_written_there() -> None:
    graph = written((4, 0, 4), 3)

    assert [at(graph, p) for p in range(6)] == ["y[1]", "x[1]", "x[2]", "x[3]", "y[2]", "x[5]"]


def test_places_outside_are_skipped() -> None:
    graph = written((-1, 6, 2), 3)

    assert [at(graph, p) for p in range(6)] == ["x[0]", "x[1]", "y[2]", "x[3]", "x[4]", "x[5]"]


def test_one_write_from_data_is_a_choice() -> None:
    b = Builder("choice")
    x, y, i = b.tensor("x", (6,)), b.tensor("y", (1,)), b.tensor("i", (1,), DType.I64)
    here = b.add(ops.Compare("EQ"), b.add(ops.Iota(TensorType((6,), DType.I64), 0)), b.spread(i, x, 0))
    b.output("z", b.add(ops.Select(), here, b.spread(y, x, 0), x))

    assert at(written(None, 1), "p") == at(b.build(), "p")


def test_nothing_is_known_of_several_writes_from_data() -> None:
    """Neither that one of them met the place, nor that none did."""
    found = at(written(None, 3), "p")

    assert "otherwise" in found and "last" in found


def test_nothing_written_leaves_what_was() -> None:
    assert at(written((), 0), "p") == "x[p]"


def test_rows_counted_by_an_index_have_one_write_each() -> None:
    b = Builder("counted")
    x, y, i = b.tensor("x", (4, 6)), b.tensor("y", (4,)), b.tensor("i", (4, 1), DType.I64)
    rows = b.add(ops.Iota(TensorType((4, 1), DType.I64), 0))
    pairs = b.add(ops.Concatenate(1), rows, i)
    b.output("z", b.add(ops.Scatter("replace", (), (0, 1), (), (), (0, 1), 1), x, pairs, y))
    graph = b.build()
    context = new_context(10.0)
    with context.ranges([("r", ZERO, ZERO + 4), ("p", ZERO, ZERO + 6)]):
        found = str(Denoter(context, graph, number).value(graph.outputs["z"], (symbol("r"), symbol("p"))))

    assert found.replace("-i[r, 0] + p", "i[r, 0] - p") == "(if i[r, 0] - p = 0 then y[r] else x[r, p])"


def test_the_last_of_truth_values_is_no_disjunction() -> None:
    """``x[[0, 0]] = y`` leaves ``y[1]``, whatever ``y[0]`` is."""
    b = Builder("flags")
    x, y = b.tensor("x", (1,), DType.BOOL), b.tensor("y", (2,), DType.BOOL)
    indices = b.add(ops.Constant(TensorType((2,), DType.I64), (0, 0)))
    b.output("z", b.add(ops.Scatter("replace", (), (0,), (), (), (0,), 1), x, indices, y))

    assert "max" not in at(b.build(), 0, 1)


def test_one_number_is_there_wherever_any_index_says() -> None:
    b = Builder("marked")
    x, i = b.tensor("x", (6,)), b.tensor("i", (3,), DType.I64)
    ones = [b.add(ops.Constant(TensorType((n,), DType.F32), (1.0,))) for n in (3, 6)]
    places = b.add(ops.Iota(TensorType((6, 3), DType.I64), 0))
    here = b.add(ops.Compare("EQ"), places, b.add(ops.BroadcastInDim((6, 3), (1,)), i))
    b.output("z", b.add(ops.Scatter("replace", (), (0,), (), (), (0,), 1), x, i, ones[0]))
    b.output("w", b.add(ops.Select(), b.add(ops.Reduce("or", (1,)), here), ones[1], x))
    graph, context = b.build(), new_context(10.0)
    denoter = Denoter(context, graph, number)
    with context.ranges([("p", ZERO, ZERO + 6)]):
        found = [str(denoter.value(graph.outputs[name], (symbol("p"),))) for name in ("z", "w")]

    assert found[0] == found[1]
