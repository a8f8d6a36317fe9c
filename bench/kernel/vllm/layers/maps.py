"""vLLM's activations, norms, softmax and products."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

BOTH = {"x": "rows"}


def rows() -> Iterator[Row]:
    """The functions, in order."""
    x, w, b = normal(6, 40), normal(40), normal(40) + 1
    gelu = vllm("kernels.triton.activation")
    native = vllm("ir.ops").gelu_and_mul_sparse.impls["native"].impl_fn
    yield Row(
        "gelu_and_mul_sparse_triton (IR operator)",
        lambda x: native(x, 1.64, "tanh"),
        lambda x: gelu.gelu_and_mul_sparse_triton.impl_fn(x, 1.64, "tanh"),
        (x,),
        BOTH,
    )
    yield Row("swiglustep_and_mul_triton", _swiglu_step, _swiglu_step_kernel, (x * 5,), BOTH)
    same = vllm("model_executor.determinism.batch_invariant")
    yield Row("batch_invariant.softmax", lambda x: torch.softmax(x, -1), lambda x: same.softmax(x), (x,), BOTH)
    yield Row(
        "batch_invariant.log_softmax",
        lambda x: torch.log_softmax(x, -1),
        lambda x: same.log_softmax(x),
        (x,),
        BOTH,
    )
    yield Row("batch_invariant.mean_dim", lambda x: x.mean(1), lambda x: same.mean_dim(x, 1), (normal(3, 5, 4),))
    yield Row(
        "batch_invariant.rms_norm",
        lambda x, w: F.rms_norm(x, (40,), w, 1e-6),
        lambda x, w: same.rms_norm_batch_invariant(x, w, 1e-6),
        (x, w),
        BOTH,
    )
    yield Row(
        "batch_invariant.matmul_persistent",
        lambda a, b, c: a @ b + c,
        lambda a, b, c: same.matmul_persistent(a, b, c),
        (normal(70, 40), normal(40, 30), normal(30)),
    )
    yield Row(
        "batch_invariant.bmm",
        torch.bmm,
        lambda a, b: same.bmm_batch_invariant(a, b),
        (normal(3, 9, 40), normal(3, 40, 7)),
    )
    flash = vllm("third_party.flash_linear_attention.ops.l2norm")
    yield Row(
        "l2norm_fwd",
        lambda x: x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt(),
        lambda x: flash.l2norm_fwd(x),
        (x,),
        BOTH,
    )
    gated = vllm("model_executor.layers.mamba.ops.layernorm_gated")
    yield Row(
        "rms_norm_gated",
        lambda x, w, z: F.rms_norm(x, (40,), w, 1e-6) * F.silu(z),
        lambda x, w, z: gated.rms_norm_gated(x, w, None, z),
        (x, w, x + 1),
        {"x": "rows", "z": "rows"},
    )
    yield Row(
        "rms_norm_gated (four groups, gate first)",
        lambda x, w, z: (F.rms_norm((x * F.silu(z)).unflatten(-1, (4, 10)), (10,), None, 1e-6)).flatten(-2) * w,
        lambda x, w, z: gated.rms_norm_gated(x, w, None, z, group_size=10, norm_before_gate=False),
        (x, w, x + 1),
        {"x": "rows", "z": "rows"},
    )
    norm = vllm("third_party.flash_linear_attention.ops.fused_norm_gate")
    yield Row(
        "layer_norm_gated_fwd",
        lambda x, g, w, b: F.layer_norm(x, (40,), w, b, 1e-5) * F.silu(g),
        lambda x, g, w, b: norm.layer_norm_gated_fwd(x.clone(), g, w, b)[0],
        (x, x + 1, w, b),
        {"x": "rows", "g": "rows"},
    )
    mixing = vllm("model_executor.kernels.mhc.triton")
    yield Row(
        "rmsnorm_nw",
        lambda x: F.rms_norm(x, (40,), None, 1e-6),
        lambda x: mixing.rmsnorm_nw(x, 1e-6),
        (x,),
        BOTH,
    )
    yield Row(
        "mhc_pre_mix_triton",
        lambda p, q, scale, base: (
            torch.sigmoid(p.sum(0)[:, :4] * torch.rsqrt(q.sum(0) * (1.0 / 64) + 1e-6)[:, None] * scale + base) + 1e-3
        ),
        lambda p, q, scale, base: mixing.mhc_pre_mix_triton(p, q, scale, base, 4, 64, 1e-6, 1e-3),
        (normal(3, 5, 12), normal(3, 5).square(), normal(1), normal(4)),
    )


def _swiglu_step(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, -1)
    return F.silu(gate).clamp(max=7.0) * up.clamp(-7.0, 7.0)


def _swiglu_step_kernel(x: Tensor) -> Tensor:
    found = torch.empty(x.shape[0], x.shape[1] // 2)
    vllm("model_executor.layers.activation").swiglustep_and_mul_triton(found, x)
    return found
