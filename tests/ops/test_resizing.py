"""What operators say of sizes holds at other sizes too: larger free sizes give operands and attributes that fit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph
from rewright.ir.types import DType, TensorType
from rewright.ops.base import TensorOperator
from rewright.ops.resizing import with_sizes
from rewright.rules.free_sizes import Places, Shifted, places_of, substitute
from tests.ops.cases import CASES
from tests.programs import Builder

PAIRS = ((0, 1), (2, 3))
COLLECTIVES = {
    "all_reduce": (ops.AllReduce("sum", PAIRS), (4, 6), ["n0", "n1"]),
    "all_gather": (ops.AllGather(1, PAIRS), (4, 6), ["n0", "n1"]),
    "reduce_scatter": (ops.ReduceScatter("sum", 0, PAIRS), (4, 6), ["n0", "n1"]),
    "all_to_all": (ops.AllToAll(0, 1, PAIRS), (4, 6), ["n0", "n1"]),
    "all_to_all along one axis": (ops.AllToAll(1, 1, PAIRS, (2, 4), (3, 1)), (4, 6), ["n0"]),
    "collective_broadcast": (ops.CollectiveBroadcast(0, PAIRS), (4, 6), ["n0", "n1"]),
    "send": (ops.Send(1, 0), (4, 6), ["n0", "n1"]),
}


def applied(op: TensorOperator, *types: TensorType) -> Graph:
    build = Builder("one")
    operands = [build.input(f"x{k}", ops.Input(f"x{k}", own)) for k, own in enumerate(types)]
    build.output("y", build.add(op, *operands))
    return build.build()


def free_sizes(graph: Graph, factor: int) -> list[str]:
    """The sizes that are free, after a check that the program is well typed where they are so many times as large."""
    places = Places()
    found = places_of(graph, places, {})
    solution = places.solved()
    sizes = [[solution.size(place) for place in own.result] for own in found]
    larger = {name: factor * size for name, size in solution.example.items()}

    def at(mark: Shifted) -> Dim:
        return substitute(solution.size(mark.place) + mark.offset, larger)

    types = []
    for node, own, shape in zip(graph.nodes, found, sizes, strict=True):
        op = with_sizes(node.op, own.attributes, at)
        if isinstance(op, ops.Constant):
            op = node.op
        types.append(op.infer([types[p] for p in node.operands]))
        assert types[-1].shape == tuple(substitute(size, larger) for size in shape)
    return sorted(solution.example)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("constant", "top_k")])
@settings(max_examples=40, deadline=None)
@given(data=st.data(), factor=st.integers(1, 3))
def test_every_operator_fits_at_larger_sizes(name: str, data: st.DataObject, factor: int) -> None:
    drawn = data.draw(CASES[name])
    free_sizes(applied(drawn.op, *drawn.types), factor)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_fit_at_larger_sizes(name: str) -> None:
    op, shape, free = COLLECTIVES[name]
    assert free_sizes(applied(op, TensorType(shape, DType.F32)), 3) == free


def test_how_many_elements_are_chosen_is_free() -> None:
    rows = TensorType((4, 6), DType.F32)
    assert free_sizes(applied(ops.TopK(2, "values"), rows), 1) == ["n0", "n1", "n2"]
    assert free_sizes(applied(ops.TopK(6, "values"), rows), 2) == ["n0", "n1"]
