"""The largest logit of a vocabulary that is split: every rank finds its own, and the largest of these is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import torch
from jax.sharding import PartitionSpec
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo.patterns.pattern import dist, world

ROWS, WIDTH, WORDS = 5, 3, 6
Tensor = torch.Tensor
Choice = Callable[[Tensor, Tensor], Tensor]
"""From the largest value of every rank and where it stands to where the largest of all stands."""


def along_ranks(tensor: Tensor) -> Tensor:
    ranks, _ = world()
    found = tensor.new_empty(ranks * tensor.shape[0])
    dist.all_gather_into_tensor(found, tensor)
    return found.view(ranks, -1)


def refined(choice: Choice, first: Callable[[int, int], int], ranks: int) -> Verdict:
    """``first`` tells from a rank and how many words it has what is added to the place of its largest logit."""
    own = WORDS // ranks

    def model(x: Tensor, w: Tensor) -> Tensor:
        return (x @ w).argmax(-1)

    def parallel(mesh: DeviceMesh) -> Any:
        def rank(x: Tensor, w: Tensor) -> Tensor:
            largest, place = (x @ w).max(-1)
            return choice(along_ranks(largest), along_ranks(place + first(mesh.get_local_rank(), own)))

        return rank, (torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, own))

    sequential = rw.capture(model, (torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, WORDS)))
    program = rw.capture_ranks(parallel, {"tp": ranks})
    return rw.refine(sequential, program, {"x": "Replicate()", "w": "Shard(1)"}, {"output": "Replicate()"}, audit=True)


def by_place(largest: Tensor, place: Tensor) -> Tensor:
    return place.gather(0, largest.argmax(0, keepdim=True))[0]


def by_columns(largest: Tensor, place: Tensor) -> Tensor:
    return place.T.gather(1, largest.T.max(1, keepdim=True)[1])[:, 0]


def counted(rank: int, own: int) -> int:
    return rank * own


@pytest.mark.parametrize(
    ("choice", "ranks"), [(by_place, 2), (by_columns, 2), pytest.param(by_columns, 3, marks=pytest.mark.slow)]
)
def test_the_largest_of_the_largest(choice: Choice, ranks: int) -> None:
    verdict = refined(choice, counted, ranks)
    assert verdict.status == "proved", verdict.reason


def counted_afterwards(words: int) -> Choice:
    """The first words of all ranks are added where their places have been gathered."""
    return lambda largest, place: by_place(largest, place + torch.arange(len(place))[:, None] * words)


@pytest.mark.parametrize(("words", "status"), [(WORDS // 2, "proved"), (WORDS // 2 + 1, "refuted")])
def test_places_that_are_counted_after_they_are_gathered(words: int, status: str) -> None:
    assert refined(counted_afterwards(words), lambda rank, own: 0, 2).status == status


WRONG: dict[str, tuple[Choice, Callable[[int, int], int]]] = {
    "places within a rank": (by_place, lambda rank, own: 0),
    "one word further": (by_place, lambda rank, own: rank * own + 1),
    "ranks the wrong way round": (by_place, lambda rank, own: (1 - rank) * own),
    "the smallest of the largest": (lambda m, p: p.gather(0, m.argmin(0, keepdim=True))[0], counted),
    "values and places of different ranks": (lambda m, p: by_place(m.flip(0), p), counted),
    "places of another rank": (lambda m, p: by_place(m, p.flip(0)), counted),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_choice(name: str) -> None:
    assert refined(*WRONG[name], 2).status == "refuted"


def test_the_last_of_equals_is_refuted() -> None:
    """No two random logits are equal, and all are where the inputs are zeros."""
    verdict = refined(lambda m, p: by_place(m.flip(0), p.flip(0)), counted, 2)
    assert verdict.status == "refuted"
    assert "on inputs with zeros" in verdict.reason


@pytest.mark.sample(2)
@pytest.mark.parametrize(("first", "status"), [(4, "proved"), (5, "refuted")])
def test_in_jax(first: int, status: str) -> None:
    def parallel(mesh: Any) -> Any:
        def local(x: Any, w: Any) -> Any:
            logits = x @ w
            largest = jax.lax.all_gather(logits.max(-1), "tp")
            place = jax.lax.all_gather(jnp.argmax(logits, -1) + first * jax.lax.axis_index("tp"), "tp")
            return jnp.take_along_axis(place, jnp.argmax(largest, 0)[None], 0)[0]

        spec = PartitionSpec
        ranks = jax.shard_map(local, mesh=mesh, in_specs=(spec(), spec(None, "tp")), out_specs=spec(), check_vma=False)
        return ranks, shapes

    shapes = jax.ShapeDtypeStruct((ROWS, WIDTH), "float32"), jax.ShapeDtypeStruct((WIDTH, 8), "float32")
    sequential = rw.capture(lambda x, w: jnp.argmax(x @ w, -1), shapes)
    assert rw.refine(sequential, rw.capture_ranks(parallel, {"tp": 2}), audit=True).status == status
