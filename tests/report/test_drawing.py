"""Pictures of graphs: what is shown, that it is laid out without overlaps, and that it is well-formed."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.mutants import generate
from rewright.refine import refine
from rewright.report.drawing import draw_finding, draw_graph, draw_pair
from rewright.report.drawing.layers import lay_out
from rewright.report.drawing.neighbourhood import correspondence, neighbourhood_of
from tests.programs import ALL, attention
from tests.refine.stacks import stack

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    count = draw(st.integers(1, 14))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=24)) if pairs else []
    return list(range(count)), edges


@given(graphs())
def test_a_layout_has_edges_downwards_and_no_overlaps(graph: tuple[list[int], list[tuple[int, int]]]) -> None:
    nodes, edges = graph
    widths = {n: 40.0 + 10 * (n % 5) for n in nodes}
    layout = lay_out(nodes, edges, widths, 20.0)
    assert all(layout.layer[a] < layout.layer[b] for a, b in edges)
    assert all(
        layout.x[n] - widths[n] / 2 >= -1e-6 and layout.x[n] + widths[n] / 2 <= layout.width + 1e-6 for n in nodes
    )
    for a in nodes:
        for b in nodes[a + 1 :]:
            if layout.layer[a] == layout.layer[b]:
                assert abs(layout.x[a] - layout.x[b]) >= (widths[a] + widths[b]) / 2 + 20 - 1e-6
    for (a, b), route in layout.routes.items():
        assert [level for _, level in route] == list(range(layout.layer[a], layout.layer[b] + 1))


def test_a_chain_is_straight() -> None:
    layout = lay_out([0, 1, 2, 3], [(0, 1), (1, 2), (2, 3)], dict.fromkeys(range(4), 50.0), 20.0)
    assert len({round(x, 6) for x in layout.x.values()}) == 1
    assert layout.layer == {0: 0, 1: 1, 2: 2, 3: 3}


def test_two_trees_do_not_cross() -> None:
    """The order of the first layer is against that of the second one; sweeps put it right."""
    layout = lay_out([0, 1, 2, 3], [(0, 3), (1, 2)], dict.fromkeys(range(4), 50.0), 20.0)
    assert (layout.x[0] < layout.x[1]) == (layout.x[3] < layout.x[2])


def test_a_neighbourhood_goes_back_some_operators() -> None:
    graph = stack(3)[0]
    focus = graph.outputs["output"]
    near = neighbourhood_of(graph, focus, steps=2)
    assert focus in near.nodes
    assert len(near.nodes) < len(graph)
    assert {graph.nodes[p].op.name for p in near.nodes} >= {"tanh", "subtract", "multiply"}
    assert near.more_before
    assert len(neighbourhood_of(graph, focus, steps=12, most=9).nodes) <= 12


def test_corresponding_nodes_have_equal_operators() -> None:
    sequential, program = stack(2)
    own = program.graphs[0]
    pairs = correspondence(sequential, own, sequential.outputs["output"], own.outputs["output"])
    assert len(pairs) > 15
    assert all(sequential.nodes[a].op.name == own.nodes[b].op.name for a, b in pairs.items())


def test_both_places_of_a_failure_are_in_one_row() -> None:
    verdict = refine(*stack(3, dropped=[1]))
    drawing = draw_finding(verdict, verdict.findings[0])
    assert drawing is not None
    root = ElementTree.fromstring(drawing)
    focus = [node.find(f"{SVG}rect") for node in root.iter(f"{SVG}g") if "focus" in str(node.get("class"))]
    assert len(focus) == 2
    assert len({rect.get("y") for rect in focus if rect is not None}) == 1
    assert root.get("role") == "img"
    assert root.get("aria-label") == "both programs around parallel.py:103"


@pytest.mark.parametrize("name", ["mlp", "attention", "vocabulary_embedding"])
def test_every_finding_of_mutants_can_be_drawn(name: str) -> None:
    sequential, program = ALL[name](2)
    for mutant in list(generate(program, per_kind=1))[:8]:
        verdict = refine(sequential, mutant.program)
        for finding in verdict.findings:
            drawing = draw_finding(verdict, finding)
            if drawing is not None:
                ElementTree.fromstring(drawing)


def test_boxes_of_a_picture_stay_inside_of_it() -> None:
    sequential, program = attention(2)
    left, right = sequential.outputs["output"], program.graphs[0].outputs["output"]
    root = ElementTree.fromstring(draw_pair(sequential, program.graphs[0], left, right, "rank 0", "t", steps=6))
    low, top, width, height = (float(v) for v in str(root.get("viewBox")).split())
    for rect in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(str(rect.get(key))) for key in ("x", "y", "width", "height"))
        assert low <= x
        assert x + w <= low + width
        assert top <= y
        assert y + h <= top + height


def test_a_picture_loads_nothing_and_escapes_names() -> None:
    graph = stack(1)[0]
    text = draw_graph(graph, graph.outputs["output"], 'a <b> & "c"')
    assert ElementTree.fromstring(text).get("aria-label") == 'a <b> & "c"'
    assert not re.search(r"(href|src|url\(h|@import)", text)


def test_a_finding_without_a_place_has_no_picture() -> None:
    verdict = refine(*stack(3))
    broken = refine(*stack(3, dropped=[1]))
    assert draw_finding(verdict, broken.findings[0]) is not None  # it is about the same nodes
    assert draw_finding(broken.__class__("unknown", broken.evidence), broken.findings[0]) is None
