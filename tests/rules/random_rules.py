"""Random pairs of programs with symbolic sizes: a program, and the same one after an edit."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.rules import Rule, Tensor, constant, floats, integer, natural, rule, scalar, size
from rewright.rules.pattern import (
    absolute,
    concat,
    dot,
    dynamic_slice,
    dynamic_update,
    exp,
    iota,
    maximum,
    minimum,
    negate,
    select,
    sigmoid,
)

SIZES: tuple[Dim, ...] = (size("m"), size("n"), size("k"), 1, 2, 3)
NATURALS: tuple[Dim, ...] = (natural("s"), natural("t"), 0, 1)
INTEGERS: tuple[Dim, ...] = (integer("l"), integer("h"), 0, 1, -1)
STARTS = (scalar("i", DType.I64), scalar("j", DType.I64))


class Programs:
    """A source of random programs; the same seed gives the same programs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pair(self, name: str) -> Rule:
        """A rule whose sides are a random program and an edit of it, or two rearrangements of one."""
        while True:
            try:
                left = self.program(self.random.randint(2, 5))
                right = self.edited(left)
                if self.random.random() < 0.3:
                    right = self.edited(right)
                return rule(name, "random", left, right)
            except (RewrightError, IndexError, TypeError):
                continue

    def leaf(self) -> Tensor:
        choice = self.random
        rows, columns = choice.choice(SIZES), choice.choice(SIZES)
        if choice.random() < 0.15:
            return constant(choice.choice((0.0, 1.0, 2.0, -1.0)), (rows, columns))
        return floats(f"{choice.choice('AB')}_{rows}_{columns}", rows, columns)

    def program(self, depth: int) -> Tensor:
        if depth == 0:
            return self.leaf()
        for _ in range(50):
            try:
                return self.random.choice(STEPS)(self, self.program(depth - 1))
            except (RewrightError, IndexError, TypeError):
                continue
        return self.leaf()

    def like(self, x: Tensor) -> Tensor:
        """Another program of the same shape."""
        other = floats(f"C_{x.shape[0]}_{x.shape[1]}", *x.shape)
        return self.random.choice((other, other, exp(other), x, constant(0.0, x.shape)))

    def edited(self, x: Tensor) -> Tensor:
        """The program with one node changed, somewhere."""
        nodes = _nodes(x)
        for _ in range(100):
            target = self.random.choice(nodes)
            try:
                changed = self.random.choice(EDITS)(self, target)
            except (RewrightError, IndexError, TypeError):
                continue
            if changed is not None:
                return _replaced(x, target, changed)
        return x


def _nodes(x: Tensor) -> list[Tensor]:
    found = [x]
    for operand in x.operands:
        found += _nodes(operand)
    return found


def _replaced(x: Tensor, target: Tensor, changed: Tensor) -> Tensor:
    if x is target:
        return changed
    operands = [_replaced(operand, target, changed) for operand in x.operands]
    return x if all(a is b for a, b in zip(operands, x.operands, strict=True)) else Tensor(x.op, *operands)


def _slice(p: Programs, x: Tensor) -> Tensor:
    start = tuple(p.random.choice(NATURALS) for _ in range(2))
    length = tuple(p.random.choice((*SIZES, *x.shape)) for _ in range(2))
    return x.slice(start, tuple(a + b for a, b in zip(start, length, strict=True)))


def _prefix(p: Programs, x: Tensor) -> Tensor:
    axis, start = p.random.randint(0, 1), p.random.choice(NATURALS)
    low = tuple(start if a == axis else 0 for a in range(2))
    return x.slice(low, x.shape)


def _pad(p: Programs, x: Tensor) -> Tensor:
    sides = [tuple(p.random.choice(INTEGERS) for _ in range(2)) for _ in range(2)]
    interior = (p.random.choice((0, 0, 1)), 0)
    return x.pad(p.random.choice((0.0, 1.0, scalar("c"))), sides[0], sides[1], interior)


def _concat(p: Programs, x: Tensor) -> Tensor:
    axis = p.random.randint(0, 1)
    shape = tuple(p.random.choice(SIZES) if a == axis else n for a, n in enumerate(x.shape))
    other = floats(f"D_{shape[0]}_{shape[1]}", *shape)
    return concat(axis, *p.random.choice(((x, other), (other, x), (x, x))))


def _dot(p: Programs, x: Tensor) -> Tensor:
    columns = p.random.choice(SIZES)
    return dot(x, floats(f"W_{x.shape[1]}_{columns}", x.shape[1], columns))


def _sum(p: Programs, x: Tensor) -> Tensor:
    axis = p.random.randint(0, 1)
    kind = p.random.choice(("sum", "sum", "maximum", "product"))
    return x.reduce(kind, axis).broadcast((x.shape[1 - axis], p.random.choice(SIZES)), (0,))


def _normalised(p: Programs, x: Tensor) -> Tensor:
    grown = exp(x)
    return grown / grown.sum(1).broadcast(x.shape, (0,))


def _reshape(p: Programs, x: Tensor) -> Tensor:
    return x.reshape(x.shape[1], x.shape[0]) if p.random.random() < 0.5 else x.reshape(x.shape[0] * x.shape[1], 1)


def _masked(p: Programs, x: Tensor) -> Tensor:
    mask = iota(x.shape, 0) >= iota(x.shape, 1) + p.random.choice((0, 1))
    return select(mask, x, p.random.choice((0.0, 1.0)))


def _block(p: Programs, x: Tensor) -> Tensor:
    return dynamic_slice(x, STARTS, tuple(p.random.choice((1, n)) for n in x.shape))


def _update(p: Programs, x: Tensor) -> Tensor:
    return dynamic_update(x, floats("U", 1, 1), STARTS)


STEPS: tuple[Callable[[Programs, Tensor], Tensor], ...] = (
    lambda p, x: x + p.like(x),
    lambda p, x: x - p.like(x),
    lambda p, x: x * p.like(x),
    lambda p, x: maximum(x, p.like(x)),
    lambda p, x: minimum(x, p.like(x)),
    lambda p, x: -x,
    lambda p, x: exp(x),
    lambda p, x: sigmoid(x),
    lambda p, x: absolute(x),
    lambda p, x: x.transpose(),
    lambda p, x: x.reverse(p.random.randint(0, 1)),
    lambda p, x: x * scalar("c"),
    _slice,
    _prefix,
    _pad,
    _concat,
    _dot,
    _sum,
    _normalised,
    _reshape,
    _masked,
    _block,
    _update,
)


def _other_attribute(p: Programs, x: Tensor) -> Tensor | None:
    """One number of the operator changed by one, or one axis changed."""
    fields = [f for f in dataclasses.fields(x.op) if isinstance(getattr(x.op, f.name), tuple)]  # type: ignore[arg-type]
    if not fields:
        return None
    field = p.random.choice(fields)
    values = list(getattr(x.op, field.name))
    if not values:
        return None
    place = p.random.randrange(len(values))
    if isinstance(values[place], (str, bool, tuple)):
        return None
    values[place] = values[place] + p.random.choice((1, -1))
    return Tensor(dataclasses.replace(x.op, **{field.name: tuple(values)}), *x.operands)  # type: ignore[type-var]


def _swapped(p: Programs, x: Tensor) -> Tensor | None:
    if len(x.operands) < 2:
        return None
    a, b = p.random.sample(range(len(x.operands)), 2)
    operands = list(x.operands)
    operands[a], operands[b] = operands[b], operands[a]
    return Tensor(x.op, *operands)


def _dropped(p: Programs, x: Tensor) -> Tensor | None:
    same = [operand for operand in x.operands if operand.type == x.type]
    return p.random.choice(same) if same else None


def _other_operator(p: Programs, x: Tensor) -> Tensor | None:
    for family in FAMILIES:
        if type(x.op) in family:
            return Tensor(p.random.choice(family)(), *x.operands)
    if isinstance(x.op, ops.Reduce):
        return Tensor(ops.Reduce(p.random.choice(("sum", "maximum", "minimum")), x.op.dimensions), *x.operands)
    return None


def _wrapped(p: Programs, x: Tensor) -> Tensor | None:
    """Something that changes nothing, or nearly nothing."""
    return p.random.choice(WRAPPERS)(p, x)


FAMILIES: tuple[tuple[Any, ...], ...] = (
    (ops.Add, ops.Subtract, ops.Multiply, ops.Maximum, ops.Minimum),
    (ops.Negate, ops.Exponential, ops.Logistic, ops.Abs),
)
WRAPPERS: tuple[Callable[[Programs, Tensor], Tensor], ...] = (
    lambda p, x: x.transpose().transpose(),
    lambda p, x: x.reverse(0).reverse(p.random.randint(0, 1)),
    lambda p, x: x + constant(0.0, x.shape),
    lambda p, x: x * constant(p.random.choice((1.0, 2.0)), x.shape),
    lambda p, x: concat(0, x, floats("E", 2, x.shape[1])).slice((0, 0), x.shape),
    lambda p, x: (
        x.pad(0.0, (1, 0), (0, 0))
        .slice((p.random.randint(0, 1), 0), (x.shape[0] + 1, x.shape[1]))
        .slice((0, 0), x.shape)
    ),
    lambda p, x: x.reshape(x.shape[0] * x.shape[1]).reshape(*p.random.choice((x.shape, x.shape[::-1]))),
    lambda p, x: negate(negate(x)),
    lambda p, x: (x + x) * constant(0.5, x.shape),
)
EDITS: tuple[Callable[[Programs, Tensor], Tensor | None], ...] = (
    _other_attribute,
    _swapped,
    _dropped,
    _other_operator,
    _wrapped,
    _wrapped,
)
