"""JAX programs by hand with ``shard_map``: causal attention around a ring, losses over a vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import rewright as rw
from rewright.refine.verdict import Verdict
from tests.frontends.jax.programs import array

HEADS, WIDTH, TOKENS = 2, 4, 8
QKV = (array(TOKENS, HEADS, WIDTH),) * 3
INFINITY = float("inf")


def causal(q: Any, k: Any, v: Any) -> Any:
    """Attention to earlier tokens and the own one, (tokens, heads, width)."""
    place = jnp.arange(q.shape[0])
    scores = jnp.where(place[None] <= place[:, None], jnp.einsum("qhd,khd->hqk", q, k) / 2, -INFINITY)
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), v)


def around(mesh: Any, *, filling: float, shift: int = 0, still: bool = False) -> Any:
    """The same block by block, keys and values passed on around a ring, with the largest score so far.

    ``shift`` moves the mask, ``still`` says that the numbers of keys do not move on with them.
    """
    size = mesh.shape["cp"]
    turn = [(rank, (rank + 1) % size) for rank in range(size)]

    def local(q: Any, k: Any, v: Any) -> Any:
        rank, count = lax.axis_index("cp"), q.shape[0]
        top, norm, total = jnp.full((HEADS, count), filling), jnp.zeros((HEADS, count)), jnp.zeros(())
        for step in range(size):
            owner = rank if still else (rank - step) % size
            seen = (owner * count + jnp.arange(count))[None] <= (rank * count + jnp.arange(count) + shift)[:, None]
            scores = jnp.where(seen, jnp.einsum("qhd,khd->hqk", q, k) / 2, filling)
            higher = jnp.maximum(top, scores.max(-1))
            finite = jnp.where(jnp.isneginf(higher), 0.0, higher)
            weights = jnp.where(seen, jnp.exp(scores - finite[..., None]), 0.0)
            mended = jnp.where(jnp.isneginf(top), 0.0, jnp.exp(top - finite))
            norm, top = norm * mended + weights.sum(-1), higher
            total = total * mended[..., None] + jnp.einsum("hqk,khd->hqd", weights, v)
            k, v = (lax.ppermute(x, "cp", turn) for x in (k, v))
        return (total / norm[..., None]).transpose(1, 0, 2)

    return jax.shard_map(local, mesh=mesh, in_specs=(P("cp"),) * 3, out_specs=P("cp"), check_vma=False), QKV


def attended(degree: int, **how: Any) -> Verdict:
    program = rw.capture_ranks(lambda mesh: around(mesh, **how), {"cp": degree})
    return rw.refine(rw.capture(causal, QKV), program, audit=True)


@pytest.mark.parametrize(
    ("degree", "filling"), [(2, -1e30), (2, -INFINITY), pytest.param(4, -INFINITY, marks=pytest.mark.slow)]
)
def test_causal_attention_around_a_ring(degree: int, filling: float) -> None:
    verdict = attended(degree, filling=filling)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
    assert verdict.relation["output"].placement == "Shard(0)"


@pytest.mark.parametrize("slip", [{"shift": 1}, {"shift": -1}, {"still": True}])
def test_masks_of_other_keys(slip: dict[str, Any]) -> None:
    assert attended(2, filling=-1e30, **slip).status == "refuted"


CLASSES = 8
LABELLED = array(6, CLASSES), array(5, 6), array(5, dtype="int32")
Chosen = Callable[[Any, Any, Any], Any]
"""The score of a label from scores, where the label stands among those of a rank, and whether it is one of them."""


def entropy(w: Any, x: Any, labels: Any) -> Any:
    def loss(w: Any) -> Any:
        scores = x @ w
        return jnp.mean(jax.nn.logsumexp(scores, -1) - jnp.take_along_axis(scores, labels[:, None], 1)[:, 0])

    value, gradient = jax.value_and_grad(loss)(w)
    return {"loss": value, "gradient": gradient}


def split(chosen: Chosen, beyond: int = 0) -> Verdict:
    def build(mesh: Any) -> Any:
        def local(w: Any, x: Any, labels: Any) -> Any:
            count = w.shape[1]
            place = labels - lax.axis_index("tp") * count
            held = (place >= 0) & (place < count + beyond)

            def loss(w: Any) -> Any:
                scores = x @ w
                top = lax.pmax(lax.stop_gradient(scores.max(-1)), "tp")
                norm = jnp.log(lax.psum(jnp.exp(scores - top[:, None]).sum(-1), "tp")) + top
                return jnp.mean(norm - lax.psum(chosen(scores, place, held), "tp"))

            value, gradient = jax.value_and_grad(loss)(w)
            return {"loss": value, "gradient": gradient}

        specs = (P(None, "tp"), P(), P())
        outputs = {"loss": P(), "gradient": P(None, "tp")}
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=outputs), LABELLED

    return rw.refine(rw.capture(entropy, LABELLED), rw.capture_ranks(build, {"tp": 2}), audit=True)


def clipped(scores: Any, place: Any, held: Any, last: int = 0) -> Any:
    kept = jnp.clip(place, 0, scores.shape[1] - 1 - last)
    return jnp.where(held, jnp.take_along_axis(scores, kept[:, None], 1)[:, 0], 0.0)


def by_mode(scores: Any, place: Any, held: Any) -> Any:
    return jnp.take_along_axis(scores, place[:, None], 1, mode="clip")[:, 0] * held


def one_hot(scores: Any, place: Any, held: Any) -> Any:
    return (scores * jax.nn.one_hot(place, scores.shape[1])).sum(-1)


@pytest.mark.parametrize("chosen", [clipped, by_mode, one_hot])
def test_a_loss_over_a_vocabulary_that_is_split(chosen: Chosen) -> None:
    verdict = split(chosen)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
    assert verdict.relation["gradient"].placement == "Shard(1)"


def test_a_loss_whose_labels_are_clipped_too_far() -> None:
    assert split(lambda *scores: clipped(*scores, last=1)).status == "refuted"
    assert split(clipped, beyond=1).status == "refuted"
