"""Relations written as equations: what they can say, and one line for each mistake."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.refine import refine
from rewright.refine.relations.solving import Read, cuts
from tests.programs import Builder, Pair, mlp

WORLD, HIDDEN, WIDTH = 2, 6, 4


def fused_attention_weights() -> Pair:
    """Queries, keys and values by three weights on one device, by one fused weight on the ranks."""

    def program(build: Builder, rank: int | None) -> None:
        x = build.tensor("x", (3, HIDDEN))
        if rank is None:
            q, k, v = (build.matmul(x, build.tensor(name, (HIDDEN, WIDTH))) for name in "qkv")
        else:
            own = WIDTH // WORLD
            fused = build.matmul(x, build.tensor("qkv", (HIDDEN, 3 * own)))
            cuts = [ops.Slice((0, own * n), (3, own * n + own), (1, 1)) for n in range(3)]
            q, k, v = (build.add(cut, fused) for cut in cuts)
        mixed = build.add(ops.Multiply(), build.add(ops.Tanh(), q), build.add(ops.Add(), k, v))
        build.output("output", mixed)

    graphs: list[Graph] = []
    for rank in (None, *range(WORLD)):
        build = Builder("program")
        program(build, rank)
        graphs.append(build.build())
    mesh = Mesh((("tp", WORLD),))
    placements = {"x": place((3, HIDDEN), mesh, ("Replicate()",))}
    return graphs[0], RankProgram(tuple(graphs[1:]), mesh, placements, {})


def fused(order: str) -> dict[str, str]:
    return {
        name: f"concat([qkv@0[:, {2 * n}:{2 * n + 2}], qkv@1[:, {2 * n}:{2 * n + 2}]], axis=1)"
        for n, name in enumerate(order)
    }


def test_fused_weights_are_cut_from_rank_tensors() -> None:
    verdict = refine(*fused_attention_weights(), relations=fused("qkv"))
    assert verdict.status == "proved"
    assert verdict.relation["output"].equation == "output = concat([output@0, output@1], axis=1)"


def test_keys_and_values_may_be_swapped_here_but_not_queries() -> None:
    """tanh(q) * (k + v): the equations decide what is proved."""
    assert refine(*fused_attention_weights(), relations=fused("qvk")).status == "proved"
    verdict = refine(*fused_attention_weights(), relations=fused("kqv"))
    assert verdict.status == "refuted"
    assert verdict.findings[0].counterexample is not None


def test_a_bug_is_found_where_equations_give_the_inputs() -> None:
    """The ranks take the sine for the hyperbolic tangent; numbers come from the equations too."""
    sequential, program = fused_attention_weights()
    (tanh,) = [p for p, node in enumerate(program.graphs[0].nodes) if isinstance(node.op, ops.Tanh)]
    wrong = tuple(edited(graph, {tanh: ops.Sine()}) for graph in program.graphs)
    verdict = refine(sequential, replace(program, graphs=wrong), relations=fused("qkv"))
    assert verdict.status == "refuted"
    finding = verdict.findings[0]
    assert finding.distributed == program.graphs[0].nodes[tanh].span
    assert finding.counterexample is not None


def edited(graph: Graph, operators: dict[int, Operator]) -> Graph:
    """The graph with other operators at some positions."""
    nodes = tuple(replace(node, op=operators.get(p, node.op)) for p, node in enumerate(graph.nodes))
    return replace(graph, nodes=nodes)


def test_a_transposed_weight() -> None:
    """The ranks hold the rows of the transposed weight."""

    def program(build: Builder, rank: int | None) -> None:
        x = build.tensor("x", (3, HIDDEN))
        shape = (HIDDEN, WIDTH) if rank is None else (WIDTH // WORLD, HIDDEN)
        w = build.tensor("w", shape)
        contracted = 0 if rank is None else 1
        build.output("output", build.add(ops.DotGeneral((), (), (1,), (contracted,)), x, w))

    graphs: list[Graph] = []
    for rank in (None, 0, 1):
        build = Builder("program")
        program(build, rank)
        graphs.append(build.build())
    mesh = Mesh((("tp", WORLD),))
    ranks = RankProgram(tuple(graphs[1:]), mesh, {"x": place((3, HIDDEN), mesh, ("Replicate()",))}, {})
    text = "concat([transpose(w@0, (1, 0)), transpose(w@1, (1, 0))], axis=1)"
    assert refine(graphs[0], ranks, relations={"w": text}).status == "proved"


def test_the_same_placement_as_an_equation() -> None:
    text = "concat([up.weight@0, up.weight@1], axis=1)"
    assert refine(*mlp(2), relations={"up.weight": text}).status == "proved"
    swapped = "concat([up.weight@1, up.weight@0], axis=1)"
    assert refine(*mlp(2), relations={"up.weight": swapped}).status == "refuted"


def gradient_of_a_fused_weight(order: tuple[int, ...]) -> Pair:
    """A weight in pieces, and what is called its gradient, of which the ranks hold pieces in some order."""
    own = WIDTH // WORLD

    def program(build: Builder, rank: int | None) -> None:
        x = build.tensor("x", (HIDDEN, 3))
        y = build.tensor("y", (3, 3 * WIDTH if rank is None else 3 * own))
        build.tensor("w", (HIDDEN, 3 * WIDTH if rank is None else 3 * own))
        found = build.matmul(x, y)
        if rank is not None:
            parts = [build.add(ops.Slice((0, own * n), (HIDDEN, own * n + own), (1, 1)), found) for n in order]
            found = build.add(ops.Concatenate(1), *parts)
        build.output("grad:w", found)

    graphs: list[Graph] = []
    for rank in (None, *range(WORLD)):
        build = Builder("program")
        program(build, rank)
        graphs.append(build.build())
    mesh = Mesh((("tp", WORLD),))
    return graphs[0], RankProgram(tuple(graphs[1:]), mesh, {"x": place((HIDDEN, 3), mesh, ("Replicate()",))}, {})


def in_pieces(name: str, order: tuple[int, ...] = (0, 1, 2)) -> str:
    parts = [f"{name}@{rank}[:, {2 * n}:{2 * n + 2}]" for n in order for rank in range(WORLD)]
    return f"concat([{', '.join(parts)}], axis=1)"


@pytest.mark.parametrize("expect", [None, {"grad:w": in_pieces("grad:w")}, {"grad:*": [in_pieces("grad:w")]}])
def test_a_gradient_is_held_as_the_equation_of_its_weight_says(expect: dict[str, str] | None) -> None:
    given = {name: in_pieces(name) for name in "wy"}
    verdict = refine(*gradient_of_a_fused_weight((0, 1, 2)), relations=given, expect=expect)
    assert verdict.status == "proved"
    assert verdict.relation["grad:w"].equation == f"grad:w = {in_pieces('grad:w')}"
    assert refine(*gradient_of_a_fused_weight((1, 0, 2)), relations=given, expect=expect).status == "refuted"
    other = {"grad:w": in_pieces("grad:w", (1, 0, 2))}
    assert refine(*gradient_of_a_fused_weight((1, 0, 2)), relations=given, expect=other).status == "proved"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("concat([y@0, grad:w@1], axis=1)", "names y@0, which is no output of that rank"),
        ("concat([grad:w@0[:, 0:4], grad:w@1[:, 0:4], grad:w@0[:, 0:4]], axis=1)", "given two meanings"),
        ("concat([grad:w@0, grad:w@0], axis=1)", "given two meanings"),
        ("concat([grad:w@0, grad:w@1], axis=0)", "has shape"),
        ("grad:w@0", "has shape"),
    ],
)
def test_mistakes_in_equations_of_outputs(text: str, message: str) -> None:
    given = {name: in_pieces(name) for name in "wy"}
    with pytest.raises(RewrightError, match=message):
        refine(*gradient_of_a_fused_weight((0, 1, 2)), relations=given, expect={"grad:w": text})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("concat([up.weight@0, up.weight@1]", "cannot be read"),
        ("up.weight@0 + up.weight@1", "may only use name@rank"),
        ("up.weight@0.T", "may only use name@rank"),
        ("up.weight@0_tail", "may only use name@rank"),
        ("concat([_tensor_7, up.weight@1], axis=0)", "may only use name@rank"),
        ("concat([up.weight@0, up.weight@5], axis=1)", "names rank 5 of 2"),
        ("concat([up@0, up.weight@1], axis=1)", "names up@0, which is no input of that rank"),
        ("concat([up.weight@0, up.weight@1], axis=0)", r"has shape \(8, 4\) on its right side"),
        ("concat([up.weight@0, up.weight@1], axis=2)", "along axis 2"),
        ("concat([up.weight@0, up.weight@1], axis=-3)", "along axis -1"),
        ("concat([up.weight@0, up.weight@1], axis=a)", "no number"),
        ("concat(up.weight@0, axis=1)", r"needs concat\(\[..\], axis=..\)"),
        ("concat([x@0, up.weight@1], axis=1)", "joins shapes"),
        ("concat([up.weight@0[:, 0:9], up.weight@1], axis=1)", "slices axis 1 out of range"),
        ("concat([up.weight@0[:, ::2], up.weight@1], axis=1)", "no start:stop"),
        ("concat([up.weight@0[0], up.weight@1], axis=1)", "no start:stop"),
        ("concat([concat([up.weight@0], axis=0)[0:2], up.weight@1], axis=1)", "slices something that is no rank"),
        ("transpose(up.weight@0)", "needs transpose"),
        ("transpose(up.weight@0, (0, 0))", "no permutation"),
        ("concat([up.weight@0, up.weight@0], axis=1)", "given two meanings"),
    ],
)
def test_mistakes_are_told_in_one_line(text: str, message: str) -> None:
    with pytest.raises(RewrightError, match=message) as caught:
        refine(*mlp(2), relations={"up.weight": text})
    assert "\n" not in str(caught.value)


def test_a_part_that_no_equation_mentions() -> None:
    texts = dict(fused("qkv"))
    texts["v"] = texts["k"]
    with pytest.raises(RewrightError, match="given two meanings"):
        refine(*fused_attention_weights(), relations=texts)
    texts["v"] = "concat([qkv@0[:, 0:2], qkv@0[:, 2:4]], axis=1)"
    with pytest.raises(RewrightError, match="given two meanings"):
        refine(*fused_attention_weights(), relations=texts)


def test_inputs_that_equations_give_are_told_as_right() -> None:
    """Rows of a grid are runs along every axis; anything else is no grid, and is left to the equation."""
    positions = np.arange(12).reshape(3, 4)
    grid = [Read("w", ((0, 2), (0, 1)), positions[1:, :1]), Read("w", ((0, 2), (1, 3)), positions[1:, 2:])]
    found = cuts({(0, "w"): grid}, {"w": (3, 4)}, 1)
    assert found["w"].runs == ((((1, 2),), ((0, 1), (2, 2))),)
    assert (
        cuts({(0, "w"): [Read("w", ((0, 2), (0, 1)), positions[[0, 1], [0, 1]].reshape(2, 1))]}, {"w": (3, 4)}, 1) == {}
    )
    assert cuts({(0, "w"): grid}, {"w": (3, 4)}, 2) == {}
