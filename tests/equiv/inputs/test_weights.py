"""The weight map: read, printed, checked, and put in front of the programs."""

from __future__ import annotations

import numpy as np
import pytest

from rewright import ops
from rewright.equiv.engine import equiv
from rewright.equiv.inputs.guessing import guess_definitions, role
from rewright.equiv.inputs.weights import WeightMap, read_map, share_inputs
from rewright.interp.program import run
from rewright.ir.errors import ContradictoryRelations, RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.types import DType, TensorType


def product(**weights: tuple[int, int]) -> Graph:
    """Matrix products of x with every weight, in turn, joined."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((3, 4), DType.F32)))
    parts = [
        b.add(ops.DotGeneral((), (), (1,), (1,)), x, b.input(n, ops.Input(n, TensorType(shape, DType.F32))))
        for n, shape in weights.items()
    ]
    b.output("y", b.add(ops.Concatenate(1), *parts) if len(parts) > 1 else parts[0])
    return b.build()


def alone(graph: Graph) -> RankProgram:
    return RankProgram((graph,), Mesh.of({"rank": 1}), {}, {})


APART = product(q=(4, 4), k=(2, 4), v=(2, 4))
FUSED = product(qkv=(8, 4))


def test_a_map_is_part_of_the_claim() -> None:
    good = equiv(APART, FUSED, relations={"qkv": "concat([q, k, v], axis=0)"})
    assert good.status == "proved"
    assert good.equations == ("right qkv = concat([q, k, v], axis=0)  (of left)",)
    assert equiv(APART, FUSED, relations={"qkv": "concat([q, v, k], axis=0)"}).status == "refuted"


def test_either_side_may_be_defined() -> None:
    assert equiv(FUSED, APART, relations={"qkv": "concat([q, k, v], axis=0)"}).status == "proved"
    slices = {"q": "qkv[0:4]", "k": "qkv[4:6]", "v": "qkv[6:8]"}
    assert equiv(FUSED, APART, relations=slices).status == "proved"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("w", lambda w: w),
        ("w + 1", lambda w: w + 1),
        ("2 * w - 1", lambda w: 2 * w - 1),
        ("-w", lambda w: -w),
        ("transpose(w, (1, 0))", lambda w: w.T),
        ("reshape(w, (2, 8))", lambda w: w.reshape(2, 8)),
        ("w[::2]", lambda w: w[::2]),
        ("w[1:3, 0:2]", lambda w: w[1:3, 0:2]),
        ("concat([w[2:4], w[0:2]], axis=0)", lambda w: np.concatenate([w[2:4], w[0:2]])),
        ("stack([w, w], axis=1)", lambda w: np.stack([w, w], 1)),
        ("halves(w, heads=1)", lambda w: w[[0, 2, 1, 3]]),
        ("interleaved(w, heads=2)", lambda w: w),
    ],
)
def test_expressions_mean_what_numpy_says(text: str, expected: object) -> None:
    from rewright.equiv.inputs.expressions import build

    b = GraphBuilder()
    place = build(text, b, {"w": b.input("w", ops.Input("w", TensorType((4, 4), DType.F32)))})
    b.output("made", place)
    w = np.arange(16.0).reshape(4, 4)
    assert callable(expected)
    np.testing.assert_array_equal(run(b.build(), {"w": w})["made"], expected(w))


@pytest.mark.parametrize(
    ("relations", "message"),
    [
        ({"qkv": "concat([q, k], axis=0)"}, "has the shape"),
        ({"qkv": "concat([q, k, w], axis=0)"}, "no input of the other program"),
        ({"qkv": "concat([q, k, v"}, "cannot be read"),
        ({"qkv": "q @ k"}, "may only add"),
        ({"qkv": "q[0:9]"}, "out of range"),
        ({"nothing": "q"}, "matches no input"),
        ({"qkv": "concat([q, q[0:3]], axis=0)"}, "has the shape"),
        ({"qk*": "concat([q, k, v], axis=0)", "qkv": "concat([q, v, k], axis=0)"}, "two meanings"),
        ({"qkv": "concat([q, k, v], axis=0)", "k": "qkv[4:6]"}, "itself defined"),
        ({"qkv@3": "q"}, "names rank 3 of 1"),
    ],
)
def test_a_bad_map_is_one_sentence(relations: dict[str, str], message: str) -> None:
    with pytest.raises(RewrightError, match=message) as error:
        equiv(APART, FUSED, relations=relations)
    assert "\n" not in str(error.value)


def test_a_partial_map_is_an_error() -> None:
    with pytest.raises(RewrightError, match="leave out a part"):
        equiv(product(w=(8, 4)), product(a=(4, 4), b=(4, 4)), relations={"a": "w[0:4]", "b": "w[2:6]"})
    with pytest.raises(RewrightError, match="are related to nothing"):
        equiv(product(first=(2, 4), a=(2, 4)), product(other=(1, 4), b=(3, 4)))


def test_equal_names_of_other_shapes_contradict() -> None:
    left, right = product(w=(2, 4), a=(2, 4)), product(w=(3, 4), a=(1, 4))
    with pytest.raises(ContradictoryRelations, match="relate them by an equation"):
        share_inputs(left, alone(right), WeightMap())


def test_a_weight_that_the_map_forgets_is_never_read() -> None:
    verdict = equiv(APART, FUSED, relations={"qkv": "concat([q, q], axis=0)"})
    assert verdict.status == "refuted"


def test_outputs_that_one_program_has_not_are_one_sentence() -> None:
    graphs: list[Graph] = []
    for count in (3, 2):
        builder = GraphBuilder()
        given = builder.input("x", ops.Input("x", TensorType((4,), DType.F32)))
        for number in range(count):
            builder.output(f"output.{number}", given)
        graphs.append(builder.build())
    with pytest.raises(RewrightError, match=r"output\.2.*return the same outputs"):
        equiv(*graphs)
    assert equiv(*reversed(graphs)).status == "proved"


def test_another_vocabulary_is_one_sentence() -> None:
    with pytest.raises(RewrightError, match="compare programs of one configuration"):
        equiv(product(w=(2, 4)), product(w=(4, 4)))


def test_what_only_one_side_reads_is_told() -> None:
    left = product(w=(4, 4), b=(2, 4))
    right = product(w=(4, 4), b=(2, 4))
    nodes = right.nodes
    first = next(p for p, node in enumerate(nodes) if node.op.name == "dot_general")
    b = GraphBuilder()
    for node in nodes[: first + 1]:
        b.add(node.op, *node.operands)
    both = b.add(ops.Concatenate(1), first, b.add(ops.Slice((0, 0), (3, 2), (1, 1)), first))
    lacking = Graph((*b.build().nodes,), {"x": 0, "w": 1}, {"y": both})
    found = share_inputs(left, alone(lacking), WeightMap())
    assert found.unread == (("left", "b"),)
    assert equiv(left, lacking).status == "refuted"


def test_a_map_by_values() -> None:
    source = np.random.default_rng(0)
    q, k, v = (source.standard_normal((n, 4)) for n in (4, 2, 2))
    turned = np.concatenate([v, q[::2], q[1::2], k])
    found = guess_definitions(WeightMap(), APART, alone(FUSED), ({"q": q, "k": k, "v": v}, {"qkv": turned}))
    (definition,) = found.definitions
    assert definition.text == "concat([v, interleaved(q, heads=1), k], axis=0)"
    left, right = product(norm_w=(2, 4)), product(scale=(2, 4))
    w = source.standard_normal((2, 4))
    assert (
        guess_definitions(WeightMap(), left, alone(right), ({"norm_w": w}, {"scale": w})).definitions[0].text
        == "norm_w"
    )


def test_values_tell_tensors_of_one_name_apart() -> None:
    source = np.random.default_rng(0)
    w = source.standard_normal((2, 4))
    left, right = product(w=(2, 4), b=(2, 4)), product(w=(2, 4), b=(2, 4))
    swapped = {"w": w, "b": -w}, {"w": -w, "b": w}
    found = guess_definitions(WeightMap(), left, alone(right), swapped)
    assert {d.name: d.text for d in found.definitions} == {"w": "b", "b": "w"}
    assert not guess_definitions(WeightMap(), left, alone(right), ({"w": w}, {"w": w})).definitions
    assert equiv(left, right, swapped).status == "refuted"
    other = {"w": w, "b": w + 1}, {"w": w, "b": w + 2}
    assert equiv(left, right, other).status == "refuted"


@pytest.mark.parametrize(("how", "shape"), [("interleaved", (2, 2, 3, 4)), ("halves", (2, 3, 2, 4))])
def test_rotated_rows_are_found_by_their_values(how: str, shape: tuple[int, ...]) -> None:
    w = np.random.default_rng(0).standard_normal((12, 4))
    turned = w.reshape(shape).swapaxes(1, 2).reshape(12, 4)
    found = guess_definitions(WeightMap(), product(w=(12, 4)), alone(product(v=(12, 4))), ({"w": w}, {"v": turned}))
    assert [d.text for d in found.definitions] == [f"{how}(w, heads=2)"]


@pytest.mark.parametrize("turned", [False, True])
def test_heads_in_groups_are_one_concatenation(turned: bool) -> None:
    """Queries, keys and values of one group of heads after those of another."""
    source = np.random.default_rng(0)
    parts = {name: source.standard_normal((rows, 4)) for name, rows in (("q", 16), ("k", 8), ("v", 8))}
    held = {
        name: w.reshape(-1, 2, 2, 4).swapaxes(1, 2).reshape(w.shape) if turned and name != "v" else w
        for name, w in parts.items()
    }
    fused = np.concatenate([held["q"].reshape(2, 8, 4), *(held[n].reshape(2, 4, 4) for n in "kv")], 1).reshape(32, 4)
    left, right = product(q=(16, 4), k=(8, 4), v=(8, 4)), product(qkv=(32, 4))
    (found,) = guess_definitions(WeightMap(), left, alone(right), (parts, {"qkv": fused})).definitions
    q, k = ("interleaved(q, heads=4)", "interleaved(k, heads=2)") if turned else ("q", "k")
    text = f"concat([reshape({q}, (2, 8, 4)), reshape({k}, (2, 4, 4)), reshape(v, (2, 4, 4))], axis=1)"
    assert found.text == f"reshape({text}, (32, 4))"
    swapped = fused.reshape(2, 16, 4)[::-1].reshape(32, 4)
    (other,) = guess_definitions(WeightMap(), left, alone(right), (parts, {"qkv": swapped})).definitions
    assert other.text != found.text


def test_equal_numbers_by_chance_are_no_map() -> None:
    left, right = product(gain=(2, 4)), product(scale=(4, 4))
    ones = {"gain": np.ones((2, 4))}, {"scale": np.ones((4, 4))}
    assert not guess_definitions(WeightMap(), left, alone(right), ones).definitions


def test_patterns_fill_their_stars() -> None:
    left = product(**{"layers.0.q": (2, 4), "layers.0.k": (2, 4), "layers.1.q": (2, 4), "layers.1.k": (2, 4)})
    right = product(**{"h.0.qk": (4, 4), "h.1.qk": (4, 4)})
    found = read_map({"h.*.qk": "concat([layers.*.q, layers.*.k], axis=0)"}, left, alone(right))
    assert [d.text for d in found.definitions] == [f"concat([layers.{n}.q, layers.{n}.k], axis=0)" for n in (0, 1)]
    assert equiv(left, right, relations={"h.*.qk": "concat([layers.*.q, layers.*.k], axis=0)"}).status == "proved"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("model.layers.3.self_attn.q_proj.weight", "layers.3.attention.wq.weight"),
        ("model.embed_tokens.weight", "transformer.wte.weight"),
        ("model.layers.0.mlp.down_proj.weight", "layers.0.feed_forward.w2.weight"),
        ("model.layers.0.post_attention_layernorm.weight", "transformer.h.0.norm_2.weight"),
    ],
)
def test_common_names_have_roles(name: str, other: str) -> None:
    assert role(name) == role(other)
