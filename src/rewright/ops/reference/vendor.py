"""What fused kernels of vendors compute, written with the operators of the IR.

Each function says what one kernel gives for every input; results that a kernel writes in place are returned. Sources:
the kernels' own reference implementations in vLLM (``layernorm.py``, ``rotary_embedding``, ``activation.py``), Apex
(``fused_layer_norm.py``) and transformers-neuronx (``hlo.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewright import ops
from rewright.ir.dims import Dim, divide
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import activation, attention, indexing, normalization
from rewright.ops.reference import building as rb
from rewright.ops.reference.attention import Masking

Activation = Callable[[GraphBuilder, int], int]


def fused_add_rms_norm(b: GraphBuilder, x: int, residual: int, weight: int, eps: float) -> tuple[int, int]:
    """The normalised sum of ``x`` and ``residual`` times ``weight``, and the sum itself, which is the new residual."""
    total = rb.add(b, x, residual)
    return normalization.rms_norm(b, total, 1, weight, eps)[0], total


def silu_and_mul(b: GraphBuilder, x: int) -> int:
    """``silu(first) * second`` of the halves of the last axis."""
    return rb.multiply(b, *_gated_halves(b, x, activation.silu))


def gelu_and_mul(b: GraphBuilder, x: int, approximate: str = "none") -> int:
    """``gelu(first) * second`` of the halves of the last axis."""
    return rb.multiply(b, *_gated_halves(b, x, lambda b, first: activation.gelu(b, first, approximate)))


def _gated_halves(b: GraphBuilder, x: int, function: Activation) -> tuple[int, int]:
    axis = b.type(x).rank - 1
    width = b.type(x).shape[axis] if axis >= 0 else 1
    half = divide(width, 2)
    if half is None:
        raise TypeMismatch(f"a last axis of {width} has no halves; give gate and value side by side")
    first = rb.slice_axis(b, x, axis, 0, half)
    return function(b, first), rb.slice_axis(b, x, axis, half, width)


def rotary_embedding(b: GraphBuilder, positions: int, x: int, head_size: Dim, cache: int, neox: bool) -> int:
    """Heads rotated by the angles of their positions.

    ``positions`` (tokens), ``x`` (tokens, heads * head_size) or (tokens, heads, head_size), ``cache`` (positions, R)
    with R/2 cosines and then R/2 sines. The first R elements of a head are rotated: with ``neox`` its first half
    against its second, else neighbours. Raises TypeMismatch where shapes do not fit.
    """
    with rb.scope(b, "rotary embedding"):
        shape = b.type(x).shape
        tokens, rotated = b.type(positions).size(), b.type(cache).shape[-1]
        heads = divide(b.type(x).size(), tokens * head_size)
        half = divide(rotated, 2)
        if heads is None or half is None or b.type(cache).rank != 2:
            raise TypeMismatch(f"{b.type(x)} is not {tokens} tokens of heads of {head_size} rotated by {b.type(cache)}")
        states = rb.reshape(b, x, (tokens, heads, head_size))
        angles = indexing.take(b, cache, rb.reshape(b, positions, (tokens,)), 0)
        cosine = rb.insert_ones(b, rb.slice_axis(b, angles, 1, 0, half), [1])
        sine = rb.insert_ones(b, rb.slice_axis(b, angles, 1, half, rotated), [1])
        first, second = _pairs(b, states, half, rotated, neox)
        left = rb.subtract(b, rb.multiply(b, first, cosine), rb.multiply(b, second, sine))
        right = rb.add(b, rb.multiply(b, second, cosine), rb.multiply(b, first, sine))
        parts = [_unpaired(b, left, right, (tokens, heads, rotated), neox)]
        if rotated != head_size:
            parts.append(rb.slice_axis(b, states, 2, rotated, head_size))
        return rb.reshape(b, rb.concatenate(b, parts, 2), shape)


def _pairs(b: GraphBuilder, states: int, half: Dim, rotated: Dim, neox: bool) -> tuple[int, int]:
    if neox:
        return rb.slice_axis(b, states, 2, 0, half), rb.slice_axis(b, states, 2, half, rotated)
    return rb.slice_axis(b, states, 2, 0, rotated, 2), rb.slice_axis(b, states, 2, 1, rotated, 2)


def _unpaired(b: GraphBuilder, left: int, right: int, shape: Sequence[Dim], neox: bool) -> int:
    if neox:
        return rb.concatenate(b, [left, right], 2)
    wide = [rb.insert_ones(b, part, [3]) for part in (left, right)]
    return rb.reshape(b, rb.concatenate(b, wide, 3), shape)


def token_attention(b: GraphBuilder, query: int, key: int, value: int, scale: float) -> int:
    """Causal attention of tokens over those before them: (T, H, E), (T, K, E) and (T, K, V) give (T, H, V)."""
    heads_first = [rb.transpose(b, x, (1, 0, 2)) for x in (query, key, value)]
    found, _ = attention.attention(b, heads_first[0], heads_first[1], heads_first[2], Masking(causal=True), scale)
    return rb.transpose(b, found, (1, 0, 2))


def rms_norm_along(b: GraphBuilder, x: int, weight: int, axis: int, eps: float) -> int:
    """``x / sqrt(mean(x^2) + eps) * weight`` along one axis, which need not be the last."""
    with rb.scope(b, "rms norm"):
        wide = rb.convert(b, x, b.type(weight).dtype)
        square = rb.mean(b, rb.multiply(b, wide, wide), [axis], keep=True)
        unit = rb.multiply(b, wide, b.add(ops.Rsqrt(), rb.shift_by(b, square, eps)))
        return rb.multiply(b, unit, rb.broadcast_along(b, weight, b.type(unit).shape, axis))
