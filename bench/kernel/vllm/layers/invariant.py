"""vLLM's operators whose results do not depend on the batch, and products of weights of few bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm


def rows() -> Iterator[Row]:
    """The functions, in order."""
    own = vllm("model_executor.determinism.batch_invariant")
    a, b, bias = normal(37, 70), normal(70, 50), normal(50)
    yield Row(
        "batch_invariant.matmul_persistent (bias)",
        lambda a, b, c: torch.addmm(c, a, b),
        lambda a, b, c: own.matmul_persistent(a, b, c),
        (a, b, bias),
    )
    yield Row(
        "matmul_kernel_persistent (small tiles, fewer instances than tiles)",
        lambda a, b, c: torch.addmm(c, a, b),
        lambda a, b, c: _persistent(own.matmul_kernel_persistent, a, b, c),
        (a, b, bias),
    )
    yield Row(
        "matmul_kernel_descriptor_persistent",
        lambda a, b, c: torch.addmm(c, a, b.T),
        lambda a, b, c: _described(own.matmul_kernel_descriptor_persistent, a, b, c),
        (normal(37, 72), normal(52, 72), normal(52)),
    )
    yield Row("bmm_kernel (small tiles)", lambda a, b: a @ b, lambda a, b: _products(own.bmm_kernel, a, b),
              (normal(3, 37, 70), normal(3, 70, 50)))  # fmt: skip
    yield Row(
        "batch_invariant.addmm (beta 2, alpha 3)",
        lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3),
        lambda c, a, b: own.addmm_batch_invariant(c, a, b, beta=2, alpha=3),
        (bias, a, b),
    )
    yield Row(
        "batch_invariant.addmm (beta 2)",
        lambda c, a, b: torch.addmm(c, a, b, beta=2),
        lambda c, a, b: own.addmm_batch_invariant(c, a, b, beta=2),
        (bias, a, b),
    )
    yield Row(
        "batch_invariant.linear",
        lambda x, w, c: F.linear(x, w, c),
        lambda x, w, c: own.linear_batch_invariant(x, w, c),
        (normal(2, 5, 40), normal(24, 40), normal(24)),
    )
    yield Row(
        "batch_invariant.matmul (a matrix and a batch)",
        lambda a, b: a @ b,
        lambda a, b: own.matmul_batch_invariant(a, b),
        (normal(5, 40), normal(2, 3, 40, 24)),
    )
    yield Row(
        "batch_invariant.mean (two dimensions)",
        lambda x: x.mean((0, 2)),
        lambda x: own.mean_batch_invariant(x, [0, 2]),
        (normal(3, 4, 5),),
    )
    yield Row(
        "_softmax_kernel (short blocks)",
        lambda x: torch.softmax(x, -1),
        lambda x: _softmax(own._softmax_kernel, x, False),
        (normal(5, 70),),
        {"x": "rows"},
    )
    yield Row(
        "_softmax_kernel (short blocks, logarithm)",
        lambda x: torch.log_softmax(x, -1),
        lambda x: _softmax(own._softmax_kernel, x, True),
        (normal(5, 70),),
        {"x": "rows"},
    )
    yield Row(
        "_fixed_order_sum_kernel",
        lambda x: x.sum(0),
        lambda x: _summed(own._fixed_order_sum_kernel, x),
        (normal(4, 300),),
    )
    four = vllm("model_executor.kernels.linear.mixed_precision.triton_w4a16")
    random = torch.Generator().manual_seed(0)
    words, zeros = (torch.randint(-(2**31), 2**31 - 1, (n, 5), generator=random).int() for n in (64, 2))
    yield Row(
        "triton_w4a16_gemm (zeros)",
        lambda x, q, s, z: x @ ((_nibbles(q) - _nibbles(z).repeat_interleave(32, 0)) * s.repeat_interleave(32, 0)),
        lambda x, q, s, z: four._triton_w4a16_gemm_impl(x, q, s, z, 32),
        (normal(9, 64), words, normal(2, 40), zeros),
    )
    yield Row(
        "triton_w4a16_gemm",
        lambda x, q, s: x @ ((_nibbles(q) - 8) * s.repeat_interleave(32, 0)),
        lambda x, q, s: four._triton_w4a16_gemm_impl(x, q, s, None, 32),
        (normal(9, 64), words, normal(2, 40)),
    )


def _nibbles(x: Tensor) -> Tensor:
    return ((x[..., None] >> torch.arange(0, 32, 4)) & 15).flatten(1)


def _persistent(kernel: Any, a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], b.shape[1])
    kernel[(4,)](
        a, b, out, bias, a.shape[0], b.shape[1], a.shape[1], *a.stride(), *b.stride(), *out.stride(), 1,
        BLOCK_SIZE_M=16, BLOCK_SIZE_N=16, BLOCK_SIZE_K=16, GROUP_SIZE_M=2, NUM_SMS=4, A_LARGE=False, B_LARGE=False,
        C_LARGE=False, HAS_BIAS=True,
    )  # fmt: skip
    return out


def _described(kernel: Any, a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], b.shape[0])
    kernel[(4,)](
        a, b, out, bias, a.shape[0], b.shape[0], a.shape[1], BLOCK_SIZE_M=16, BLOCK_SIZE_N=16, BLOCK_SIZE_K=16,
        GROUP_SIZE_M=2, NUM_SMS=4, HAS_BIAS=True,
    )  # fmt: skip
    return out


def _products(kernel: Any, a: Tensor, b: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], a.shape[1], b.shape[2])
    kernel[(3, 12)](
        a, b, out, 3, a.shape[1], b.shape[2], a.shape[2], *a.stride(), *b.stride(), *out.stride(), BLOCK_SIZE_M=16,
        BLOCK_SIZE_N=16, BLOCK_SIZE_K=16, A_LARGE=False, B_LARGE=False, C_LARGE=False,
    )  # fmt: skip
    return out


def _softmax(kernel: Any, x: Tensor, logarithm: bool) -> Tensor:
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, out, *x.stride(), out.stride(0), x.shape[1], BLOCK_SIZE=32, LOG=logarithm)
    return out


def _summed(kernel: Any, x: Tensor) -> Tensor:
    out = torch.empty(300)
    kernel[(3,)](x, out, 300, 300, WORLD_SIZE=4, BLOCK_SIZE=128, LARGE=False)
    return out
