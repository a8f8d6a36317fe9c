"""Content hashes: equal for equal computations, different for everything that changes one."""

from rewright import ops
from rewright.ir.digest import digest, node_digests
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, SourceSpan, TensorType

TYPE = TensorType((2, 3), DType.F32)


def difference(
    left: str = "x", right: str = "y", *, line: int = 1, swapped: bool = False, output: str = "z", dead: bool = False
) -> Graph:
    """``exp(left) - exp(right)``."""
    builder = GraphBuilder()
    builder.span = SourceSpan("model.py", line)
    first = builder.input(left, ops.Input(left, TYPE))
    second = builder.input(right, ops.Input(right, TYPE))
    if dead:
        builder.add(ops.Negate(), first)
    raised = [builder.add(ops.Exponential(), first), builder.add(ops.Exponential(), second)]
    if swapped:
        raised.reverse()
    builder.output(output, builder.add(ops.Subtract(), *raised))
    return builder.build()


def test_equal_graphs() -> None:
    assert digest(difference()) == digest(difference())
    assert len(digest(difference())) == 64


def test_source_lines_count_only_on_request() -> None:
    assert digest(difference(line=1)) == digest(difference(line=2))
    assert digest(difference(line=1), spans=True) != digest(difference(line=2), spans=True)


def test_names_count_unless_left_out() -> None:
    renamed = difference("a", "b", output="c")
    assert digest(difference()) != digest(renamed)
    assert digest(difference(), names=False) == digest(renamed, names=False)


def test_the_order_of_operands_counts() -> None:
    assert digest(difference()) != digest(difference(swapped=True))
    assert digest(difference(), names=False) != digest(difference(swapped=True), names=False)


def test_dead_nodes_do_not_count() -> None:
    assert digest(difference()) == digest(difference(dead=True))


def test_a_shared_node_and_its_copy_are_one_expression() -> None:
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", TYPE))
    copies = [builder.add(ops.Exponential(), x) for _ in range(2)]
    builder.output("y", builder.add(ops.Add(), *copies))
    digests = node_digests(builder.build())
    assert digests[1] == digests[2]


def test_attributes_and_types_count() -> None:
    def reduced(kind: ops.Reduce, dtype: DType) -> str:
        builder = GraphBuilder()
        x = builder.input("x", ops.Input("x", TensorType((2, 3), dtype)))
        builder.output("y", builder.add(kind, x))
        return digest(builder.build(), names=False)

    variants = [
        reduced(ops.Reduce("sum", (0,)), DType.F32),
        reduced(ops.Reduce("sum", (1,)), DType.F32),
        reduced(ops.Reduce("maximum", (0,)), DType.F32),
        reduced(ops.Reduce("sum", (0,)), DType.F64),
    ]
    assert len(set(variants)) == 4
