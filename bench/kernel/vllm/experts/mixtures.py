"""vLLM's products of mixtures of experts: tokens times the weights of the experts that they chose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm

TOKENS, CHOSEN, EXPERTS, INNER, OUTER, BLOCK = 5, 2, 3, 40, 24, 16
SORTED = ((0, 3, 5, 8), (1, 2, 4, 7), (6, 9))
"""Which choices (token * CHOSEN + place) are of each expert, in blocks that are filled up with one past the last."""


def rows() -> Iterator[Row]:
    """The functions, in order."""
    x, w, weights = normal(TOKENS, INNER), normal(EXPERTS, OUTER, INNER), normal(TOKENS, CHOSEN).abs()
    ids = torch.tensor([[0, 2], [1, 1], [2, 0], [1, 0], [2, 2]], dtype=torch.int32)
    for routed in (False, True):
        yield Row(
            f"fused_moe_kernel (one block for each token{', weighted' if routed else ''})",
            lambda x, w, weights, ids, r=routed: _chosen(x, w, weights, ids, r),
            lambda x, w, weights, ids, r=routed: _moe(x, w, weights, None, ids.flatten(), BLOCK, r),
            (x, w, weights, ids),
            given=_are_experts,
        )
        yield Row(
            f"fused_moe_kernel (sorted tokens{', weighted' if routed else ''})",
            lambda x, w, weights, r=routed: _chosen(x, w, weights, _owners(), r),
            lambda x, w, weights, r=routed: _moe(x, w, weights, _sorted(), torch.arange(3, dtype=torch.int32), 48, r),
            (x, w, weights),
        )
    yield Row(
        "fused_moe_kernel (sorted tokens, experts of blocks are given)",
        lambda x, w, weights, blocks: _chosen(x, w, weights, blocks.index_select(0, _blocks()).view(5, 2), True),
        lambda x, w, weights, blocks: _moe(x, w, weights, _sorted(), blocks, 48, True),
        (x, w, weights, torch.tensor([2, 0, 1], dtype=torch.int32)),
    )
    yield Row(
        "fused_moe_kernel (sorted tokens, some experts of another rank)",
        lambda x, w, weights: _chosen(x, w, weights, _owners(), False) * (_owners() != 1)[..., None],
        lambda x, w, weights: _moe(x, w, weights, _sorted(), torch.tensor([0, -1, 2], dtype=torch.int32), 48, False),
        (x, w, weights),
    )
    yield Row(
        "fused_moe_kernel (tokens as they are sorted are given)",
        _scattered,
        lambda x, w, tokens, blocks: _moe(x, w, torch.ones(TOKENS, CHOSEN), tokens, blocks, 48, False),
        (x, w, _sorted(), torch.tensor([2, 0, 1], dtype=torch.int32)),
    )
    yield Row(
        "fused_moe_kernel (bias)",
        lambda x, w, weights, ids, bias: (_chosen(x, w, weights, ids, False) + bias[ids]) * weights[..., None],
        lambda x, w, weights, ids, bias: _moe(x, w, weights, None, ids.flatten(), BLOCK, True, bias=bias),
        (x, w, weights, ids, normal(EXPERTS, OUTER)),
        given=_are_experts,
    )
    random = torch.Generator().manual_seed(0)
    q, v = (torch.randint(-128, 127, s, generator=random, dtype=torch.int8) for s in ((TOKENS, 64), (EXPERTS, 24, 64)))
    yield Row(
        "fused_moe_kernel (weights of 8 bits)",
        lambda x, w, weights, ids, s: _chosen(x, w * s[..., None], weights, ids, True),
        lambda x, w, weights, ids, s: _moe(x, w, weights, None, ids.flatten(), BLOCK, True, s=s, use_int8_w8a16=True),
        (normal(TOKENS, 64), v, weights, ids, normal(EXPERTS, OUTER)),
        given=_are_experts,
    )
    yield Row(
        "fused_moe_kernel (8 bits, scales of tokens and channels)",
        lambda x, w, weights, ids, a, s: _chosen(x * a, w * s[..., None], weights, ids, True),
        lambda x, w, weights, ids, a, s: _moe(
            x,
            w,
            weights,
            None,
            ids.flatten(),
            BLOCK,
            True,
            a=a,
            s=s,
            inner=32,
            use_int8_w8a8=True,
            per_channel_quant=True,
        ),
        (q, v, weights, ids, normal(TOKENS, 1), normal(EXPERTS, OUTER)),
        given=_are_experts,
    )
    yield Row(
        "fused_moe_kernel (8 bits, scales of blocks)",
        lambda x, w, weights, ids, a, s: _chosen(
            x * a.repeat_interleave(32, 1),
            w * s.repeat_interleave(32, 1)[:, :24].repeat_interleave(32, 2),
            weights,
            ids,
            True,
        ),
        lambda x, w, weights, ids, a, s: _moe(
            x,
            w,
            weights,
            None,
            ids.flatten(),
            BLOCK,
            True,
            a=a,
            s=s,
            use_int8_w8a8=True,
            block_shape=[32, 32],
            inner=64,
        ),
        (q, v, weights, ids, normal(TOKENS, 2), normal(EXPERTS, 1, 2)),
        given=_are_experts,
    )
    for bits in (4, 8):
        packed = torch.randint(0, 255, (EXPERTS, 24, 64 * bits // 8), generator=random, dtype=torch.uint8)
        for zeros in (False, True):
            points = torch.randint(0, 255, (EXPERTS, 24 * bits // 8, 2), generator=random, dtype=torch.uint8)
            yield Row(
                f"fused_moe_kernel_gptq_awq ({bits} bits{', zeros' if zeros else ''})",
                lambda x, w, s, z, weights, n=bits, own=zeros: _chosen(
                    x, _numbers(w, s, z if own else None, n), weights, _owners(), True
                ),
                lambda x, w, s, z, weights, n=bits, own=zeros: _few(x, w, s, z if own else None, weights, n),
                (normal(TOKENS, 64), packed, normal(EXPERTS, 24, 2), points, weights),
            )
    yield Row("compute_identity_kernel", lambda x, s: x * s.sum(1, keepdim=True), _identity,
              (normal(5, 512), normal(5, 3)))  # fmt: skip
    counts = torch.tensor([3, 0, 20], dtype=torch.int32)
    given = (normal(3, 20, 40), normal(3, 24, 40), counts)
    yield Row("batched_triton_kernel", _batched, _batch, given)
    yield Row("batched_triton_kernel (no more tokens than there are places)", _batched,
              lambda x, w, counts: _batch(x, w, counts.clamp(max=20)), given)  # fmt: skip


def _are_experts(_x: Tensor, _w: Tensor, _weights: Tensor, ids: Tensor, *_scales: Tensor) -> tuple[Tensor, Tensor]:
    """A condition: each token chose experts that there are."""
    return ids >= 0, ids < EXPERTS


def _owners() -> Tensor:
    """The expert of each choice."""
    expert = {place: expert for expert, places in enumerate(SORTED) for place in places}
    return torch.tensor([expert[place] for place in range(TOKENS * CHOSEN)]).view(TOKENS, CHOSEN)


def _blocks() -> Tensor:
    return _owners().flatten()


def _sorted() -> Tensor:
    size = TOKENS * CHOSEN
    return torch.tensor([[*p, *(size for _ in range(BLOCK - len(p)))] for p in SORTED], dtype=torch.int32).flatten()


def _chosen(x: Tensor, w: Tensor, weights: Tensor, ids: Tensor, routed: bool) -> Tensor:
    found = torch.einsum("tk,tcnk->tcn", x.float(), w[ids].float())
    return found * weights[..., None] if routed else found


def _scattered(x: Tensor, w: Tensor, tokens: Tensor, blocks: Tensor) -> Tensor:
    size = TOKENS * CHOSEN
    rows = x.index_select(0, tokens.clamp(max=size - 1) // CHOSEN)
    found = torch.einsum("sk,snk->sn", rows, w.index_select(0, blocks.repeat_interleave(BLOCK)))
    return torch.zeros(size + 1, OUTER).index_copy(0, tokens.long(), found)[:-1].view(TOKENS, CHOSEN, OUTER)


def _moe(
    x: Tensor, w: Tensor, weights: Tensor, tokens: Tensor | None, experts: Tensor, count: int, routed: bool,
    *, a: Tensor | None = None, s: Tensor | None = None, bias: Tensor | None = None, inner: int = 16, **kind: Any,
) -> Tensor:  # fmt: skip
    module = vllm("model_executor.layers.fused_moe.fused_moe")
    out = torch.zeros(TOKENS, CHOSEN, w.shape[1])
    config = {"BLOCK_SIZE_M": BLOCK, "BLOCK_SIZE_N": 16, "BLOCK_SIZE_K": inner, "GROUP_SIZE_M": 2}
    modes = ("use_fp8_w8a8", "use_int8_w8a8", "use_int8_w8a16", "use_int4_w4a16", "per_channel_quant")
    kind = dict.fromkeys(modes, False) | kind
    count = TOKENS * CHOSEN * BLOCK if tokens is None else count
    module.invoke_fused_moe_triton_kernel(
        x, w, out, a, s, weights, tokens, experts, torch.tensor([count], dtype=torch.int32), routed, CHOSEN, config,
        module.tl.float32, B_bias=bias, **kind,
    )  # fmt: skip
    return out


def _numbers(w: Tensor, s: Tensor, z: Tensor | None, bits: int) -> Tensor:
    """What weights of few bits stand for: pairs of half a byte, a scale and a zero for each 32 of them."""
    if bits == 4:
        w = torch.stack([w & 15, w >> 4], -1).flatten(2)
        z = None if z is None else torch.stack([z & 15, z >> 4], 2).flatten(1, 2)
    zero = 2.0 ** (bits - 1) if z is None else z.float().repeat_interleave(32, 2)
    return (w.float() - zero) * s.repeat_interleave(32, 2)


def _few(x: Tensor, w: Tensor, s: Tensor, z: Tensor | None, weights: Tensor, bits: int) -> Tensor:
    module = vllm("model_executor.layers.fused_moe.fused_moe")
    out, own = torch.zeros(TOKENS, CHOSEN, 24), _sorted()
    more = z.stride() if z is not None else (0, 0, 0)
    module.fused_moe_kernel_gptq_awq[(6,)](
        x, w, out, s, z, weights, own, torch.arange(3, dtype=torch.int32), torch.tensor([48], dtype=torch.int32), 24,
        64, 48, 10, *x.stride(), w.stride(0), w.stride(2), w.stride(1), out.stride(1), out.stride(2), s.stride(0),
        s.stride(2), s.stride(1), more[0], more[2], more[1], block_k_diviable=True, group_size=32, BLOCK_SIZE_M=16,
        BLOCK_SIZE_N=16, BLOCK_SIZE_K=32, GROUP_SIZE_M=2, SPLIT_K=1, MUL_ROUTED_WEIGHT=True, top_k=CHOSEN,
        compute_type=module.tl.float32, has_zp=z is not None, use_int4_w4a16=bits == 4, use_int8_w8a16=bits == 8,
    )  # fmt: skip
    return out


def _identity(x: Tensor, s: Tensor) -> Tensor:
    out = torch.empty_like(x)
    kernel = vllm("model_executor.layers.fused_moe.fused_moe").compute_identity_kernel
    kernel[(10,)](3, x, s, 5, out, 512, s.stride(0), BLOCK_SIZE=256)
    return out


def _batched(x: Tensor, w: Tensor, counts: Tensor) -> Tensor:
    return torch.where((torch.arange(20) < counts[:, None])[..., None], x @ w.transpose(1, 2), 0.0)


def _batch(x: Tensor, w: Tensor, counts: Tensor) -> Tensor:
    module = vllm("model_executor.layers.fused_moe.experts.fused_batched_moe")
    out = torch.zeros(3, 20, 24)
    config = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 16, "BLOCK_SIZE_K": 16}
    run = module.invoke_moe_batched_triton_kernel
    run(x, w, out, counts, module.tl.float32, None, None, None, False, False, False, config, False)
    return out
