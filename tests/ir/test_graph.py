"""Building and validating graphs, and errors that name node, operator, shapes and source line."""

import pytest

from rewright import ops
from rewright.frontends.ranks import share_nodes
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, GraphBuilder, Node, validate
from rewright.ir.types import DType, SourceSpan, TensorType

MATRIX = TensorType((2, 3), DType.F32)
LINE = SourceSpan("/home/user/project/model.py", 12, "forward", "layers.0.mlp")


def small() -> Graph:
    builder = GraphBuilder("small")
    builder.span = LINE
    x = builder.input("x", ops.Input("x", MATRIX))
    builder.input("unused", ops.Input("unused", MATRIX))
    builder.add(ops.Negate(), x)
    total = builder.add(ops.Reduce("sum", (1,)), builder.add(ops.Exponential(), x))
    builder.output("total", total)
    return builder.build()


def test_building() -> None:
    graph = small()
    assert [node.op.name for node in graph.nodes] == ["input", "input", "negate", "exponential", "reduce"]
    assert graph.inputs == {"x": 0, "unused": 1}
    assert graph.outputs == {"total": 4}
    assert graph.nodes[4].type == TensorType((2,), DType.F32)
    assert graph.nodes[4].span is LINE
    validate(graph)


def test_users_and_live_nodes() -> None:
    graph = small()
    assert graph.users() == [[2, 3], [], [], [4], []]
    assert graph.live() == {0, 1, 3, 4}


def test_a_node_is_checked_when_it_is_added() -> None:
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", MATRIX))
    y = builder.input("y", ops.Input("y", TensorType((3, 2), DType.F32)))
    with pytest.raises(TypeMismatch) as caught:
        builder.add(ops.Add(), x, y, span=LINE)
    assert str(caught.value) == (
        "node %2 add(2x3xf32, 3x2xf32) at model.py:12: "
        "add needs operands of one shape and got 2x3xf32 and 3x2xf32; broadcast one to the other"
    )


def test_names_are_given_once() -> None:
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", MATRIX))
    builder.output("y", x)
    with pytest.raises(TypeMismatch, match="input 'x' is declared twice"):
        builder.input("x", ops.Input("x", MATRIX))
    with pytest.raises(TypeMismatch, match="output 'y' is declared twice"):
        builder.output("y", x)


def spoiled(*nodes: Node, outputs: dict[str, int] | None = None) -> Graph:
    return Graph(nodes, {"x": 0}, outputs or {})


INPUT = Node(ops.Input("x", MATRIX), (), MATRIX)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            spoiled(INPUT, Node(ops.Negate(), (1,), MATRIX, LINE)),
            "negate at model.py:12: operand %1 is not an earlier",
        ),
        (spoiled(INPUT, Node(ops.Negate(), (-1,), MATRIX)), "operand %-1 is not an earlier node"),
        (
            spoiled(INPUT, Node(ops.Reduce("sum", (0,)), (0,), MATRIX, LINE)),
            r"%1 reduce\(2x3xf32\) at model.py:12: the node says 2x3xf32 and the operator gives 3xf32",
        ),
        (spoiled(INPUT, Node(ops.Add(), (0,), MATRIX)), "add takes 2 operands and got 1"),
        (spoiled(INPUT, outputs={"y": 3}), "'y' names node %3, but the graph has 1 nodes"),
    ],
)
def test_validation_finds_what_a_builder_would_refuse(graph: Graph, message: str) -> None:
    with pytest.raises(TypeMismatch, match=message):
        validate(graph)


def test_spans_read_well() -> None:
    assert str(LINE) == "model.py:12"
    assert str(SourceSpan("a.py", 3, scope="softmax", backward=True)) == "softmax at a.py:3 (backward)"
    assert str(SourceSpan(module_path="layers.0")) == "layers.0"
    assert str(SourceSpan()) == "unknown line"


def test_equal_nodes_of_programs_are_one_object_but_not_zeros_of_other_signs() -> None:
    def program(zero: float) -> Graph:
        b = GraphBuilder()
        x = b.input("x", ops.Input("x", TensorType((2,), DType.F32)))
        b.output("y", b.add(ops.Add(), x, b.add(ops.Constant(TensorType((2,), DType.F32), (zero,)))))
        return b.build()

    graphs = program(0.0), program(-0.0)
    one, other = share_nodes(graphs)
    assert (one, other) == graphs
    assert one.nodes[2] is other.nodes[2]
    (zero,), (minus,) = (
        graph.nodes[1].op.values for graph in (one, other) if isinstance(graph.nodes[1].op, ops.Constant)
    )
    assert (str(zero), str(minus)) == ("0.0", "-0.0")
