"""Decoders written in two styles are one function: proved, and confirmed by the checker of certificates."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

from rewright.equiv.engine import Equivalence, equiv
from rewright.equiv.lemmas.synthesised import FOR_ALL_SIZES, FOR_SOME_SIZES
from rewright.refine.verdict import Evidence
from tests.equiv.decoders import FUSED_MLP, FUSED_QKV, PLAIN, Style, captured

PLAIN_OFFSET = {name: f"{name} - 1" for name in ("layers.*.norm1.weight", "layers.*.norm2.weight", "norm.weight")}
INTERLEAVED = {
    f"layers.*.attention.{name}.weight": f"interleaved(layers.*.attention.{name}.weight, heads={heads})"
    for name, heads in (("q", PLAIN.heads), ("k", PLAIN.kv_heads))
}
RICH = PLAIN.but(activation="gelu_tanh", softcap=5.0, window=4, query_norm="head", post_norm=True)


def grouped_rows() -> dict[str, str]:
    """Queries, key and value of every key/value head next to each other."""
    s, rows = PLAIN, list[str]()
    count = s.heads // s.kv_heads
    for group in range(s.kv_heads):
        start, own = group * count * s.head, f"[{group * s.head}:{(group + 1) * s.head}]"
        rows.append(f"layers.*.attention.q.weight[{start}:{start + count * s.head}]")
        rows += [f"layers.*.attention.k.weight{own}", f"layers.*.attention.v.weight{own}"]
    return {"layers.*.attention.qkv.weight": f"concat([{', '.join(rows)}], axis=0)"}


def compare(left: Style, right: Style, relations: dict[str, str] | None = None) -> Equivalence:
    return equiv(captured(left), captured(right), relations=relations)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("changes", "relations"),
    [
        ({"norm": "sqrt"}, {}),
        ({"norm": "power"}, {}),
        ({"norm": "functional"}, {}),
        ({"norm": "sum"}, {}),
        ({"norm": "offset"}, PLAIN_OFFSET),
        ({"qkv": "fused"}, FUSED_QKV),
        ({"qkv": "grouped"}, grouped_rows()),
        ({"mlp": "fused"}, FUSED_MLP),
        ({"mlp": "chunked"}, FUSED_MLP),
        ({"rotary": "pairs"}, INTERLEAVED),
        ({"rotary": "interleaved"}, INTERLEAVED),
        ({"rotary": "split"}, {}),
        ({"activation": "sigmoid"}, {}),
        ({"attention": "sdpa"}, {}),
        ({"attention": "sdpa", "mask": "causal"}, {}),
        ({"attention": "sdpa", "mask": "where"}, {}),
        ({"attention": "grouped"}, {}),
        ({"attention": "einsum"}, {}),
        ({"attention": "plain"}, {}),
        ({"mask": "infinite"}, {}),
        ({"mask": "where"}, {}),
        ({"mask": "multiplied"}, {}),
        ({"scale": "query"}, {}),
        ({"scale": "both"}, {}),
        ({"scale": "divide"}, {}),
        ({"repeat": "interleave"}, {}),
        ({"repeat": "index"}, {}),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if set(value) <= set(Style.__dataclass_fields__) else "",
)
def test_another_style_is_the_same_function(changes: dict[str, str], relations: dict[str, str]) -> None:
    verdict = compare(PLAIN, PLAIN.but(**changes), relations)
    assert verdict.status == "proved", verdict.reason
    assert verdict.evidence is Evidence.PROVED
    assert len(verdict.equations) == sum(1 if "layers" not in name else PLAIN.layers for name in relations)


@pytest.mark.sample(2)
@pytest.mark.parametrize("changes", [{"activation": "tanh_by_hand"}, {"capped": "multiply"}], ids=str)
def test_soft_caps_and_activations_by_hand(changes: dict[str, str]) -> None:
    assert compare(RICH, RICH.but(**changes)).status == "proved"


def test_everything_is_written_otherwise_at_once() -> None:
    other = RICH.but(
        activation="tanh_by_hand",
        mask="where",
        norm="power",
        rotary="split",
        mlp="chunked",
        repeat="interleave",
        scale="query",
    )
    assert compare(RICH, other, FUSED_MLP).status == "proved"


def test_the_same_pair_the_other_way_round() -> None:
    relations = dict(FUSED_QKV)
    verdict = equiv(captured(PLAIN.but(qkv="fused")), captured(PLAIN), relations=relations)
    assert verdict.status == "proved", verdict.reason
    assert verdict.equations[0].startswith("left layers.0.attention.qkv.weight")


def test_what_is_proved_once_serves_every_layer() -> None:
    verdict = compare(PLAIN.but(layers=4), PLAIN.but(layers=4, rotary="interleaved"), INTERLEAVED)
    assert verdict.status == "proved"
    assert verdict.lemmas
    for lemma in verdict.lemmas:
        assert lemma.evidence == "proved"
        assert len(lemma.places) == 4
    assert {rule.evidence for rule in verdict.rules} == {FOR_ALL_SIZES, FOR_SOME_SIZES}
    # Every other feature of a head, where the other side has the second half of it: of queries and of keys.
    assert any("[:, :, :, 1::2]; used 8 times, at decoders.py:" in note for note in verdict.notes)


def test_weights_are_matched_by_what_they_are_called() -> None:
    verdict = compare(PLAIN, PLAIN.but(qkv="fused", mlp="fused"))
    assert verdict.status == "proved"
    assert any("found by names" in line for line in verdict.assumptions)
    assert len(verdict.equations) == 2 * PLAIN.layers
    assert all(equation.endswith(", found by names") for equation in verdict.equations)


def test_a_map_that_is_completed_says_which_equations_were_found() -> None:
    verdict = compare(PLAIN, PLAIN.but(qkv="fused", mlp="fused"), FUSED_QKV)
    assert verdict.status == "proved"
    assert any("completed by names" in line for line in verdict.assumptions)
    assert [e.endswith(", found by names") for e in verdict.equations] == [
        ".mlp." in e or "up" in e for e in verdict.equations
    ]
