"""Element by element, floats and integers."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from bench.optimize.calls.spec import programs

Tensor = torch.Tensor


def gelu_of_sum(x: Tensor, y: Tensor) -> Tensor:
    return F.gelu(x + y, approximate="tanh") * y


def rational(x: Tensor, y: Tensor) -> Any:
    return x / (1 + x.abs()), y.reciprocal(), torch.atan2(x, y)


def exponentials(x: Tensor) -> Any:
    return x.exp(), x.expm1(), x.sigmoid(), F.softplus(x), x.tanh(), torch.erf(x)


def logarithms(x: Tensor) -> Any:
    return x.log(), x.log1p(), x.log2(), torch.special.entr(x), x.rsqrt(), x.sqrt()


def waves(x: Tensor) -> Any:
    return x.sin(), x.cos() * x, torch.sinc(x)


def powers(x: Tensor, y: Tensor) -> Any:
    return x**2, x**3, x**0.5, x.pow(y), 2**x


def clamps(x: Tensor, low: float) -> Any:
    return x.clamp(min=low), x.clamp(-1, 1), F.relu6(x), F.hardswish(x), F.leaky_relu(x, 0.1), x.nan_to_num()


def comparisons(x: Tensor, y: Tensor) -> Any:
    return x < y, x == y, torch.isnan(x), torch.isinf(y), x.sign(), torch.where(x > y, x, y), torch.maximum(x, y)


def rounding(x: Tensor) -> Any:
    return x.floor(), x.round(), x.trunc(), x.frac(), x.ceil(), torch.round(x, decimals=1)


def remainders(x: Tensor, y: Tensor) -> Any:
    return torch.remainder(x, y), torch.fmod(x, y), torch.div(x, y, rounding_mode="floor")


def integers(a: Tensor, b: Tensor) -> Any:
    return a + b, a * b - 3, a & b, a ^ 5, ~a, a.abs(), -b, torch.maximum(a, b), a == b


def quotients(a: Tensor, b: Tensor) -> Any:
    return a // b, a % b, torch.div(a, b, rounding_mode="trunc"), a / b


def shifts(a: Tensor) -> Any:
    return a << 1, a >> 2, a.bitwise_not(), (a & 15).to(torch.uint8)


def promoted(a: Tensor, x: Tensor, m: Tensor) -> Any:
    return a + x, m + x, a * 0.5, m * a, a + m, torch.where(m, x, a), a.float() + 1


def casts(x: Tensor) -> Any:
    return x.nan_to_num().clamp(-100, 100).to(torch.int32), x.bool(), x.to(torch.bfloat16), x.half().float(), x.double()


def with_number(x: Tensor, scale: float, shift: int, negate: bool) -> Tensor:
    y = x * scale + shift
    return -y if negate else y


def branches(x: Tensor, scale: float) -> Tensor:
    if scale > 1:
        return torch.softmax(x * scale, -1)
    return x.tanh() if scale else x.clone()


def logic(m: Tensor, x: Tensor) -> Any:
    k = x > 0
    return m & k, m | k, ~m, m ^ k, m.any(-1), m.all(), m.sum(-1), torch.logical_xor(m, x)


def lerped(x: Tensor, y: Tensor) -> Any:
    return torch.lerp(x, y, 0.3), torch.addcmul(x, y, y, value=0.5), torch.hypot(x, y), torch.logaddexp(x, y)


PROGRAMS = programs(
    gelu_of_sum=(gelu_of_sum, "f b s,f b s"),
    rational=(rational, "f b s,f b s"),
    exponentials=(exponentials, "f b s"),
    logarithms=(logarithms, "p b s"),
    waves=(waves, "f b s"),
    powers=(powers, "p b s,f b s"),
    clamps=(clamps, "f b s,number"),
    comparisons=(comparisons, "f b s,f b s"),
    rounding=(rounding, "f b s"),
    remainders=(remainders, "f b s,p b s"),
    integers=(integers, "n b s,n b s"),
    quotients=(quotients, "n b s,n b s"),
    shifts=(shifts, "n b s"),
    promoted=(promoted, "n b s,f b s,m b s"),
    casts=(casts, "f b s"),
    with_number=(with_number, "f b s,number,count,flag"),
    branches=(branches, "f b s,number"),
    logic=(logic, "m b s,f b s"),
    lerped=(lerped, "f b s,f b s"),
)
