"""vLLM's quantisation and products of quantised tensors."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm


def rows() -> Iterator[Row]:
    """The functions, in order."""
    int8 = vllm("model_executor.layers.quantization.utils.int8_utils")
    yield Row("per_token_quant_int8", _tokens, lambda x: int8.per_token_quant_int8(x), (normal(6, 40),), {"x": "rows"})
    yield Row(
        "per_token_group_quant_int8",
        lambda x: _groups(x, 8),
        lambda x: int8.per_token_group_quant_int8(x, 8),
        (normal(6, 40),),
    )
    awq = vllm("model_executor.layers.quantization.awq_triton")
    random = torch.Generator().manual_seed(0)
    words = [torch.randint(-(2**31), 2**31 - 1, s, generator=random, dtype=torch.int32) for s in ((64, 4), (2, 4))]
    yield Row("awq_dequantize_triton", unpacked, lambda q, s, z: awq.awq_dequantize_triton(q, s, z),
              (words[0], normal(2, 32), words[1]))  # fmt: skip
    scaled = vllm("model_executor.layers.quantization.compressed_tensors.triton_scaled_mm").triton_scaled_mm
    a, b = (torch.randint(-128, 127, s, generator=random, dtype=torch.int8) for s in ((9, 256), (256, 24)))
    yield Row(
        "triton_scaled_mm (int8)",
        lambda a, b, s, t: (s * t.T) * (a.float() @ b.float()),
        lambda a, b, s, t: scaled(a, b, s, t, torch.float32),
        (a, b, normal(9, 1), normal(24, 1)),
    )


def _tokens(x: Tensor) -> tuple[Tensor, Tensor]:
    largest = x.abs().amax(-1, keepdim=True).clamp(min=1e-10)
    scaled = x * (127 / largest)
    away = torch.where(scaled >= 0, (scaled + 0.5).floor(), (scaled - 0.5).ceil())
    return away.to(torch.int8), largest / 127


def _groups(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    groups = x.unflatten(-1, (-1, size))
    scale = groups.abs().amax(-1).clamp(min=1e-10) / 127
    return (groups / scale[..., None]).clamp(-128, 127).to(torch.int8).flatten(-2), scale


def unpacked(q: Tensor, s: Tensor, z: Tensor) -> Tensor:
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7]) * 4

    def nibbles(x: Tensor) -> Tensor:
        return ((x[..., None] >> order) & 15).flatten(-2)

    size = q.shape[0] // s.shape[0]
    return (nibbles(q) - nibbles(z).repeat_interleave(size, 0)) * s.repeat_interleave(size, 0)
