"""Values for the random numbers of programs: those that such draws give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewright.ir.unknowns import kind_of_draw
from rewright.ops.base import Array

_EDGE = 2.0**-20


def random_numbers(
    what: str, shape: tuple[int, ...], generator: np.random.Generator, constants: Sequence[float], *, edges: bool
) -> Array | None:
    """Values of a draw, which says what it is (``random:uniform at ...``); None where any finite ones will do.

    With ``edges`` those about as large as constants of the programs are among them, and the ends of the range.
    """
    kind, *limits = kind_of_draw(what)
    if kind == "permutation" and len(shape) == 1:
        return generator.permutation(shape[0])
    if kind == "integers":
        low, high = map(int, limits)
        found = generator.integers(low, high, shape)
        ends = generator.choice((low, high - 1), shape)
        return np.where(generator.random(shape) < 0.5, found, ends) if edges else found
    if kind != "uniform":
        return None
    found = generator.random(shape)
    if not edges:
        return found
    near = [value + step for value in constants if 0 < value < 1 for step in (-_EDGE, _EDGE)]
    return np.where(generator.random(shape) < 0.5, found, generator.choice([0.0, 1 - _EDGE, *near], shape))
