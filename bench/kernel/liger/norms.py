"""Maps and statistics of rows, with gradients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F

from bench.kernel.liger import gradient, ops
from bench.kernel.rows import Row, Tensor, normal

ROWS, COLUMNS = 6, 40


def rms(x: Tensor, w: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), w, 1e-6)


def rows() -> Iterator[Row]:
    """The functions, in order."""
    x, w, b = normal(ROWS, COLUMNS), normal(COLUMNS), normal(COLUMNS) + 1
    norm, layer, soft, silu, gelu = (ops(n) for n in ("rms_norm", "layer_norm", "softmax", "swiglu", "geglu"))
    for mode in ("llama", "none"):
        yield Row(
            f"rms_norm_forward ({mode})",
            rms,
            lambda x, w, mode=mode: norm.rms_norm_forward(x, w, 1e-6, 0.0, mode, True)[0],
            (x, w),
            {"x": "rows"},
        )
    yield Row(
        "rms_norm_forward (gemma)",
        lambda x, w: rms(x, w + 1),
        lambda x, w: norm.rms_norm_forward(x, w, 1e-6, 1.0, "gemma", True)[0],
        (x, w),
        {"x": "rows"},
    )
    yield Row(
        "layer_norm_forward",
        _layer_norm,
        lambda x, w, b: layer.layer_norm_forward(x, w, b, 1e-5)[0],
        (x, w, b),
        {"x": "rows"},
    )
    yield Row("softmax", lambda x: torch.softmax(x, -1), lambda x: soft._softmax_forward(x)[0], (x,), {"x": "rows"})
    yield Row(
        "softmax, gradient",
        gradient(lambda x: torch.softmax(x, -1)),
        lambda x, g: soft._softmax_backward(g, torch.softmax(x, -1), *soft._softmax_forward(x)[1:]),
        (x, normal(ROWS, COLUMNS) + 1),
    )
    yield Row(
        "swiglu_forward",
        lambda a, b: F.silu(a) * b,
        lambda a, b: silu.swiglu_forward(a, b)[2],
        (x, x + 1),
        {"a": "rows", "b": "rows"},
    )
    yield Row(
        "swiglu_backward",
        gradient(lambda a, b: F.silu(a) * b, 2),
        lambda a, b, g: silu.swiglu_backward(a.clone(), b.clone(), g),
        (x, x + 1, x + 2),
    )
    yield Row(
        "geglu_forward",
        _gated,
        lambda a, b: gelu.geglu_forward(a, b)[2],
        (x, x + 1),
        {"a": "rows", "b": "rows"},
    )
    yield Row(
        "geglu_backward",
        gradient(_gated, 2),
        lambda a, b, g: gelu.geglu_backward(a.clone(), b.clone(), g),
        (x, x + 1, x + 2),
    )
    yield Row(
        "dyt_fwd",
        lambda x, a, g, b: g * torch.tanh(a * x) + b,
        lambda x, a, g, b: ops("dyt").liger_dyt_fwd(x, a, g, b),
        (x, normal(1), w, b),
        {"x": "rows"},
    )
    yield Row(
        "relu_squared_forward",
        lambda x: torch.relu(x) ** 2,
        lambda x: ops("relu_squared").relu_squared_forward(x),
        (x,),
        {"x": "rows"},
    )
    yield Row(
        "group_norm_forward",
        lambda x, w, b: F.group_norm(x, 4, w, b, 1e-5),
        lambda x, w, b: ops("group_norm").group_norm_forward(x, 8, 4, w, b, 1e-5)[0],
        (normal(3, 8, 10), normal(8), normal(8)),
    )
    yield Row(
        "fused_add_rms_norm_forward",
        lambda x, r, w: rms(x + r, w),
        lambda x, r, w: ops("fused_add_rms_norm").fused_add_rms_norm_forward(x, r, w, 1e-6, 0.0, "none")[0],
        (x, x + 1, w),
        {"x": "rows", "r": "rows"},
    )
    yield Row(
        "rope_forward",
        _rotated,
        lambda q, k, c, s: ops("rope").rope_forward(q, k, c, s)[:2],
        (normal(2, 4, 8, 16), normal(2, 2, 8, 16), _twice(normal(1, 8, 8)), _twice(normal(1, 8, 8) + 1)),
    )
    functions = {
        "LigerRMSNormFunction": (rms, lambda f, x, w: f(x, w, 1e-6, 0.0, "llama", False), "rms_norm", 2),
        "LigerLayerNormFunction": (_layer_norm, lambda f, x, w, b: f(x, w, b, 1e-5), "layer_norm", 3),
        "LigerSiLUMulFunction": (lambda a, b: F.silu(a) * b, lambda f, a, b: f(a, b), "swiglu", 2),
        "LigerGELUMulFunction": (_gated, lambda f, a, b: f(a, b), "geglu", 2),
        "LigerSoftmaxFunction": (lambda x: torch.softmax(x, -1), lambda f, x: f(x), "softmax", 1),
    }
    for name, (reference, call, module, count) in functions.items():
        apply = getattr(ops(module), name).apply
        given = (x, x + 1) if module in ("swiglu", "geglu") else (x, w, b)[:count]
        yield Row(
            f"{name}, gradients",
            gradient(reference, count),
            gradient(partial(call, apply), count),
            (*given, normal(ROWS, COLUMNS) + 2),
        )


def _layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), w, b, 1e-5)


def _gated(a: Tensor, b: Tensor) -> Tensor:
    return F.gelu(a, approximate="tanh") * b


def _twice(x: Tensor) -> Tensor:
    return torch.cat([x, x], -1)


def _rotated(q: Tensor, k: Tensor, c: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    def turned(x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        half = x.shape[-1] // 2  # the kernel reads one half of what are two equal ones
        cos, sin = c[:, None, :, :half], s[:, None, :, :half]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    return turned(q), turned(k)
