"""Scaled dot-product attention and its gradient, as FlashAttention defines them.

The forward pass is ``softmax(scale * q k^T + mask) v`` and returns the logarithm of the sum of the exponentials of
the scores; the backward pass recomputes the probabilities from it (Dao et al., FlashAttention, 2022, appendix B).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.dims import divide
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType
from rewright.ops.reference import building as rb
from rewright.ops.reference.softmax import exponentials


@dataclass(frozen=True, slots=True)
class Masking:
    """Which scores count: ``mask`` is boolean (true counts) or added to the scores; ``causal`` keeps key <= query.

    ``guarded`` gives zero for a query that no key may answer, as result (instead of NaN) and as log-sum-exp (instead
    of minus infinity), so that its gradients are zero.
    """

    mask: int | None = None
    causal: bool = False
    guarded: bool = False


def attention(b: GraphBuilder, query: int, key: int, value: int, masking: Masking, scale: float) -> tuple[int, int]:
    """The result (.., H, S, V) and the log-sum-exp of the scores (.., H, S).

    Operands (.., H, S, E), (.., K, T, E) and (.., K, T, V), where K divides H: groups of H / K query heads share
    a key and a value. Raises TypeMismatch where the shapes do not fit.
    """
    with rb.scope(b, "attention"):
        key, value = repeat_heads(b, key, query), repeat_heads(b, value, query)
        scores = _scores(b, query, key, masking, scale)
        parts = exponentials(b, scores, -1)
        logsumexp = rb.add(b, parts.maximum, b.add(ops.Log(), parts.total))
        probabilities = rb.divide(b, parts.values, parts.total)
        batch = b.type(query).rank - 2
        result = rb.dot(b, probabilities, value, ([batch + 1], [batch]), batch)
        if masking.guarded:
            empty = rb.compare(b, "EQ", parts.maximum, rb.splat_like(b, float("-inf"), parts.maximum))
            result = rb.select(b, empty, rb.splat_like(b, 0.0, result), result)
            logsumexp = rb.select(b, empty, rb.splat_like(b, 0.0, logsumexp), logsumexp)
        return result, rb.reshape(b, logsumexp, b.type(logsumexp).shape[:-1])


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward pass leaves for the backward pass."""

    query: int
    key: int
    value: int
    result: int
    logsumexp: int


def attention_backward(
    b: GraphBuilder, gradient: int, saved: Saved, masking: Masking, scale: float
) -> tuple[int, int, int, int]:
    """Gradients of query, key, value and of the scores before scaling by ``scale`` (that of an added mask)."""
    with rb.scope(b, "attention"):
        batch = b.type(saved.query).rank - 2
        key, value = repeat_heads(b, saved.key, saved.query), repeat_heads(b, saved.value, saved.query)
        scores = _scores(b, saved.query, key, masking, scale)
        logsumexp = rb.insert_ones(b, saved.logsumexp, [batch + 1])
        probabilities = b.add(ops.Exponential(), rb.subtract(b, scores, logsumexp))
        value_gradient = rb.dot(b, probabilities, gradient, ([batch], [batch]), batch)
        inner = rb.dot(b, gradient, value, ([batch + 1], [batch + 1]), batch)
        delta = rb.reduce(b, "sum", rb.multiply(b, gradient, saved.result), [-1], keep=True)
        raw = rb.multiply(b, probabilities, rb.subtract(b, inner, delta))
        score_gradient = rb.scale_by(b, raw, scale)
        query_gradient = rb.dot(b, score_gradient, key, ([batch + 1], [batch]), batch)
        key_gradient = rb.dot(b, score_gradient, saved.query, ([batch], [batch]), batch)
        return (
            query_gradient,
            _sum_heads(b, key_gradient, saved.key),
            _sum_heads(b, value_gradient, saved.value),
            raw,
        )


def _scores(b: GraphBuilder, query: int, key: int, masking: Masking, scale: float) -> int:
    batch = b.type(query).rank - 2
    scores = rb.scale_by(b, rb.dot(b, query, key, ([batch + 1], [batch + 1]), batch), scale)
    lowest = rb.splat_like(b, float("-inf"), scores)
    if masking.causal:
        scores = rb.select(b, causal_mask(b, scores), scores, lowest)
    if masking.mask is None:
        return scores
    if b.type(masking.mask).dtype is DType.BOOL:
        return rb.select(b, masking.mask, scores, lowest)
    return rb.add(b, scores, rb.convert(b, masking.mask, b.type(scores).dtype))


def causal_mask(b: GraphBuilder, scores: int) -> int:
    """True where the key's position is at most the query's, for the last two axes of ``scores``."""
    shape = b.type(scores).shape[-2:]
    return rb.compare(b, "LE", rb.iota(b, shape, 1), rb.iota(b, shape, 0))


def repeat_heads(b: GraphBuilder, x: int, query: int) -> int:
    """Key or value heads repeated so that there is one for each head of the query (axis -3)."""
    shape, wanted = b.type(x).shape, b.type(query).shape
    if len(shape) < 3 or shape[-3] == wanted[-3]:
        return x
    times = divide(wanted[-3], shape[-3])
    if times is None:
        raise TypeMismatch(f"{shape[-3]} key heads do not divide the {wanted[-3]} query heads")
    axes: Sequence[int] = [*range(len(shape) - 2), len(shape) - 1, len(shape)]
    grouped = b.add(ops.BroadcastInDim((*shape[:-2], times, *shape[-2:]), tuple(axes)), x)
    return rb.reshape(b, grouped, (*shape[:-3], wanted[-3], *shape[-2:]))


def _sum_heads(b: GraphBuilder, gradient: int, original: int) -> int:
    """Gradients of repeated heads added up to those of the heads they came from."""
    shape, wanted = b.type(gradient).shape, b.type(original).shape
    if len(shape) < 3 or shape[-3] == wanted[-3]:
        return gradient
    times = divide(shape[-3], wanted[-3])
    assert times is not None
    grouped = rb.reshape(b, gradient, (*shape[:-3], wanted[-3], times, *shape[-2:]))
    return rb.reduce(b, "sum", grouped, [len(shape) - 2])
