"""More pairs of layers, written by hand: other layouts of weights, other decompositions, with bugs of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from tests.equiv.written_pairs import Pair

Tensor = torch.Tensor
B, S, D, H, K = 2, 6, 12, 3, 4


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape)


def causal() -> Tensor:
    return torch.ones(S, S, dtype=torch.bool).tril()


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT * K**-0.5


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return scores(q, k).masked_fill(~mask, -math.inf).softmax(-1) @ v


# --- queries, keys and values in one weight, head by head


def one_by_one(x: Tensor, w: Tensor, o: Tensor) -> Tensor:
    rows = w.view(H, 3, K, D)
    q, k, v = (F.linear(x, rows[:, i].reshape(D, D)).view(B, S, H, K).transpose(1, 2) for i in range(3))
    return attend(q, k, v, causal()).transpose(1, 2).reshape(B, S, D) @ o.T


def head_by_head(x: Tensor, w: Tensor, o: Tensor, order: tuple[int, int, int] = (0, 1, 2)) -> Tensor:
    parts = (x @ w.T).view(B, S, H, 3 * K).permute(0, 2, 1, 3).split(K, -1)
    q, k, v = (parts[i] for i in order)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).permute(0, 2, 1, 3).flatten(2) @ o.T


def three_by_three(x: Tensor, w: Tensor, o: Tensor) -> Tensor:
    q, k, v = (x @ w.T).view(B, S, 3, H, K).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).permute(0, 2, 1, 3).flatten(2) @ o.T


def by_sums_over_heads(x: Tensor, w: Tensor, o: Tensor, scale: float = K**-0.5) -> Tensor:
    rows = w.view(H, 3, K, D)
    q, k, v = (torch.einsum("bsd,hkd->bshk", x, rows[:, i]) for i in range(3))
    logits = torch.einsum("bqhk,bshk->bhqs", q * scale, k) + torch.where(causal(), 0.0, -1e9)
    grown = torch.exp(logits - logits.amax(-1, keepdim=True))
    return torch.einsum("bhqs,bshk,dhk->bqd", grown / grown.sum(-1, keepdim=True), v, o.view(D, H, K))


# --- weights of convolutions


def linear(x: Tensor, w: Tensor, b: Tensor, v: Tensor, c: Tensor) -> Tensor:
    return F.linear(F.gelu(F.linear(x, w.T, b), approximate="tanh"), v.T, c)


def by_hand(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


def added_matrices(
    x: Tensor, w: Tensor, b: Tensor, v: Tensor, c: Tensor, act: Callable[[Tensor], Tensor] = by_hand
) -> Tensor:
    return torch.addmm(c, act(torch.addmm(b, x.reshape(-1, D), w)), v).view(B, S, D)


def convolved(x: Tensor, w: Tensor, b: Tensor, v: Tensor, c: Tensor) -> Tensor:
    inner = F.gelu(F.conv1d(x.mT, w.T[..., None], b), approximate="tanh")
    return F.conv1d(inner, v.T[..., None], c).mT


# --- norms


def offset(x: Tensor, w: Tensor) -> Tensor:
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-6) * (1 + w)


def added_up(x: Tensor, w: Tensor, eps: float = 1e-6) -> Tensor:
    scaled = x * torch.rsqrt(torch.einsum("bsd,bsd->bs", x, x) / D + eps)[..., None]
    return scaled + scaled * w


def beside(x: Tensor, w: Tensor, u: Tensor, d: Tensor) -> Tensor:
    y = offset(x, w)
    return x + F.silu(y @ u.T) @ d.T + y @ (d @ u).T


def beside_fused(x: Tensor, w: Tensor, u: Tensor, d: Tensor) -> Tensor:
    inner = added_up(x, w) @ u.T
    return x + (inner * torch.sigmoid(inner) + inner) @ d.T


def serial(x: Tensor, w: Tensor, u: Tensor, d: Tensor) -> Tensor:
    inner = offset(x, w) @ u.T
    return offset(x, w) + (F.silu(inner) + inner) @ d.T


def folded(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    scale = w * torch.rsqrt(variance.abs() + 1e-5)
    return x * scale[:, None] + (b - mean * scale)[:, None]


def batch_norm(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    return F.batch_norm(x, mean, variance.abs(), w, b, False, eps=1e-5)


def folded_outside(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    scale = w / (torch.sqrt(variance.abs()) + 1e-5)
    return x * scale[:, None] + (b - mean * scale)[:, None]


def grouped(x: Tensor, w: Tensor, b: Tensor, count: int = 3) -> Tensor:
    y = F.layer_norm(x.view(B, count, D // count * S), (D // count * S,), eps=1e-5)
    return y.view(B, D, S) * w[:, None] + b[:, None]


# --- masks of whole numbers


def by_complement(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    place = torch.arange(S)
    seen = (place[:, None] >= place[None]).to(torch.int32)
    return attend(q, k, v, ~(-seen) == 0)


def by_complement_of_more(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    place = torch.arange(S)
    seen = (place[:, None] >= place[None] - 1).to(torch.int32)
    return attend(q, k, v, ~(-seen) == 0)


# --- a cache that is written step by step


def last_two(x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    heads = ((x @ w.T).view(B, S, H, K).transpose(1, 2) for w in (q, k, v))
    return attend(*heads, causal()).transpose(1, 2).flatten(2)[:, -2:]


def step_by_step(x: Tensor, q: Tensor, k: Tensor, v: Tensor, seen: int = 0) -> Tensor:
    keys, values, found = zeros(B, S, H, K), zeros(B, S, H, K), list[Tensor]()
    keys[:, : S - 2] = (x[:, : S - 2] @ k.T).view(B, S - 2, H, K)
    values[:, : S - 2] = (x[:, : S - 2] @ v.T).view(B, S - 2, H, K)
    for t in (S - 2, S - 1):
        keys[:, t], values[:, t] = ((x[:, t] @ w.T).view(B, H, K) for w in (k, v))
        logits = torch.einsum("bhk,bshk->bhs", (x[:, t] @ q.T).view(B, H, K), keys) * K**-0.5
        logits = torch.where(torch.arange(S) <= t + seen, logits, -math.inf)
        found.append(torch.einsum("bhs,bshk->bhk", logits.softmax(-1), values).flatten(1))
    return torch.stack(found, 1)


# --- rotations


def angles() -> tuple[Tensor, Tensor]:
    table = torch.arange(S).float()[:, None] * 10000.0 ** (-torch.arange(0, K, 2).float() / K)
    return table.cos(), table.sin()


def halves(x: Tensor) -> Tensor:
    (cos, sin), (one, other) = angles(), x.chunk(2, -1)
    return torch.cat([one * cos - other * sin, one * sin + other * cos], -1)


def by_matrix(x: Tensor, sign: int = 1) -> Tensor:
    cos, sin = angles()
    turn = torch.stack([torch.stack([cos, -sign * sin]), torch.stack([sign * sin, cos])])
    return torch.einsum("ijsk,bhsjk->bhsik", turn, x.reshape(B, H, S, 2, K // 2)).flatten(-2)


def by_pairs(x: Tensor, *, back: bool = True) -> Tensor:
    (cos, sin), p = angles(), torch.stack(x.chunk(2, -1), -1)
    turned = torch.stack([p[..., 0] * cos - p[..., 1] * sin, p[..., 1] * cos + p[..., 0] * sin], -1)
    return (turned.mT if back else turned).flatten(-2)


# --- sums in another order


def masked_product(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT * causal()) @ v


def running(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.einsum("bhsk,bhskd->bhsd", q, torch.cumsum(k[..., None] * v[..., None, :], 2))


def pooled(x: Tensor, mask: Tensor) -> Tensor:
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def shared(x: Tensor, mask: Tensor) -> Tensor:
    return torch.einsum("bs,bsd->bd", mask / mask.sum(1, keepdim=True), x)


def looked_up(tokens: Tensor, w: Tensor) -> Tensor:
    return F.embedding(tokens, w) @ w.T


def multiplied(tokens: Tensor, w: Tensor, more: int = 0) -> Tensor:
    return torch.einsum("bsd,vd->bsv", F.one_hot((tokens + more) % 9 if more else tokens, 9).float() @ w, w)


ATTENTION = (zeros(B, S, D), zeros(3 * D, D), zeros(D, D))
QKV = (zeros(B, H, S, K),) * 3
MLP = (zeros(B, S, D), zeros(D, 20), zeros(20), zeros(20, D), zeros(D))
NORM, BLOCK = (zeros(B, S, D), zeros(D)), (zeros(B, S, D), zeros(D), zeros(16, D), zeros(D, 16))
CHANNELS = (zeros(B, D, S), zeros(D), zeros(D))
PROJECTED = (zeros(B, S, D), zeros(D, D), zeros(D, D), zeros(D, D))
TOKENS = (torch.zeros(B, S, dtype=torch.long), zeros(9, D))
MEANS = (zeros(B, S, D), zeros(B, S))


def pairs(arguments: tuple[Tensor, ...], left: Callable[..., Tensor], **rights: Any) -> dict[str, Pair]:
    """One layer beside several others, by name."""
    return {name: Pair(left, right, arguments) for name, right in rights.items()}


SAME: dict[str, Pair] = {
    **pairs(ATTENTION, one_by_one, head_by_head=head_by_head, by_sums_over_heads=by_sums_over_heads),
    **pairs(MLP, linear, added_matrices=added_matrices, convolved_by_one=convolved),
    **pairs(NORM, offset, added_up=added_up),
    **pairs(BLOCK, beside, beside_fused=beside_fused),
    **pairs((*CHANNELS, zeros(D), zeros(D)), batch_norm, folded=folded),
    **pairs(CHANNELS, lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5), grouped=grouped),
    **pairs(QKV, lambda q, k, v: attend(q, k, v, causal()), by_complement=by_complement),
    **pairs(PROJECTED, last_two, step_by_step=step_by_step),
    **pairs(QKV[:1], halves, by_matrix=by_matrix, by_pairs=by_pairs),
    **pairs(QKV, masked_product, running=running),
    **pairs(MEANS, pooled, shared=shared),
    **pairs(TOKENS, looked_up, multiplied=multiplied),
}
OTHER: dict[str, Pair] = {
    **pairs(
        ATTENTION,
        one_by_one,
        values_for_keys=lambda x, w, o: head_by_head(x, w, o, (0, 2, 1)),
        three_by_three=three_by_three,
        scaled_by_width=lambda x, w, o: by_sums_over_heads(x, w, o, D**-0.5),
    ),
    **pairs(
        MLP,
        linear,
        exact=lambda *a: added_matrices(*a, act=F.gelu),
        no_first_bias=lambda x, w, b, v, c: added_matrices(x, w, 0 * b, v, c),
    ),
    **pairs(
        NORM,
        offset,
        other_eps=lambda x, w: added_up(x, w, 1e-5),
        no_offset=lambda x, w: added_up(x, w - 1),
    ),
    **pairs(BLOCK, beside, residual_of_the_norm=serial),
    **pairs((*CHANNELS, zeros(D), zeros(D)), batch_norm, eps_outside=folded_outside),
    **pairs(
        CHANNELS,
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5),
        four_groups=lambda x, w, b: grouped(x, w, b, 4),
    ),
    **pairs(QKV, lambda q, k, v: attend(q, k, v, causal()), by_complement_of_more=by_complement_of_more),
    **pairs(
        PROJECTED,
        last_two,
        one_too_many=lambda *a: step_by_step(*a, seen=1),
        one_too_few=lambda *a: step_by_step(*a, seen=-1),
    ),
    **pairs(QKV[:1], halves, other_way=lambda x: by_matrix(x, -1), left_in_pairs=lambda x: by_pairs(x, back=False)),
    **pairs(QKV, masked_product, without_itself=lambda q, k, v: (q @ k.mT * causal().tril(-1)) @ v),
    **pairs(MEANS, pooled, over_all=lambda x, mask: (x * mask[..., None]).mean(1)),
    **pairs(TOKENS, looked_up, next_token=lambda tokens, w: multiplied(tokens, w, 1)),
}
