"""What is written: arguments, caches, counters; and what a call depends on beside its arguments."""

from __future__ import annotations

from typing import Any

import torch

from bench.optimize.calls.spec import programs

Tensor = torch.Tensor
TABLE = torch.linspace(-1, 1, 32)


def doubled(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    return torch.softmax(x + y, -1)


def swapped(x: Tensor, y: Tensor) -> Any:
    a = x.clone()
    x.copy_(y)
    y.copy_(a)
    return x - y


def rows_written(cache: Tensor, i: Tensor, x: Tensor) -> Tensor:
    cache[i] = x
    return torch.softmax(cache, -1)


def part_written(x: Tensor, y: Tensor) -> Tensor:
    x[:, ::2] = y[:, ::2] * 2
    x[0].add_(1)
    return x.sum(-1)


def filled(x: Tensor, m: Tensor) -> Tensor:
    x.masked_fill_(m, 0)
    return x.exp()


def accumulated(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
    x.index_add_(0, i, y)
    return x.relu()


def optimizer(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> None:
    m.lerp_(g, 0.1)
    v.mul_(0.99).addcmul_(g, g, value=0.01)
    p.addcdiv_(m, v.sqrt() + 1e-8, value=-0.01)


def written_view(x: Tensor) -> Any:
    y = x.exp()
    z = y[0]
    z.zero_()
    return y, z


def out_argument(x: Tensor, y: Tensor) -> Tensor:
    return torch.exp(x, out=y)


def looked_up(x: Tensor) -> Tensor:
    return x[..., None] * TABLE.to(x.dtype)


def random_numbers(x: Tensor) -> Any:
    return x + torch.rand_like(x), torch.nn.functional.dropout(x, 0.5)


def aware_of_gradients(x: Tensor) -> Tensor:
    return x.exp() if torch.is_grad_enabled() else x.sin()


def counting(x: Tensor) -> Any:
    x += 1
    x -= x.mean(-1, keepdim=True)
    return x


def same_twice(x: Tensor, y: Tensor) -> Any:
    return (x * 2 if x is y else x + y), x.data_ptr() == y.data_ptr()


PROGRAMS = programs(
    doubled=(doubled, "f b s,f b s"),
    swapped=(swapped, "f b s,f b s"),
    rows_written=(rows_written, "f v s,i v b,f b s"),
    part_written=(part_written, "f b s,f b s"),
    filled=(filled, "f b s,m b s"),
    accumulated=(accumulated, "f v s,i v b,f b s"),
    optimizer=(optimizer, "f b s,f b s,f b s,p b s"),
    written_view=(written_view, "f b s"),
    out_argument=(out_argument, "f b s,f b s"),
    looked_up=(looked_up, "f b s"),
    random_numbers=(random_numbers, "f b s"),
    aware_of_gradients=(aware_of_gradients, "f b s"),
    counting=(counting, "f b s"),
    same_twice=(same_twice, "f b s,f b s"),
)
