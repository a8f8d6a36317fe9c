"""What a call is given: sizes, dtypes, values, memory layouts, tensors that share memory, modes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from bench.optimize.calls.spec import Program, Sizes, Spec

SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64)
RARE_SIZES = (0, 1, 100, 129)
FLOATS = (torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
VALUES = ("normal", "normal", "ties", "small", "large", "edges", "equal", "rows")
LAYOUTS = ("contiguous", "contiguous", "transposed", "offset", "stepped", "expanded", "overlapping", "negative")
SHARES = ("", "", "", "same", "view", "shifted")
MODES = ("no_grad", "no_grad", "no_grad", "inference", "grad", "requires_grad", "autocast", "parameter")
NUMBERS = (0.5, 1.0, 2.0, 0.0, -0.0, -3.0, 1e30, math.inf, -math.inf, math.nan, 1, True)
COUNTS = (0, 1, 2, -1, 7, 2**31 - 1, -(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Kind:
    """All of a call but its values."""

    sizes: Sizes
    floats: torch.dtype = torch.float32
    integers: torch.dtype = torch.int64
    layouts: tuple[str, ...] = ()
    share: str = ""
    mode: str = "no_grad"
    numbers: tuple[Any, ...] = ()

    def __str__(self) -> str:
        """In one line, for a report."""
        sizes = ",".join(f"{name}={size}" for name, size in self.sizes.items())
        kinds = f"{self.floats}/{self.integers}".replace("torch.", "")
        return " ".join(
            p for p in (sizes, kinds, "/".join(self.layouts), self.share, self.mode, str(self.numbers)) if p
        )


@dataclass(frozen=True)
class Call:
    """A call that can be made again: the same seed gives the same tensors."""

    kind: Kind
    values: str
    seed: int

    def __str__(self) -> str:
        """In one line, for a report."""
        return f"{self.kind} {self.values} seed {self.seed}"


def draw_kind(program: Program, chance: random.Random, plain: bool) -> Kind:
    """Sizes, dtypes, layouts, numbers; ``plain`` ones are what kernels are usually made for."""
    rare = not plain and chance.random() < 0.3
    sizes = {name: chance.choice(RARE_SIZES if rare and chance.random() < 0.5 else SIZES) for name in program.symbols}
    tensors = [spec for spec in program.specs if spec.is_tensor]
    usual = plain and chance.random() < 0.7
    return Kind(
        sizes,
        FLOATS[0] if usual else chance.choice(FLOATS),
        INTEGERS[0] if usual else chance.choice(INTEGERS),
        tuple("contiguous" if usual else chance.choice(LAYOUTS) for _ in tensors),
        "" if plain else chance.choice(SHARES),
        "no_grad" if plain else chance.choice(MODES),
        _numbers(program, chance, plain),
    )


def _numbers(program: Program, chance: random.Random, plain: bool) -> tuple[Any, ...]:
    def number(kind: str) -> Any:
        if kind == "number":
            return chance.choice(NUMBERS[:3] if plain else NUMBERS)
        return chance.choice(COUNTS) if kind == "count" else chance.random() < 0.5

    return tuple(number(spec.kind) for spec in program.specs if not spec.is_tensor)


def draw_call(program: Program, kind: Kind, chance: random.Random) -> Call:
    """A call: half of them are as ``kind`` but for values, the others differ in one thing or in many."""
    values, seed = chance.choice(VALUES), chance.randrange(2**31)
    how = chance.random()
    if how < 0.5:
        return Call(kind, values, seed)
    other = draw_kind(program, chance, plain=False)
    if how < 0.85:
        field = chance.choice(("sizes", "floats", "integers", "layouts", "share", "mode", "numbers"))
        return Call(replace(kind, **{field: getattr(other, field)}), values, seed)
    return Call(other, values, seed)


@torch.autocast("cpu", enabled=False)
def arguments(program: Program, call: Call) -> tuple[Any, ...]:
    """The arguments, made anew, whatever mode the call is made in."""
    generator = torch.Generator().manual_seed(call.seed)
    kind = call.kind
    numbers, layouts = iter(kind.numbers), iter(kind.layouts)
    found: list[Any] = []
    for spec in program.specs:
        if spec.is_tensor:
            found.append(_laid_out(_values(spec, call, generator), next(layouts)))
        else:
            found.append(next(numbers))
    _share(found, kind.share)
    return tuple(_marked(value, kind.mode) for value in found)


def _values(spec: Spec, call: Call, generator: torch.Generator) -> torch.Tensor:
    shape = spec.shape(call.kind.sizes)
    if spec.kind == "m":
        odds = {"equal": 1.0, "rows": 0.9, "small": 0.02}.get(call.values, 0.5)
        return torch.rand(shape, generator=generator) < odds
    if spec.kind == "i":
        return _indices(shape, spec.limit(call.kind.sizes), call.values, generator)
    if spec.kind == "n":
        return _integers(shape, call, generator)
    found = _floats(shape, call, generator)
    return found.abs() + 0.01 if spec.kind == "p" and call.values != "edges" else found


def _indices(shape: Sequence[int], limit: int, values: str, generator: torch.Generator) -> torch.Tensor:
    found = torch.randint(0, max(limit, 1), tuple(shape), generator=generator)
    if values == "edges" and found.numel():  # now and then out of range, above or below
        wild = torch.tensor([-1, limit - 1, limit, -limit, 0])
        found.view(-1)[0] = wild[int(torch.randint(0, 5, (), generator=generator))]
    return found.zero_() if values == "equal" else found


def _integers(shape: Sequence[int], call: Call, generator: torch.Generator) -> torch.Tensor:
    kind = call.kind.integers
    info = torch.iinfo(kind)
    low, high = max(info.min, -9), 9
    found = torch.randint(low, high, tuple(shape), generator=generator).to(kind)
    if call.values in ("edges", "large"):
        wild = torch.tensor([info.min, info.max, 0, 1, info.max - 1, -1 if info.min else 1], dtype=kind)
        return wild[torch.randint(0, len(wild), tuple(shape), generator=generator)]
    if call.values == "equal":
        return torch.full_like(found, 3)
    return found.where(found != 0, 1) if call.values == "normal" else found  # such calls divide


def _floats(shape: Sequence[int], call: Call, generator: torch.Generator) -> torch.Tensor:
    dtype, info = call.kind.floats, torch.finfo(call.kind.floats)
    x = torch.randn(tuple(shape), generator=generator)
    root = info.max**0.25  # products of two and sums of many do not overflow: where a sum does is a matter of its order
    other = -root / 3  # and no two cancel: what is left beside them, nought or not, is a matter of the order too
    make: Mapping[str, Callable[[], torch.Tensor]] = {
        "ties": lambda: x.mul(2).round() / 2,
        "small": lambda: x * 1e-3,
        "large": lambda: x * 30,
        "equal": lambda: torch.full_like(x, 0.75),
        "edges": lambda: _some(x, (math.nan, math.inf, -math.inf, 0.0, -0.0, root, info.tiny / 4, other), generator),
        "rows": lambda: _whole_rows(x, (-math.inf, math.nan, 0.0, math.inf), generator),
    }
    return make.get(call.values, lambda: x)().to(dtype)


def _some(x: torch.Tensor, wild: Sequence[float], generator: torch.Generator) -> torch.Tensor:
    chosen = torch.tensor(wild)[torch.randint(0, len(wild), x.shape, generator=generator)]
    return torch.where(torch.rand(x.shape, generator=generator) < 0.15, chosen, x)


def _whole_rows(x: torch.Tensor, wild: Sequence[float], generator: torch.Generator) -> torch.Tensor:
    if x.dim() < 2:
        return x
    chosen = torch.tensor(wild)[torch.randint(0, len(wild), x.shape[:-1], generator=generator)][..., None]
    return torch.where(torch.rand(x.shape[:-1], generator=generator)[..., None] < 0.3, chosen, x)


def _laid_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values in another place of memory; ``expanded`` and ``overlapping`` ones repeat some of them."""
    if layout == "transposed":
        return x.mT.contiguous().mT if x.dim() > 1 else x
    if layout == "offset":
        room = x.new_empty(x.numel() + 3)
        return room[3:].copy_(x.reshape(-1)).view(x.shape)
    if not x.dim() or not x.numel():
        return x
    if layout == "stepped":
        room = x.new_zeros((*x.shape[:-1], 2 * x.shape[-1]))
        room[..., ::2] = x
        return room[..., ::2]
    if layout == "expanded":
        return x[:1].expand(x.shape)
    if layout == "overlapping" and x.dim() > 1 and x.shape[-2] + x.shape[-1] - 1 <= x.shape[-2] * x.shape[-1]:
        return x.contiguous().as_strided(x.shape, (*x.contiguous().stride()[:-2], 1, 1))
    if layout == "negative" and x.dtype.is_floating_point:
        return torch._neg_view(-x)
    return x


def _share(found: list[Any], share: str) -> None:
    """Let the second tensor of some type and size be the first, a view of it, or memory that overlaps it."""
    tensors = [k for k, value in enumerate(found) if isinstance(value, torch.Tensor)]
    for a, b in zip(tensors, tensors[1:], strict=False):
        x, y = found[a], found[b]
        if not share or x.shape != y.shape or x.dtype != y.dtype or not x.is_contiguous() or not x.numel():
            continue
        if share == "same":
            found[b] = x
        elif share == "view":
            found[b] = x.view(x.shape)
        else:
            room = torch.cat((x.reshape(-1), x.reshape(-1)[:1]))
            found[a], found[b] = room[:-1].view(x.shape), room[1:].view(x.shape)


def _marked(value: Any, mode: str) -> Any:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    if mode == "requires_grad" and not value.is_neg():
        return value.requires_grad_()
    return torch.nn.Parameter(value, requires_grad=False) if mode == "parameter" else value


__all__ = ["Call", "Kind", "arguments", "draw_call", "draw_kind"]
