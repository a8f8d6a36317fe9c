"""vLLM's state-space models and linear attention."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

STARTS = torch.tensor([0, 8, 16, 24], dtype=torch.int32)


def rows() -> Iterator[Row]:
    """The functions, in order."""
    ops = "model_executor.layers.mamba.ops"
    chunks = (normal(24, 2, 16), normal(24, 2, 16) + 1)
    yield Row(
        "_bmm_chunk_fwd",
        lambda a, b: torch.einsum("cigk,cjgk->cgij", *(x.unflatten(0, (3, 8)) for x in (a, b))),
        lambda a, b: vllm(f"{ops}.ssd_bmm")._bmm_chunk_fwd(a, b, 8, STARTS),
        chunks,
    )
    yield Row(
        "_chunk_cumsum_fwd",
        _sums,
        lambda dt, a, b: vllm(f"{ops}.ssd_chunk_state")._chunk_cumsum_fwd(dt, a, 8, STARTS, b, True),
        (normal(24, 4), -normal(4).exp(), normal(4)),
    )
    yield Row("selective_state_update", _stepped, _step_kernel, _state())
    update = vllm(f"{ops}.causal_conv1d").causal_conv1d_update
    yield Row(
        "causal_conv1d_update",
        lambda x, state, w, b: F.silu((torch.cat([state, x[..., None]], -1) * w).sum(-1) + b),
        lambda x, state, w, b: update(
            x.clone(), F.pad(state, (0, 0, 0, 0, 1, 0)), w, b, "silu", torch.tensor([1, 2, 3], dtype=torch.int32)
        ),
        (normal(3, 8), normal(3, 8, 3), normal(8, 4), normal(8)),
    )


def _sums(dt: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    steps = F.softplus(dt + b).T.unflatten(1, (3, 8))
    return (steps * a[:, None, None]).cumsum(-1), steps


def _state() -> tuple[Tensor, ...]:
    """State (batch, heads, width, size), x, dt, A, B, C, D."""
    return (
        normal(2, 4, 8, 16), normal(2, 4, 8), normal(2, 4, 8), -normal(4, 8, 16).exp(), normal(2, 2, 16),
        normal(2, 2, 16) + 1, normal(4, 8),
    )  # fmt: skip


def _stepped(s: Tensor, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    dt = F.softplus(dt)[..., None]
    b, c = (t.repeat_interleave(2, 1)[:, :, None] for t in (b, c))
    new = s * torch.exp(dt * a) + dt * b * x[..., None]
    return (new * c).sum(-1) + x * d, new


def _step_kernel(s: Tensor, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    state, out = s.clone(), torch.empty_like(x)
    run = vllm("model_executor.layers.mamba.ops.mamba_ssm").selective_state_update
    run(state, x, dt, a, b, c, d, torch.zeros_like(d), dt_softplus=True, out=out)
    return out, state
