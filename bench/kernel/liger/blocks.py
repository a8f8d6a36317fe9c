"""Kernels of rows in several blocks, and those that the package takes for wide rows or many of them.

Which kernel a function of the package takes depends on sizes and on the device. These are launched as it does for large
ones, with small blocks.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.liger import gradient, ops
from bench.kernel.rows import Row, Tensor, normal

ROWS, COLUMNS = 6, 40


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _softmaxes()
    yield from _norms()
    yield from _gates()
    yield from _tables()


def _softmaxes() -> Iterator[Row]:
    soft = ops("softmax")
    x = normal(ROWS, COLUMNS)

    def forward(x: Tensor) -> Tensor:
        y = torch.empty_like(x)
        soft._softmax_multi_block_forward_kernel[(x.shape[0],)](y, y.stride(0), x, x.stride(0), COLUMNS, BLOCK_SIZE=16)
        return y

    def backward(g: Tensor, y: Tensor) -> Tensor:
        dx = torch.empty_like(g)
        soft._softmax_multi_block_backward_kernel[(g.shape[0],)](
            g, g.stride(0), y, y.stride(0), dx, dx.stride(0), COLUMNS, BLOCK_SIZE=16
        )
        return dx

    yield Row("_softmax_multi_block_forward_kernel", lambda x: torch.softmax(x, -1), forward, (x,), {"x": "rows"})
    yield Row(
        "_softmax_multi_block_backward_kernel",
        lambda g, y: y * (g - (g * y).sum(-1, keepdim=True)),
        backward,
        (x, torch.softmax(x + 1, -1)),
        {"g": "rows", "y": "rows"},
    )


def rms(x: Tensor, w: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), w, 1e-6)


def _norms() -> Iterator[Row]:
    x, w = normal(ROWS, COLUMNS), normal(COLUMNS)
    for mode, offset in (("llama", 0.0), ("gemma", 1.0), ("none", 0.0)):
        yield Row(
            f"_block_rms_norm_forward_kernel ({mode})",
            lambda x, w, o=offset: (rms(x, w + o), _scale(x)),
            lambda x, w, m=mode, o=offset: _block_norm(x, w, m, o),
            (x, w),
        )
    for mode, offset in (("llama", 0.0), ("gemma", 1.0)):
        yield Row(
            f"_block_rms_norm_backward_kernel ({mode})",
            gradient(lambda x, w, o=offset: rms(x, w + o), 2),
            lambda x, w, g, m=mode, o=offset: _block_norm_gradient(x, w, g, m, o),
            (x, w, x + 2),
        )
    poly = ops("poly_norm").LigerPolyNormFunction.apply
    yield Row(
        "LigerPolyNormFunction, gradients",
        gradient(_poly, 3),
        gradient(lambda x, w, b: poly(x, w, b, 1e-6, False), 3),
        (x, normal(3), torch.tensor(0.5), x + 2),
    )
    yield Row(
        "LigerDyTFunction, gradients",
        gradient(lambda x, a, w, b: w * torch.tanh(a * x) + b, 4),
        _dyt_gradient,
        (x, normal(1), w, normal(COLUMNS) + 1, x + 2),
    )
    residual = ops("attn_res").LigerAttnResFunction.apply
    yield Row(
        "LigerAttnResFunction, gradients",
        gradient(_over_layers, 3),
        gradient(lambda v, q, w: residual(v, q, w, 1e-6), 3),
        (normal(3, 2, 4, 24), normal(24), normal(24) + 1, normal(2, 4, 24) + 2),
    )


def _scale(x: Tensor) -> Tensor:
    return torch.rsqrt(x.square().mean(-1) + 1e-6)


def _block_norm(x: Tensor, w: Tensor, mode: str, offset: float) -> tuple[Tensor, Tensor]:
    norm = ops("rms_norm")
    y, rstd = torch.empty_like(x), torch.empty(x.shape[0])
    norm._block_rms_norm_forward_kernel[(-(-x.shape[0] // 4),)](
        y, y.stride(0), x, x.stride(0), w, w.stride(0), rstd, rstd.stride(0), *x.shape, 1e-6, offset,
        norm._str_to_casting_mode[mode], elementwise_affine=True, BLOCK_SIZE=64, BLOCK_ROW=4,
    )  # fmt: skip
    return y, rstd


def _block_norm_gradient(x: Tensor, w: Tensor, g: Tensor, mode: str, offset: float) -> tuple[Tensor, Tensor]:
    norm = ops("rms_norm")
    dx, dw, rstd = torch.zeros_like(g), torch.empty(2, x.shape[1]), _scale(x)
    norm._block_rms_norm_backward_kernel[(2,)](
        g, g.stride(0), dx, dx.stride(0), x, x.stride(0), norm.torch_to_triton_dtype[x.dtype], w, w.stride(0), rstd,
        rstd.stride(0), dw, dw.stride(0), *x.shape, offset, norm._str_to_casting_mode[mode], elementwise_affine=True,
        BLOCK_SIZE=64, BLOCK_ROW=2, COMPUTE_DW=True,
    )  # fmt: skip
    return dx, dw.sum(0)


def _poly(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    parts = (F.rms_norm(x**power, (x.shape[-1],), None, 1e-6) for power in (3, 2, 1))
    first, second, third = (w[n] * part for n, part in enumerate(parts))
    return first + second + third + b


def _dyt_gradient(x: Tensor, a: Tensor, w: Tensor, b: Tensor, g: Tensor) -> tuple[Tensor, ...]:
    """As ``liger_dyt_bwd`` on a GPU of four multiprocessors, which it asks the device for."""
    count, columns = 4, x.shape[1]
    da, dw, db = torch.zeros(count, -(-columns // 512)), torch.empty(count, columns), torch.empty(count, columns)
    dx = torch.empty_like(g)
    ops("dyt")._dyt_bwd_kernel[lambda meta: (-(-columns // meta["BLOCK_N"]), count)](
        g, dx, da, dw, db, x, a, w, True, x.shape[0], columns
    )
    return dx, da.sum().unsqueeze(0), dw.sum(0), db.sum(0)


def _over_layers(v: Tensor, q: Tensor, w: Tensor) -> Tensor:
    scores = (F.rms_norm(v, (v.shape[-1],), w, 1e-6) * q).sum(-1)
    return (torch.softmax(scores, 0)[..., None] * v).sum(0)


def _gates() -> Iterator[Row]:
    silu = ops("swiglu")
    x = normal(ROWS, COLUMNS)

    def forward(a: Tensor, b: Tensor) -> Tensor:
        c = torch.empty_like(a)
        silu._swiglu_forward_kernel_tiled[(a.shape[0], 3)](a, b, c, c.stride(0), 0.7, COLUMNS, BLOCK_SIZE=16)
        return c

    def backward(a: Tensor, b: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        a, b = a.clone(), b.clone()
        silu._swiglu_backward_kernel_tiled[(a.shape[0], 3)](g, a, b, g.stride(0), 0.7, COLUMNS, BLOCK_SIZE=16)
        return a, b

    yield Row(
        "_swiglu_forward_kernel_tiled",
        lambda a, b: F.silu(a * 0.7) * b,
        forward,
        (x, x + 1),
        {"a": "rows", "b": "rows"},
    )
    yield Row(
        "_swiglu_backward_kernel_tiled", gradient(lambda a, b: F.silu(a * 0.7) * b, 2), backward, (x, x + 1, x + 2)
    )
    fused = silu.LigerFusedGateUpSiLUMulFunction.apply
    yield Row("swiglu_fused_gate_up_forward", _halves, lambda y: fused(y), (normal(ROWS, 80),), {"y": "rows"})
    for kind, there in (("", False), (" (in place)", True)):
        yield Row(
            f"LigerFusedGateUpSiLUMulFunction, gradient{kind}",
            gradient(_halves),
            gradient(lambda y, there=there: fused(y, there)),
            (normal(ROWS, 80), x + 2),
        )
    yield Row(
        "LigerSiLUMulFunction (multipliers), gradients",
        gradient(lambda a, b: F.silu(a * 0.7) * b * 1.5, 2),
        gradient(lambda a, b: silu.LigerSiLUMulFunction.apply(a, b, 0.7, 1.5), 2),
        (x, x + 1, x + 2),
    )


def _halves(y: Tensor) -> Tensor:
    gate, up = y.chunk(2, -1)
    return F.silu(gate) * up


def _tables() -> Iterator[Row]:
    table = ops("experimental.embedding").LigerEmbeddingFunction.apply
    weights, places = normal(24, 12), torch.tensor([[3, 20, 1, 7, 3], [0, 23, 5, 3, 9], [2, 2, 2, 11, 4]])
    yield Row(
        "LigerEmbeddingFunction",
        lambda w, i: F.embedding(i, w),
        lambda w, i: table(w, i),
        (weights, places),
    )
    yield Row(
        "LigerEmbeddingFunction, gradient",
        gradient(lambda w, i: F.embedding(i, w)),
        gradient(lambda w, i: table(w, i)),
        (weights, places, normal(3, 5, 12) + 1),
    )

    def scaled(x: Tensor, g: Tensor) -> Tensor:
        x = x.clone()
        ops("utils").element_mul_kernel[(x.shape[0],)](x, x.stride(0), g, x.shape[1], BLOCK_SIZE=16)
        return x

    yield Row("element_mul_kernel", lambda x, g: x * g, scaled, (normal(ROWS, COLUMNS), normal(1)), {"x": "rows"})
    packed = torch.randint(0, 255, (32, 24), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    values = torch.randint(-128, 127, (40, 128), generator=torch.Generator().manual_seed(1), dtype=torch.int8)
    yield Row("mm_int8int2.matmul_kernel", _unpacked, _packed_product, (values, packed))


def _unpacked(a: Tensor, b: Tensor) -> Tensor:
    """The product with weights of -1 to 2, of which a byte has four: quarters of the rows, one after the other."""
    whole = torch.cat([((b.int() >> shift) & 3) - 1 for shift in (0, 2, 4, 6)])
    return (a.int()[:, :, None] * whole[None]).sum(1, dtype=torch.int32)


def _packed_product(a: Tensor, b: Tensor) -> Tensor:
    c = torch.empty(a.shape[0], b.shape[1], dtype=torch.int32)
    kernel = ops("experimental.mm_int8int2").matmul_kernel.fn  # of its configurations the smallest fits here
    kernel[(-(-a.shape[0] // 32) * -(-b.shape[1] // 32),)](
        a, b, c, a.shape[0], b.shape[1], a.shape[1], *a.stride(), *b.stride(), *c.stride(), BLOCK_SIZE_M=32,
        BLOCK_SIZE_N=32, BLOCK_SIZE_K=32, GROUP_SIZE_M=4,
    )  # fmt: skip
    return c
