"""Perceptrons, of one expert or of several: products of tokens that are grouped by their expert, and gradients.

Kernels of a mixture are launched by themselves, with the experts' parts of the tokens fixed. The sizes of a mixture as
a whole depend on how many tokens choose an expert.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from bench.kernel.liger import ops
from bench.kernel.rows import Row, Tensor, normal

TOKENS, CHOICES, EXPERTS, WIDTH, INNER = 12, 3, 4, 40, 24
PLACES = TOKENS * CHOICES
STARTS, TILE = (0, 20, 20, 33, PLACES), 16
TILES = [(first, e) for e in range(EXPERTS) for first in range(STARTS[e], STARTS[e + 1], TILE)]
OWNERS = [e for e in range(EXPERTS) for _ in range(STARTS[e], STARTS[e + 1])]
BLOCKS = {"BLOCK_N": 16, "BLOCK_K": 16}


def rows() -> Iterator[Row]:
    """The functions, in order."""
    yield from _routes()
    yield from _products()
    yield from _whole()


def _int(*numbers: int) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def _metadata() -> tuple[Tensor, Tensor, Tensor]:
    return _int(*STARTS), _int(*(first for first, _ in TILES)), _int(*(e for _, e in TILES))


def _routes() -> Iterator[Row]:
    kernels = ops("fused_moe_kernels")
    choices = torch.randint(0, EXPERTS, (10, CHOICES), generator=torch.Generator().manual_seed(0), dtype=torch.int32)

    def histogram(choices: Tensor) -> Tensor:
        found = torch.empty(EXPERTS, 3, dtype=torch.int32)
        kernels._moe_router_histogram_kernel[(3,)](
            choices, found, 10, E=EXPERTS, n_tiles=3, TOKENS_PER_TILE=4, K_POW2=4, K=CHOICES, E_POW2=4
        )
        return found

    yield Row("_moe_router_histogram_kernel", _histogram, histogram, (choices,))

    def sums(counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        total, parts = counts.sum(1, dtype=torch.int32), counts.clone()
        starts, tiles = torch.empty(EXPERTS + 1, dtype=torch.int32), torch.empty(EXPERTS + 1, dtype=torch.int32)
        kernels._moe_router_prefix_sum_kernel[(EXPERTS + 2,)](
            total, starts, tiles, E=EXPERTS, partial_sum_ptr=parts, n_tiles=3, TK=30, BLOCK_M=2, BLOCK_N=4,
            BLOCK_M_TOKEN=4,
        )  # fmt: skip
        return starts[:-1], starts[-1:], tiles, parts

    yield Row("_moe_router_prefix_sum_kernel", _sums, sums, (_histogram(choices),))
    routing = ops("fused_moe").compute_routing_metadata
    yield Row("compute_routing_metadata", _routed, lambda c: routing(c, EXPERTS, 4)[:5], (choices,))


def _histogram(choices: Tensor) -> Tensor:
    """How many tokens of each tile of four choose an expert."""
    chosen = F.pad(F.one_hot(choices.long(), EXPERTS).sum(1), (0, 0, 0, 2))
    return chosen.unflatten(0, (3, 4)).sum(1).T.int().contiguous()


def _before(x: Tensor) -> Tensor:
    return x.cumsum(-1) - x


def _sums(counts: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    total = counts.sum(1)
    tiles = (total + 3) // 4
    ends = torch.cat([_before(tiles), tiles.sum()[None]])
    return _before(total).int(), torch.full((1,), 30, dtype=torch.int32), ends.int(), _before(counts).int()


def _routed(choices: Tensor) -> tuple[Tensor, ...]:
    """Tokens of each expert, where those begin, and the order of all choices by their expert."""
    flat = choices.flatten().long()
    total = F.one_hot(flat, EXPERTS).sum(0)
    order = torch.sort(flat, stable=True).indices
    place = torch.zeros_like(flat).scatter(0, order, torch.arange(flat.shape[0]))
    starts = F.pad(total.cumsum(0), (1, 0))
    return total.int(), starts.int(), (order // CHOICES).int(), order.int(), place.int()


def _of(x: Tensor) -> Tensor:
    """What belongs to the expert of each place."""
    return x[torch.tensor(OWNERS)]


def _products() -> Iterator[Row]:
    kernels = ops("fused_moe_kernels")
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(PLACES, generator=generator).int()
    x, up, down = normal(TOKENS, WIDTH), normal(EXPERTS, 2 * INNER, WIDTH), normal(EXPERTS, WIDTH, INNER)
    acts, z = normal(PLACES, INNER), normal(PLACES, 2 * INNER)

    def rise(x: Tensor, w: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        pre, post = torch.empty(PLACES, 2 * INNER), torch.empty(PLACES, INNER)
        kernels._fused_up_proj_swiglu_kernel.fn[(len(TILES), 2)](
            x, w, order // CHOICES, *_metadata(), pre, post, WIDTH, INNER, *x.stride(), *w.stride(), *pre.stride(),
            *post.stride(), BLOCK_M=TILE, **BLOCKS,
        )  # fmt: skip
        return pre, post

    yield Row("_fused_up_proj_swiglu_kernel", _risen, rise, (x, up, order))

    def fall(acts: Tensor, w: Tensor) -> Tensor:
        y = torch.empty(PLACES, WIDTH)
        kernels._fused_down_proj_kernel.fn[(len(TILES), 3)](
            acts, w, *_metadata(), y, WIDTH, INNER, *acts.stride(), *w.stride(), *y.stride(), BLOCK_M=TILE, **BLOCKS
        )
        return y

    yield Row("_fused_down_proj_kernel", lambda a, w: (_of(w) @ a[..., None])[..., 0], fall, (acts, down))

    def gathered(y: Tensor, order: Tensor, weights: Tensor | None) -> Tensor:
        out = torch.empty(TOKENS, WIDTH)
        kernels._token_gather_weighted_sum_kernel.fn[(TOKENS,)](
            y, y if weights is None else weights, order, out, WIDTH, CHOICES, *y.stride(), *out.stride(), BLOCK_H=16,
            BLOCK_K=2, w_is_None=weights is None,
        )  # fmt: skip
        return out

    yield Row(
        "_token_gather_weighted_sum_kernel",
        lambda y, o, w: (y[o.long()] * w[:, None]).unflatten(0, (TOKENS, CHOICES)).sum(1),
        gathered,
        (normal(PLACES, WIDTH), order, normal(PLACES)),
    )
    yield Row(
        "_token_gather_weighted_sum_kernel (no weights)",
        lambda y, o: y[o.long()].unflatten(0, (TOKENS, CHOICES)).sum(1),
        lambda y, o: gathered(y, o, None),
        (normal(PLACES, WIDTH), order),
    )

    def back(g: Tensor, w: Tensor, z: Tensor, s: Tensor, order: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        dz, acts, ds = torch.empty(PLACES, 2 * INNER), torch.empty(PLACES, INNER), torch.zeros(PLACES)
        kernels._moe_bwd_down_proj_kernel.fn[(len(TILES), 2)](
            g, order // CHOICES, order, s, w, z, *_metadata(), dz, acts, ds, WIDTH, INNER, *g.stride(), *w.stride(),
            *z.stride(), *dz.stride(), *acts.stride(), BLOCK_M=TILE, **BLOCKS,
        )  # fmt: skip
        return dz, acts, ds

    yield Row("_moe_bwd_down_proj_kernel", _fallen_gradient, back, (x, down, z, normal(PLACES), order))

    def weighed(name: str, a: Tensor, b: Tensor, order: Tensor, out: Tensor) -> Tensor:
        sides = (INNER, WIDTH) if name == "dW2" else (WIDTH, 2 * INNER)
        getattr(kernels, f"_moe_bwd_{name}_kernel").fn[(EXPERTS * -(-sides[0] // 16), -(-sides[1] // 16))](
            a, b, order // CHOICES, _int(*STARTS), out, WIDTH, INNER, *a.stride(), *b.stride(), *out.stride(),
            BLOCK_M=16, **BLOCKS,
        )  # fmt: skip
        return out

    yield Row(
        "_moe_bwd_dW2_kernel",
        lambda a, g, o: _summed(g[(o // CHOICES).long()], a),
        lambda a, g, o: weighed("dW2", a, g, o, torch.zeros(EXPERTS, WIDTH, INNER)),
        (acts, x, order),
    )
    yield Row(
        "_moe_bwd_dW1_kernel",
        lambda x, dz, o: _summed(dz, x[(o // CHOICES).long()]),
        lambda x, dz, o: weighed("dW1", x, dz, o, torch.zeros(EXPERTS, 2 * INNER, WIDTH)),
        (x, z, order),
    )

    def spread(dz: Tensor, w: Tensor) -> Tensor:
        dx = torch.empty(PLACES, WIDTH)
        kernels._moe_bwd_dX_expanded_kernel.fn[(len(TILES), 3)](
            dz, w, *_metadata(), dx, WIDTH, INNER, *dz.stride(), *w.stride(), *dx.stride(), BLOCK_M=TILE, **BLOCKS
        )
        return dx

    yield Row("_moe_bwd_dX_expanded_kernel", lambda dz, w: (dz[:, None] @ _of(w))[:, 0], spread, (z, up))


def _risen(x: Tensor, w: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    z = (_of(w) @ x[(order // CHOICES).long()][..., None])[..., 0]
    gate, up = z.chunk(2, -1)
    return z, F.silu(gate) * up


def _fallen_gradient(g: Tensor, w: Tensor, z: Tensor, s: Tensor, order: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the inner activations and of the weights of choices, and the weighed activations."""
    outer, weight = g[(order // CHOICES).long()], s[order.long()][:, None]
    leaf = z.detach().requires_grad_()
    gate, up = leaf.chunk(2, -1)
    acts = F.silu(gate) * up
    inner = (outer[:, None] @ _of(w))[:, 0]
    dz = torch.autograd.grad(acts, leaf, inner * weight)[0]
    ds = torch.zeros(PLACES).index_add(0, order.long(), (inner * acts.detach()).sum(-1))
    return dz, weight * acts.detach(), ds


def _summed(a: Tensor, b: Tensor) -> Tensor:
    """For each expert the sum of its places' outer products."""
    each = [a[STARTS[e] : STARTS[e + 1]].T @ b[STARTS[e] : STARTS[e + 1]] for e in range(EXPERTS)]
    return torch.stack(each)


def _whole() -> Iterator[Row]:
    choices = torch.randint(0, EXPERTS, (10, 2), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    x, up, down = normal(10, WIDTH), normal(EXPERTS, 2 * INNER, WIDTH), normal(EXPERTS, WIDTH, INNER)
    apply = ops("fused_moe").LigerFusedMoEFunction.apply
    yield Row("LigerFusedMoEFunction", _mixed, lambda *a: apply(*a), (x, up, down, choices, normal(10, 2)))
    mlp = ops("mlp")
    tokens, gate = normal(2, 10, WIDTH), normal(INNER, WIDTH)
    yield Row(
        "gemm_swiglu (inference)",
        lambda x, g, u: F.silu(F.linear(x, g) * 0.7) * F.linear(x, u),
        lambda x, g, u: mlp.gemm_swiglu(x, g, u, 0.7, False)[0],
        (tokens, gate, gate + 1),
    )
    yield Row(
        "gemm_swiglu (training)",
        _perceptron,
        lambda x, g, u: mlp.gemm_swiglu(x, g, u, 0.7)[0],
        (tokens, gate, gate + 1),
    )
    config: Any = type("Config", (), {"num_warps": 4, "num_stages": 2})
    config.kwargs = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_SIZE_M": 1}

    def inner(g: Tensor, w: Tensor, agu: Tensor) -> Tensor:
        agu = agu.clone()
        mlp.swiglu_backward_dGU(g, w, agu, config, 1.0, 1.0)
        return agu

    yield Row("swiglu_backward_dGU", _inner_gradient, inner, (tokens, normal(WIDTH, INNER), normal(2, 10, 3 * INNER)))
    yield Row(
        "swiglu_backward_dI",
        lambda g, u, agu: agu[..., INNER : 2 * INNER] @ g + agu[..., 2 * INNER :] @ u,
        mlp.swiglu_backward_dI,
        (gate, gate + 1, normal(2, 10, 3 * INNER)),
    )


def _mixed(x: Tensor, up: Tensor, down: Tensor, choices: Tensor, weights: Tensor) -> Tensor:
    gate, rest = torch.einsum("th,enh->ten", x, up).chunk(2, -1)
    every = torch.einsum("tei,ehi->teh", F.silu(gate) * rest, down)
    share = (F.one_hot(choices.long(), EXPERTS) * weights[..., None]).sum(1)
    return (every * share[..., None]).sum(1)


def _perceptron(x: Tensor, g: Tensor, u: Tensor) -> Tensor:
    gate, up = F.linear(x, g) * 0.7, F.linear(x, u)
    return torch.cat([F.silu(gate) * up, gate, up], -1)


def _inner_gradient(g: Tensor, w: Tensor, agu: Tensor) -> Tensor:
    acts, gate, up = agu.chunk(3, -1)
    leaves = [x.detach().requires_grad_() for x in (gate, up)]
    found = torch.autograd.grad(F.silu(leaves[0]) * leaves[1], leaves, g @ w)
    return torch.cat([acts, *found], -1)
