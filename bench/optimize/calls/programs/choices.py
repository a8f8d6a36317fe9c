"""Places as data: gathers, scatters, sorts, embeddings, routing."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from bench.optimize.calls.spec import programs

Tensor = torch.Tensor


def embedding(w: Tensor, i: Tensor) -> Any:
    return F.embedding(i, w), w[i] * 2, F.embedding(i, w, padding_idx=0).sum(-2)


def gathers(x: Tensor, i: Tensor) -> Any:
    return x.gather(-1, i), x.take_along_dim(i, -1).softmax(-1)


def selected(x: Tensor, i: Tensor) -> Any:
    return x.index_select(0, i), x[i].relu(), x[:, -1], x[i, 0]


def scatters(x: Tensor, i: Tensor, y: Tensor) -> Any:
    return x.scatter(-1, i, y), x.scatter_add(-1, i, y), torch.zeros_like(x).scatter_reduce(-1, i, y, "amax")


def added(x: Tensor, i: Tensor, y: Tensor) -> Any:
    return x.index_add(0, i, y), x.index_copy(0, i, y), torch.zeros_like(x).index_put((i,), y, accumulate=True)


def counted(i: Tensor) -> Any:
    return F.one_hot(i, 7).sum(0), torch.bincount(i.flatten(), minlength=7)


def sorts(x: Tensor) -> Any:
    return x.sort(stable=True, dim=-1), x.argsort(dim=0, stable=True), x.sort(-1, descending=True)[0], x.msort()


def largest(x: Tensor) -> Any:
    return x.topk(2, -1)[0], x.kthvalue(1, -1)[0], x.median(-1)[0]


def thresholds(x: Tensor) -> Tensor:
    least = x.topk(2, -1)[0][..., -1:]
    return torch.softmax(x.masked_fill(x < least, float("-inf")), -1)


def routing(x: Tensor, w: Tensor, e: Tensor) -> Tensor:
    weights = torch.softmax(x @ w, -1)
    return torch.einsum("bed,be->bd", torch.einsum("bd,edh->beh", x, e).relu(), weights)


def best_expert(x: Tensor, w: Tensor, e: Tensor) -> Tensor:
    place = (x @ w).argmax(-1)
    return torch.bmm(x[:, None], e[place])[:, 0]


def searched(x: Tensor, y: Tensor) -> Any:
    edges = x.nan_to_num().sort(-1)[0]
    return torch.searchsorted(edges, y), torch.bucketize(y, edges[0].contiguous())


def nonzero(x: Tensor, m: Tensor) -> Any:
    return x[m], m.nonzero(), torch.masked_select(x, m)


def masks(x: Tensor, m: Tensor) -> Any:
    return x.masked_fill(m, 0.0), torch.where(m, x, -x), x.masked_scatter(m, x.flip(-1))


def rotary(x: Tensor, i: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    angle = i[..., None] * torch.arange(half) / 10
    a, b = x[..., :half], x[..., half : 2 * half]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def integer_sorts(a: Tensor) -> Any:
    return a.sort(stable=True, dim=-1), a.argmax(-1), a.unique(), a.topk(1, -1)[0]


PROGRAMS = programs(
    embedding=(embedding, "f v d,i v b s"),
    gathers=(gathers, "f b s,i s b s"),
    selected=(selected, "f v s,i v b"),
    scatters=(scatters, "f b s,i s b s,f b s"),
    added=(added, "f v s,i v b,f b s"),
    counted=(counted, "i 7 b s"),
    sorts=(sorts, "f b s"),
    largest=(largest, "f b s"),
    thresholds=(thresholds, "f b s"),
    routing=(routing, "f b d,f d 4,f 4 d h"),
    best_expert=(best_expert, "f b d,f d 4,f 4 d h"),
    searched=(searched, "f b s,f b s"),
    nonzero=(nonzero, "f b s,m b s"),
    masks=(masks, "f b s,m b s"),
    rotary=(rotary, "f b s d,i 64 b s"),
    integer_sorts=(integer_sorts, "n b s"),
)
