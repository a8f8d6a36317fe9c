"""What is the same at several sizes but for numbers, as one thing with symbols.

It is looked at with two sizes for every symbol, primes near those of an example that are no other size of the program,
so that nothing is equal or divides by accident. Where there are 131 and 137 is the symbol, and where there are 130 and
136 is the symbol less one. That is a guess, to be proved or checked by whoever uses it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, cast

from rewright.ir.dims import Dim, SizeExpr, divide, symbol
from rewright.ir.errors import RewrightError
from rewright.optimize.scalars.expressions import number_of

MOST_SYMBOLS = 3
"""For n symbols there are two to the power of n tuples of sizes."""
LEAST = 127
"""No smaller size stands for a symbol: what is best for many steps costs little with few, and not the reverse."""
MOST = 2**31
"""No larger number stands for a size: it is one that the program is given, and few are prime."""
Samples = Sequence[tuple[str, int, int]]
"""Symbols, each with two sizes."""
Number = Callable[[Sequence[Dim]], Dim]
"""What one number is for those at each tuple of sizes."""


class NotAlike(RewrightError):
    """More than numbers differs."""


def choose_samples(hints: Mapping[str, int], taken: Collection[int]) -> Samples:
    """Two primes for every symbol, of about the size that it has in an example, and none of those that are taken.

    Which of two symbols is larger is the same at all tuples of sizes, as in the example.

    Raises NotAlike where there are no symbols, or too many, or one stands for no size of a tensor.
    """
    if not hints or len(hints) > MOST_SYMBOLS:
        raise NotAlike(f"kernels take one to {MOST_SYMBOLS} sizes, and here are {len(hints)}")
    if any(hint > MOST for hint in hints.values()):
        raise NotAlike(f"{max(hints.values())} is a number that the program is given, and no size")
    found, last = list[tuple[str, int, int]](), LEAST - 1
    for name, hint in sorted(hints.items(), key=lambda item: item[1]):
        low = _next(max(hint - 1, last), taken)
        last = _next(low, taken)
        found.append((name, low, last))
    return found


def _next(size: int, taken: Collection[int]) -> int:
    """The next prime that is not taken."""
    size += 1
    while size in taken or any(size % n == 0 for n in range(2, int(size**0.5) + 1)):
        size += 1
    return size


def tuples_of(samples: Samples) -> Iterator[dict[str, int]]:
    """All tuples of sizes, in the order that :func:`interpolate` has them."""
    for corner in itertools.product(*((low, high) for _, low, high in samples)):
        yield {name: size for (name, _, _), size in zip(samples, corner, strict=True)}


def interpolate(samples: Samples, values: Sequence[Dim]) -> Dim:
    """The polynomial, of degree one in every symbol, that has these values at all tuples of sizes, in order.

    Raises NotAlike where its coefficients are no integers.
    """
    if not samples:
        return number_of(values[0])
    name, low, high = samples[0]
    half = len(values) // 2
    first, second = (interpolate(samples[1:], part) for part in (values[:half], values[half:]))
    slope = divide(second - first, high - low)
    if slope is None:
        raise NotAlike(f"{first} at {name} = {low} and {second} at {name} = {high} are no polynomial")
    return first + slope * (symbol(name) - low)


def merge(values: Sequence[Any], number: Number, special: Callable[[Sequence[Any]], Any] | None = None) -> Any:
    """One of several records, tuples and numbers; ``special`` says what other parts are, or NotImplemented.

    Raises NotAlike where more than numbers differs.
    """
    first = values[0]
    if all(isinstance(v, (int, SizeExpr)) and not isinstance(v, bool) for v in values):
        return number(values)
    if any(type(v) is not type(first) for v in values):
        raise NotAlike(f"at one size there is {first!r}, and at another one something of another type")
    found = NotImplemented if special is None else special(values)
    if found is not NotImplemented:
        return found
    if isinstance(first, tuple):
        if any(len(v) != len(cast("tuple[Any, ...]", first)) for v in values):
            raise NotAlike("at other sizes there are more parts, or fewer")
        return tuple(merge(each, number, special) for each in zip(*values, strict=True))
    if is_dataclass(first) and not isinstance(first, type):
        names = [field.name for field in fields(first)]
        return type(first)(**{n: merge([getattr(v, n) for v in values], number, special) for n in names})
    if any(repr(v) != repr(first) for v in values):
        raise NotAlike(f"at one size there is {first!r}, and at another one {values[-1]!r}")
    return first


__all__ = ["NotAlike", "Samples", "choose_samples", "interpolate", "merge", "tuples_of"]
