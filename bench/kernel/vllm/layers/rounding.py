"""vLLM's numbers of 8 and 4 bits: what rounds to them, what reads them, and products of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.layers.quantised import unpacked

UTILS = "model_executor.layers.quantization.utils"
FLOAT8 = torch.float8_e4m3fn
LARGEST = 448.0


def rows() -> Iterator[Row]:
    """The functions, in order."""
    random = torch.Generator().manual_seed(0)
    fp8 = vllm(f"{UTILS}.fp8_utils")
    for columns in (False, True):
        for power in (False, True):
            name = f"{', columns of scales' if columns else ''}{', powers of two' if power else ''}"
            yield Row(
                f"per_token_group_quant_fp8 (numbers before they are rounded{name})",
                lambda x, p=power: _groups(x, 8, p),
                lambda x, c=columns, p=power: fp8.per_token_group_quant_fp8(
                    x, 8, column_major_scales=c, out_q=torch.empty_like(x), use_ue8m0=p
                ),
                (normal(6, 40),),
            )
    yield Row(
        "per_token_group_quant_fp8",
        lambda x: _rounded(_groups(x, 8, False)),
        lambda x: fp8.per_token_group_quant_fp8(x, 8, use_ue8m0=False),
        (normal(6, 40),),
    )
    yield Row(
        "silu_mul_per_token_group_quant_fp8_colmajor (numbers before they are rounded)",
        lambda x: _groups(torch.nn.functional.silu(x[:, :32]) * x[:, 32:], 16, False),
        lambda x: fp8.silu_mul_per_token_group_quant_fp8_colmajor(
            x, torch.empty(16, 32), use_ue8m0=False, group_size=16
        ),
        (normal(16, 64),),
    )
    yield Row(
        "silu_mul_per_token_group_quant_fp8_colmajor (numbers before they are rounded, clamped)",
        lambda x: _groups(
            torch.nn.functional.silu(x[:, :32].clamp(max=0.5)) * x[:, 32:].clamp(min=-0.5, max=0.5), 16, False
        ),
        lambda x: fp8.silu_mul_per_token_group_quant_fp8_colmajor(
            x, torch.empty(16, 32), use_ue8m0=False, group_size=16, clamp_limit=0.5
        ),
        (normal(16, 64),),
    )
    a, b = (torch.randint(-128, 127, s, generator=random, dtype=torch.int8) for s in ((9, 96), (48, 96)))
    yield Row(
        "w8a8_triton_block_scaled_mm (int8)",
        _scaled,
        lambda a, b, s, t: fp8.w8a8_triton_block_scaled_mm(a, b, s, t, [16, 32], torch.float32),
        (a, b, normal(9, 3), normal(3, 3)),
    )
    yield Row(
        "w8a8_triton_block_scaled_mm (fp8)",
        _scaled,
        lambda a, b, s, t: fp8.w8a8_triton_block_scaled_mm(a, b, s, t, [16, 32], torch.float32),
        (normal(9, 96).to(FLOAT8), normal(48, 96).to(FLOAT8), normal(9, 3), normal(3, 3)),
    )
    awq = vllm("model_executor.layers.quantization.awq_triton")
    words = [torch.randint(-(2**31), 2**31 - 1, s, generator=random, dtype=torch.int32) for s in ((64, 4), (2, 4))]
    for splits in (1, 2):
        yield Row(
            f"awq_gemm_triton ({splits} splits)",
            lambda x, q, s, z: x @ unpacked(q, s, z),
            lambda x, q, s, z, n=splits: awq.awq_gemm_triton(x, q, s, z, n, block_size_m=16, block_size_k=16),
            (normal(9, 64), words[0], normal(2, 32), words[1]),
        )
    gather = vllm("model_executor.layers.quantization.compressed_tensors.compressed_tensors_embedding")
    ids, packed = torch.tensor([3, 0, 7, 7, 1]), torch.randint(-(2**31), 2**31 - 1, (9, 5), generator=random)
    for bits, width in ((4, 40), (8, 20)):
        for groups in (1, 5):
            yield Row(
                f"compressed_tensors_embedding ({bits} bits, {groups} scales)",
                lambda ids, p, s, n=bits: _gathered(ids, p, s, n),
                lambda ids, p, s, n=bits, w=width: gather._dequant_gather_triton(ids, p, s, w, n),
                (ids, packed.int(), normal(9, groups)),
            )
    swizzle = vllm("model_executor.layers.quantization.qutlass_utils").triton_scale_swizzle
    scales = torch.randint(0, 255, (150, 6), generator=random, dtype=torch.uint8)
    yield Row("triton_scale_swizzle", _blocked, lambda x: _swizzled(swizzle, x), (scales,))
    four = vllm(f"{UTILS}.nvfp4_emulation_utils")
    nibbles = torch.randint(0, 255, (5, 24), generator=random, dtype=torch.uint8)
    yield Row(
        "_dequantize_nvfp4_kernel",
        lambda q, s, g: (_nibbles(q).unflatten(1, (-1, 16)) * (s.float() * g)[..., None]).flatten(1),
        lambda q, s, g: four._triton_dequantize_nvfp4(q, s, g, torch.float32),
        (nibbles, normal(5, 3).to(FLOAT8), normal(1).abs()),
    )
    yield Row("_nvfp4_quant_dequant_kernel", _fours, lambda x, g: four._triton_nvfp4_quant_dequant(x, g, 16),
              (normal(5, 48), normal(1).abs()))  # fmt: skip
    eight = vllm(f"{UTILS}.mxfp8_utils")
    yield Row("_mxfp8_e4m3_quantize_triton", _eights, lambda x: eight._mxfp8_e4m3_quantize_triton(x), (normal(5, 64),))
    mxfp4 = vllm(f"{UTILS}.mxfp4_utils")
    yield Row("downcast_to_mxfp", _mxfours, lambda x: mxfp4.downcast_to_mxfp(x, 1)[:2], (normal(5, 64).bfloat16(),))
    norm = vllm("model_executor.layers.fusion.mm_input_norm").fused_mm_input_norm_triton
    yield Row(
        "fused_mm_input_norm_triton",
        lambda x, w, b: x * w[:, None] + b[:, None],
        lambda x, w, b: norm(x, torch.empty_like(x), w, b),
        (normal(4, 3, 130), normal(3), normal(3) + 1),
    )
    relu = vllm("model_executor.layers.fusion.relu2_fp8_quant")._relu_squared_static_fp8_quant_kernel
    yield Row(
        "_relu_squared_static_fp8_quant_kernel (numbers before they are rounded)",
        lambda x, s: torch.where(x.isnan(), x, ((x.relu() ** 2).bfloat16().float() / s).clamp(-LARGEST, LARGEST)),
        lambda x, s: _relu(relu, x, s),
        (normal(300), normal(1).abs()),
    )


def _groups(x: Tensor, size: int, power: bool) -> tuple[Tensor, Tensor]:
    groups = x.unflatten(-1, (-1, size))
    scale = groups.abs().amax(-1).clamp(min=1e-10) / LARGEST
    if power:
        scale = torch.exp2(torch.ceil(torch.log2(scale)))
    return (groups / scale[..., None]).clamp(-LARGEST, LARGEST).flatten(-2), scale


def _rounded(found: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return found[0].to(FLOAT8), found[1]


def _scaled(a: Tensor, b: Tensor, s: Tensor, t: Tensor) -> Tensor:
    whole = t.repeat_interleave(16, 0).repeat_interleave(32, 1)
    return (a.float() * s.repeat_interleave(32, 1)) @ (b.float() * whole).T


def _gathered(ids: Tensor, packed: Tensor, scale: Tensor, bits: int) -> Tensor:
    words = packed.index_select(0, ids)
    numbers = ((words[..., None] >> torch.arange(0, 32, bits)) & (2**bits - 1)).flatten(1) - 2 ** (bits - 1)
    return numbers * scale.index_select(0, ids).repeat_interleave(numbers.shape[1] // scale.shape[1], 1)


def _blocked(x: Tensor) -> Tensor:
    padded = torch.nn.functional.pad(x, (0, 2, 0, 106))
    return padded.view(2, 4, 32, 2, 4).permute(0, 3, 2, 1, 4).reshape(256, 8)


def _swizzled(kernel: object, x: Tensor) -> Tensor:
    out = torch.empty(256, 8, dtype=torch.uint8)
    kernel[(2, 2)](x, 150, 6, out, 6, 1024, BLOCK_ROWS=128, BLOCK_COLS=4)  # type: ignore[index]
    return out


def _nibbles(q: Tensor) -> Tensor:
    table = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])
    return table[torch.stack([q & 15, q >> 4], -1).flatten(1).long()]


def _fours(x: Tensor, g: Tensor) -> Tensor:
    groups = x.unflatten(1, (-1, 16))
    scale = (g * groups.abs().amax(-1, keepdim=True) / 6).clamp(-LARGEST, LARGEST).to(FLOAT8).float()
    scaled = (groups * torch.where(scale == 0, 0.0, g / scale)).clamp(-6, 6)
    size = scaled.abs()
    found = torch.zeros_like(size)
    for edge, number, closed in ((0.25, 0.5, 0), (0.75, 1.0, 1), (1.25, 1.5, 0), (1.75, 2.0, 1), (2.5, 3.0, 0),
                                 (3.5, 4.0, 1), (5.0, 6.0, 0)):  # fmt: skip
        found = torch.where(size >= edge if closed else size > edge, number, found)
    return (torch.where(scaled < 0, -found, found) * (scale / g)).flatten(1)


def _eights(x: Tensor) -> tuple[Tensor, Tensor]:
    groups = x.unflatten(1, (-1, 32))
    largest = groups.abs().amax(-1).clamp(min=torch.finfo(torch.float32).tiny)
    power = (torch.ceil(torch.log2(largest / LARGEST)) + 127).clamp(0, 254)
    return (groups * torch.exp2(127 - power)[..., None]).flatten(1).to(FLOAT8), power.to(torch.uint8)


def _mxfours(x: Tensor) -> tuple[Tensor, Tensor]:
    groups = x.float().unflatten(1, (-1, 32))
    bits = groups.abs().amax(-1).view(torch.int32) + 0x200000
    power = ((bits >> 23) - 127 - 2).clamp(-127, 127)
    scaled = groups * torch.exp2(-power.float())[..., None]
    size = scaled.abs()
    found = torch.zeros_like(size, dtype=torch.int32)
    for number, (edge, closed) in enumerate(((0.25, 0), (0.75, 1), (1.25, 0), (1.75, 1), (2.5, 0), (3.5, 1), (5.0, 0))):
        found = torch.where(size >= edge if closed else size > edge, number + 1, found)
    nibble = (found + 8 * (scaled < 0)).flatten(1).unflatten(1, (-1, 2))
    return (nibble[..., 0] + 16 * nibble[..., 1]).to(torch.uint8), (power + 127).to(torch.uint8)


def _relu(kernel: object, x: Tensor, s: Tensor) -> Tensor:
    out = torch.empty_like(x)
    kernel[(3,)](x, s, out, 300, -LARGEST, LARGEST, BLOCK_SIZE=128)  # type: ignore[index]
    return out
