"""Replacing one node of a program."""

import pytest

from rewright import ops
from rewright.blame.editing import (
    Editor,
    edit_program,
    insert_node,
    replace_node,
    same_occurrence,
    sites,
    with_input,
)
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, Node, validate
from tests.programs import ALL, Builder, mlp


def small() -> Graph:
    build = Builder("small")
    x = build.tensor("x", (2, 3))
    first = build.add(ops.Tanh(), x)
    second = build.add(ops.Negate(), first)
    build.output("first", first)
    build.output("second", second)
    return build.build()


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def test_a_node_can_be_left_out() -> None:
    graph, position = replace_node(small(), 1, lambda editor, node: node.operands[0])
    assert names(graph) == ["input", "negate"]
    assert position == 0
    assert graph.outputs == {"first": 0, "second": 1}


def test_several_nodes_can_stand_for_one() -> None:
    def twice(editor: Editor, node: Node) -> int:
        return editor.add(node.op, editor.add(node.op, *node.operands))

    graph, position = replace_node(small(), 1, twice)
    assert names(graph) == ["input", "tanh", "tanh", "negate"]
    assert position == 2
    assert graph.nodes[2].span == small().nodes[1].span
    assert graph.nodes[3].operands == (2,)
    assert graph.outputs == {"first": 2, "second": 3}
    validate(graph)


def test_types_after_the_change_are_inferred_again() -> None:
    graph, _ = replace_node(small(), 1, lambda editor, node: editor.add(ops.Transpose((1, 0)), *node.operands))
    assert graph.nodes[2].type.shape == (3, 2)
    validate(graph)


def test_a_change_that_does_not_fit_names_the_node() -> None:
    _, program = mlp(2)
    graph = program.graphs[0]
    position = next(p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Tanh))
    with pytest.raises(TypeMismatch, match=r"dot_general\(.*\) at parallel.py:10"):
        replace_node(graph, position, lambda editor, node: editor.add(ops.Transpose((1, 0)), *node.operands))


def test_all_ranks_change_at_their_own_position() -> None:
    _, program = mlp(2)
    site = sites(program)[0]
    edited, positions = edit_program(program, site, lambda editor, node: editor.add(node.op))
    assert positions == site == {0: 0, 1: 0}
    assert edited == program


@pytest.mark.parametrize("name", ALL)
def test_places_correspond_across_ranks(name: str) -> None:
    _, program = ALL[name](2)
    for site in sites(program):
        assert len({program.graphs[rank].nodes[p].op.name for rank, p in site.items()}) == 1


def test_places_of_programs_that_differ_correspond_by_source_line() -> None:
    _, program = mlp(2)
    shorter, _ = replace_node(program.graphs[1], 9, lambda editor, node: node.operands[0])
    both = sites(type(program)((program.graphs[0], shorter), program.mesh, program.inputs, program.outputs))
    alone = [site for site in both if len(site) == 1]
    assert [program.graphs[0].nodes[site[0]].op.name for site in alone] == [program.graphs[0].nodes[9].op.name]


def test_a_node_is_inserted_and_read_from_there_on() -> None:
    graph = insert_node(small(), 2, ops.Cosine(), [1], 1)
    validate(graph)
    assert names(graph) == ["input", "tanh", "cosine", "negate"]
    assert graph.nodes[3].operands == (2,)
    assert graph.outputs == {"first": 2, "second": 3}


def test_what_is_inserted_has_to_fit() -> None:
    with pytest.raises(TypeMismatch, match="is read"):
        insert_node(small(), 2, ops.Reduce("sum", (0,)), [1], 1)


def test_an_input_takes_the_place_of_a_node_for_all_readers_or_for_one() -> None:
    build = Builder("read twice")
    x = build.tensor("x", (2,))
    y = build.add(ops.Tanh(), x)
    build.output("sine", build.add(ops.Sine(), y))
    build.output("cosine", build.add(ops.Cosine(), y))
    graph = build.build()
    everywhere, there = with_input(graph, y, "given"), with_input(graph, y, "given", only=graph.outputs["cosine"])
    for changed in (everywhere, there):
        validate(changed)
        assert changed.inputs.keys() == {"x", "given"}
    assert names(everywhere) == ["input", "input", "sine", "cosine"]
    reads = {name: there.nodes[there.nodes[position].operands[0]].op.name for name, position in there.outputs.items()}
    assert reads == {"sine": "tanh", "cosine": "input"}


def test_a_node_is_found_again_by_operator_and_line() -> None:
    graph = small()
    longer = insert_node(graph, 1, ops.Cosine(), [0], 0)
    assert same_occurrence(graph, 2, longer) == 3
    assert same_occurrence(longer, 1, graph) is None
