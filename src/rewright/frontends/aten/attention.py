"""ATen attention operators; all meet in one reference function."""

from __future__ import annotations

import math
from typing import Any

from rewright.frontends.aten.context import Context, Table, Value
from rewright.ir.errors import UnsupportedOperator
from rewright.ops.reference import attention as reference
from rewright.ops.reference import building as rb
from rewright.ops.reference import softmax
from rewright.ops.reference.attention import Masking, Saved

TABLE = Table()


def _scale(query: Value, scale: float | None) -> float:
    if scale is not None:
        return scale
    size = query.shape[-1]
    if not isinstance(size, int):
        raise UnsupportedOperator(f"attention with symbolic head size {size}; give it a number")
    return 1 / math.sqrt(size)


def _masking(c: Context, mask: Value | None, is_causal: bool, dropout_p: float) -> Masking:
    if dropout_p > 0:
        raise UnsupportedOperator(
            f"attention with dropout_p={dropout_p} is random; set the probability to 0 or call model.eval()"
        )
    return Masking(c.optional(mask), is_causal, guarded=c.guards_queries)


@TABLE.register("aten.scaled_dot_product_attention.default")
def scaled_dot_product_attention(
    c: Context,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> int:
    masking = _masking(c, attn_mask, is_causal, dropout_p)
    return reference.attention(c.b, query.position, key.position, value.position, masking, _scale(query, scale))[0]


@TABLE.register("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_for_cpu(
    c: Context,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[int, int]:
    masking = _masking(c, attn_mask, is_causal, dropout_p)
    operands = (query.position, key.position, value.position)
    result, logsumexp = reference.attention(c.b, *operands, masking, _scale(query, scale))
    return result, rb.convert(c.b, logsumexp, c.result(1).dtype)


@TABLE.register("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def flash_for_cpu_backward(
    c: Context,
    gradient: Value,
    query: Value,
    key: Value,
    value: Value,
    result: Value,
    logsumexp: Value,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[int, int, int]:
    saved = _save(c, query, key, value, result, logsumexp)
    masking = _masking(c, attn_mask, is_causal, dropout_p)
    return reference.attention_backward(c.b, gradient.position, saved, masking, _scale(query, scale))[:3]


def _save(c: Context, query: Value, key: Value, value: Value, result: Value, logsumexp: Value) -> Saved:
    """A kernel may have rounded the number of queries in ``logsumexp`` up (:func:`_pad`)."""
    own = rb.slice_axis(c.b, logsumexp.position, logsumexp.rank - 1, 0, query.shape[-2])
    wide = rb.convert(c.b, own, query.dtype)
    return Saved(query.position, key.position, value.position, result.position, wide)


@TABLE.register("aten._scaled_dot_product_flash_attention.default")
def flash(
    c: Context,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[int | None, ...]:
    result, logsumexp = flash_for_cpu(c, query, key, value, dropout_p, is_causal, scale=scale)
    return result, logsumexp, *_scratch(c)


def _scratch(c: Context) -> tuple[None, ...]:
    """Sequence lengths, seeds and offsets: results that only a random kernel would read."""
    return (None,) * (c.call.count - 2)


@TABLE.register("aten._scaled_dot_product_flash_attention_backward.default")
def flash_backward(
    c: Context,
    gradient: Value,
    query: Value,
    key: Value,
    value: Value,
    result: Value,
    logsumexp: Value,
    cum_seq_q: object,
    cum_seq_k: object,
    max_q: object,
    max_k: object,
    dropout_p: float,
    is_causal: bool,
    *_: object,
    scale: float | None = None,
) -> tuple[int, int, int]:
    return flash_for_cpu_backward(c, gradient, query, key, value, result, logsumexp, dropout_p, is_causal, scale=scale)


@TABLE.register(
    "aten._scaled_dot_product_efficient_attention.default", "aten._scaled_dot_product_cudnn_attention.default"
)
def efficient(
    c: Context,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[int | None, ...]:
    found = flash_for_cpu(c, query, key, value, dropout_p, is_causal, attn_mask=attn_bias, scale=scale)
    wanted = c.result(1)
    logsumexp: int | None = found[1]
    if len(wanted.shape) > c.b.type(found[1]).rank:
        logsumexp = None  # with an axis of one behind: for a gradient that has no lowering
    elif c.b.type(found[1]).shape != wanted.shape:
        logsumexp = _pad(c, found[1]) if compute_log_sumexp else None
    return found[0], logsumexp, *_scratch(c)


def _pad(c: Context, logsumexp: int) -> int:
    """The kernel rounds the number of queries up; the rest is never read."""
    own, wanted = c.b.type(logsumexp).shape, c.result(1).shape
    return rb.pad(c.b, logsumexp, [0] * len(own), [w - o for w, o in zip(wanted, own, strict=True)])


@TABLE.register("aten._scaled_dot_product_efficient_attention_backward.default")
def efficient_backward(
    c: Context,
    gradient: Value,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    result: Value,
    logsumexp: Value,
    seed: object,
    offset: object,
    dropout_p: float,
    grad_input_mask: list[bool],
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[int | None, ...]:
    saved = _save(c, query, key, value, result, logsumexp)
    masking = _masking(c, attn_bias, is_causal, dropout_p)
    found = reference.attention_backward(c.b, gradient.position, saved, masking, _scale(query, scale))
    bias = found[3] if grad_input_mask[3] else None
    return (*found[:3], bias)


@TABLE.register("aten._scaled_dot_product_attention_math.default")
def math_attention(c: Context, *args: Any, **kwargs: Any) -> tuple[int, int | None]:
    """The same; a seventh argument is the mask of a dropout, which is refused, and nothing reads the second result."""
    return scaled_dot_product_attention(c, *args[:6], **kwargs), None


@TABLE.register("aten._softmax.default", "aten.softmax.int")
def softmax_(c: Context, x: Value, dim: int, *_: object) -> int:
    return softmax.softmax(c.b, c.convert(x), x.axis(dim))


@TABLE.register("aten._safe_softmax.default")
def safe_softmax(c: Context, x: Value, dim: int, *_: object) -> int:
    return softmax.safe_softmax(c.b, c.convert(x), x.axis(dim))


@TABLE.register("aten._log_softmax.default", "aten.log_softmax.int")
def log_softmax(c: Context, x: Value, dim: int, *_: object) -> int:
    return softmax.log_softmax(c.b, c.convert(x), x.axis(dim))


@TABLE.register("aten._softmax_backward_data.default")
def softmax_backward(c: Context, gradient: Value, output: Value, dim: int, input_dtype: object) -> int:
    found = softmax.softmax_backward(c.b, gradient.position, output.position, output.axis(dim))
    return rb.convert(c.b, found, c.result().dtype)


@TABLE.register("aten._log_softmax_backward_data.default")
def log_softmax_backward(c: Context, gradient: Value, output: Value, dim: int, input_dtype: object) -> int:
    found = softmax.log_softmax_backward(c.b, gradient.position, output.position, output.axis(dim))
    return rb.convert(c.b, found, c.result().dtype)
