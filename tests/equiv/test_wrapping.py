"""Whole numbers of 8 bits are counted from the other end where they do not fit, which a proof has to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import Equivalence, equiv
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram

Layer = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def verdict(left: Layer, right: Layer, dtype: torch.dtype, values: torch.Tensor | None = None) -> Equivalence:
    graphs = [rw.capture(layer, (torch.zeros(3, 8), torch.zeros(5, 8, dtype=dtype))) for layer in (left, right)]
    given: Mapping[str, torch.Tensor] | None = None if values is None else {"w": values}
    return equiv(*graphs, None if given is None else (given, given), explain=False)


def cast_first(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ (w.float() - 8).T


def cast_last(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ (w - 8).float().T


def twice_as_far(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ ((w - 16).float() + 8).T


def outside(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w.float().T - 8 * x.sum(-1, keepdim=True)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16], ids=str)
def test_a_zero_point_is_subtracted_before_the_cast_or_after_it(dtype: torch.dtype) -> None:
    found = verdict(cast_last, cast_first, dtype)
    if dtype is torch.uint8:  # zero less 8 is 248
        assert found.status == "refuted"
    else:
        assert found.status == "unknown"
        assert "cast before" in found.reason
    assert verdict(cast_last, lambda x, w: 1 * cast_last(x, w), dtype).status == "proved"
    assert verdict(outside, cast_first, dtype).status == "proved"


def test_values_of_weights_say_that_they_fit() -> None:
    packed = torch.arange(40, dtype=torch.int8).reshape(5, 8) % 16
    assert verdict(cast_last, cast_first, torch.int8, packed).status == "proved"
    assert verdict(cast_last, cast_first, torch.int8, packed - 125).status == "refuted"


def test_all_of_a_program_has_to_count_alike() -> None:
    """The other program computes with bytes, too, at one of two places."""

    def both(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return cast_last(x, w), cast_last(x + 1, w)

    def one(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return cast_last(x, w), cast_first(x + 1, w)

    def by_halves(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return both(x[:, :4], w[:, :4])[0] + cast_last(x[:, 4:], w[:, 4:]), (x + 1) @ (w.T - 8).float()

    def graph(layer: object) -> Graph:
        return rw.capture(layer, (torch.zeros(3, 8), torch.zeros(5, 8, dtype=torch.int8)))

    assert equiv(graph(both), graph(one), explain=False).status == "unknown"
    assert equiv(graph(both), graph(by_halves), explain=False).status == "proved"


@pytest.mark.parametrize(
    "other",
    [
        lambda x, w: x @ (w + w).float().T / 2,
        lambda x, w: x @ -(-w).float().T,
        lambda x, w: x @ ((w << 4) >> 4).float().T,
        lambda x, w: x @ w.to(torch.uint8).float().T,
        lambda x, w: -(x @ (-w).float().T),
    ],
)
def test_what_does_not_fit_is_another_number(other: Layer) -> None:
    assert verdict(lambda x, w: x @ w.float().T, other, torch.int8).status != "proved"


def test_ranks_may_compute_alike_with_their_parts() -> None:
    whole, part = ((torch.zeros(3, 8), torch.zeros(rows, 8, dtype=torch.int8)) for rows in (6, 3))
    for other, status in ((cast_last, "proved"), (cast_first, "unknown"), (twice_as_far, "unknown")):
        graph = rw.capture(other, part)
        ranks = RankProgram((graph, graph), Mesh.of({"tp": 2}), {}, {})
        given = {"x": "Replicate()", "w": "Shard(0)"}
        assert equiv(rw.capture(cast_last, whole), ranks, relations=given, explain=False).status == status
        assert rw.refine(rw.capture(cast_last, whole), ranks, given).status == status


def test_sums_of_bytes_at_one_place_may_not_fit() -> None:
    def summed(w: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(w).index_add(0, torch.tensor([0, 0, 1, 1, 2]), w).float()

    assert verdict(lambda x, w: x @ summed(w).T, lambda x, w: x @ summed(w.float()).T, torch.int8).status == "unknown"


def test_floats_that_become_bytes_fit_where_they_were_clamped() -> None:
    def rounded(dtype: torch.dtype, most: float) -> Layer:
        return lambda x, w: (x * 3).round().clamp(-128, most).to(dtype).float() + w.float()[:3]

    for most, status in ((127, "proved"), (128, "unknown")):
        assert verdict(rounded(torch.int8, most), rounded(torch.int32, most), torch.int8).status == status
