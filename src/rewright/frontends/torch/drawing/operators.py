"""What draws random numbers, by ``rand``, ``randn``, ``randint`` and ``randperm``, which nothing else defines.

Every definition has the distribution that PyTorch documents. Two programs are compared number by number, so it matters
that all draw by one definition, and not that PyTorch's kernels turn the bits of a generator into other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p, pi
from typing import Any

import torch

from rewright.frontends.torch.definitions.table import Definitions, overload

DEFINED = Definitions()
"""Operators that draw, as functions of what ``rand``, ``randn`` and ``randint`` draw."""


@dataclass(frozen=True)
class Drawn:
    """A call of an operator that draws: what it draws, from which generator, and for which device."""

    kind: str
    generator: Any
    device: Any


def _told(*names: str) -> dict[Any, str]:
    return {found: name for name in names if (found := overload(name)) is not None}


_KINDS = {
    **dict.fromkeys(_told("rand.default", "rand.generator"), "uniform"),
    **dict.fromkeys(_told("randn.default", "randn.generator"), "normal"),
    **dict.fromkeys(_told("randperm.default", "randperm.generator"), "permutation"),
    **dict.fromkeys(_told("randint.default", "randint.generator"), "integers"),
    **dict.fromkeys(_told("randint.low", "randint.low_generator"), "integers from"),
}


def drawn(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Drawn | None:
    """What an operator draws; None for one that is defined by others, or that draws nothing."""
    kind = _KINDS.get(func)
    if kind is None:
        return None
    if kind == "integers":
        kind = f"integers 0 {int(args[0])}"
    elif kind == "integers from":
        kind = f"integers {int(args[0])} {int(args[1])}"
    return Drawn(kind, kwargs.get("generator"), kwargs.get("device"))


def _uniform(x: torch.Tensor, generator: Any, shape: Sequence[int] | None = None) -> torch.Tensor:
    """Numbers from nought to one, one for each element; see ``_wide`` for their dtype."""
    sizes = list(x.shape if shape is None else shape)
    return torch.rand(sizes, generator=generator, dtype=_wide(x), device=x.device)


def _normal(x: torch.Tensor, generator: Any) -> torch.Tensor:
    return torch.randn(list(x.shape), generator=generator, dtype=_wide(x), device=x.device)


def _wide(x: torch.Tensor) -> torch.dtype:
    """Single precision for what has less, and for integers: a definition computes with what it draws."""
    return torch.float64 if x.dtype is torch.float64 else torch.float32


def _held(x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """What a tensor is overwritten with."""
    return x.copy_(value)


# --- dropout


@DEFINED.define("native_dropout.default")
def native_dropout(x: torch.Tensor, p: float, train: bool | None) -> Any:
    """Elements that are kept, and which they are: one in ``1 / p`` is not, and the rest makes up for it."""
    if train is False or p == 0:
        return NotImplemented
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    kept = _uniform(x, None) < 1 - p
    return x * kept * (1 / (1 - p)), kept


@DEFINED.define("bernoulli.default")
def bernoulli(x: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    """One with the probability that the tensor says, element by element, else zero."""
    return (_uniform(x, generator) < x).to(x.dtype)


@DEFINED.define("bernoulli.p")
def bernoulli_p(x: torch.Tensor, p: float, *, generator: Any = None) -> torch.Tensor:
    """One with this probability, else zero."""
    return (_uniform(x, generator) < p).to(x.dtype)


@DEFINED.define("bernoulli_.float", "bernoulli_.Tensor")
def bernoulli_in_place(x: torch.Tensor, p: Any = 0.5, *, generator: Any = None) -> torch.Tensor:
    """``bernoulli`` in place."""
    return _held(x, (_uniform(x, generator) < p).to(x.dtype))


@DEFINED.define("rrelu_with_noise.default")
def rrelu_with_noise(
    x: torch.Tensor,
    noise: torch.Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Any:
    """A rectifier with a random slope below nought, which it leaves in ``noise``."""
    if not training:
        return NotImplemented
    slopes = torch.where(x <= 0, lower + (upper - lower) * _uniform(x, generator), 1.0).to(x.dtype)
    _held(noise, slopes)
    return x * slopes


# --- numbers of a distribution


@DEFINED.define("rand_like.default", "rand_like.generator")
def rand_like(x: torch.Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """Uniform numbers from nought to one."""
    options: Any = {"generator": generator, "dtype": dtype or x.dtype, "device": device or x.device}
    return torch.rand(list(x.shape), **options)


@DEFINED.define("randn_like.default", "randn_like.generator")
def randn_like(x: torch.Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """Standard normal numbers."""
    options: Any = {"generator": generator, "dtype": dtype or x.dtype, "device": device or x.device}
    return torch.randn(list(x.shape), **options)


@DEFINED.define("randint_like.default", "randint_like.generator")
def randint_like(x: torch.Tensor, high: int, **options: Any) -> torch.Tensor:
    """Integers from nought, below ``high``."""
    return _integers_like(x, 0, high, **options)


@DEFINED.define("randint_like.low_dtype", "randint_like.low_generator_dtype")
def randint_like_from(x: torch.Tensor, low: int, high: int, **options: Any) -> torch.Tensor:
    """Integers from ``low``, below ``high``."""
    return _integers_like(x, low, high, **options)


def _integers_like(
    x: torch.Tensor, low: int, high: int, *, generator: Any = None, dtype: Any = None, device: Any = None, **_: Any
) -> torch.Tensor:
    found = torch.randint(low, high, list(x.shape), generator=generator, device=device or x.device)
    return found.to(dtype or x.dtype)


@DEFINED.define("random_.default")
def random(x: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    """Integers from nought up to the largest that the dtype has, or that it has each of, in place."""
    if x.is_floating_point():
        high = int(2 / torch.finfo(x.dtype).eps)
    else:
        high = 2 if x.dtype is torch.bool else torch.iinfo(x.dtype).max
    return _held(x, torch.randint(0, high, list(x.shape), generator=generator, device=x.device))


@DEFINED.define("random_.to")
def random_to(x: torch.Tensor, to: int, *, generator: Any = None) -> torch.Tensor:
    """Integers from nought, below ``to``, in place."""
    return _held(x, torch.randint(0, to, list(x.shape), generator=generator, device=x.device))


@DEFINED.define("random_.from")
def random_from(x: torch.Tensor, *limits: int, generator: Any = None, **given: int) -> Any:
    """Integers between two numbers, in place."""
    named: list[Any] = [given.get(name) for name in ("from", "to")[len(limits) :]]
    low, high = (*limits, *named)
    if high is None:
        return NotImplemented
    return _held(x, torch.randint(low, high, list(x.shape), generator=generator, device=x.device))


@DEFINED.define("uniform_.default")
def uniform(x: torch.Tensor, *limits: float, generator: Any = None, to: float = 1.0, **given: float) -> torch.Tensor:
    """Uniform numbers between two, in place."""
    low, high = (*limits, *(given.get("from", 0.0), to)[len(limits) :])
    return _held(x, _uniform(x, generator) * (high - low) + low)


@DEFINED.define("normal_.default")
def normal(x: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    """Normal numbers, in place."""
    return _held(x, _normal(x, generator) * std + mean)


@DEFINED.define("normal.Tensor_float", "normal.Tensor_Tensor")
def normal_around(mean: torch.Tensor, std: Any = 1.0, *, generator: Any = None) -> torch.Tensor:
    """Normal numbers around a tensor's."""
    shaped = mean + std * torch.zeros_like(mean) if isinstance(std, torch.Tensor) else mean
    return _normal(shaped, generator).to(mean.dtype) * std + mean


@DEFINED.define("normal.float_Tensor")
def normal_of_width(mean: float, std: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    """Normal numbers around one, as far from it as a tensor says."""
    return _normal(std, generator).to(std.dtype) * std + mean


@DEFINED.define("normal.float_float")
def normal_of_size(
    mean: float,
    std: float,
    size: Sequence[int],
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    **_: Any,
) -> torch.Tensor:
    """Normal numbers of a shape."""
    return torch.randn(list(size), generator=generator, dtype=dtype, device=device) * std + mean


@DEFINED.define("exponential_.default")
def exponential(x: torch.Tensor, lambd: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    """Waiting times, in place."""
    return _held(x, -torch.log1p(-_uniform(x, generator)) / lambd)


@DEFINED.define("cauchy_.default")
def cauchy(x: torch.Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    """Numbers with wide tails, in place."""
    return _held(x, median + sigma * torch.tan(pi * (_uniform(x, generator) - 0.5)))


@DEFINED.define("geometric_.default")
def geometric(x: torch.Tensor, p: float, *, generator: Any = None) -> torch.Tensor:
    """How many trials it takes until one succeeds, in place."""
    if not 0 < p < 1:
        return NotImplemented
    return _held(x, torch.ceil(torch.log1p(-_uniform(x, generator)) / log1p(-p)).clamp(min=1))


@DEFINED.define("log_normal_.default")
def log_normal(x: torch.Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> torch.Tensor:
    """Exponentials of normal numbers, in place."""
    return _held(x, torch.exp(_normal(x, generator) * std + mean))


@DEFINED.define("multinomial.default")
def multinomial(p: torch.Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """Places by weight: the largest of the weights, each over a waiting time of its own (Gumbel's trick).

    With replacement, those whose stretch of the summed weights a uniform number falls into.
    """
    if replacement and num_samples != 1:
        ends = p.cumsum(-1) / p.sum(-1, keepdim=True)
        chosen = _uniform(p, generator, (*p.shape[:-1], num_samples))
        return (chosen.unsqueeze(-1) >= ends.unsqueeze(-2)).sum(-1)
    raced = p / -torch.log1p(-_uniform(p, generator))
    return raced.argmax(-1, keepdim=True) if num_samples == 1 else raced.topk(num_samples, -1)[1]
