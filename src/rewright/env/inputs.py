"""Random inputs for modules: ordinary values in one draw, and in others those at which programs part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rewright.env.module import HloModule
from rewright.frontends.hlo.shapes import dtype_of, limits_of
from rewright.ir.errors import RewrightError

Array = np.ndarray[Any, Any]
Draw = Literal["ordinary", "edge", "large", "special"]
DRAWS: tuple[Draw, ...] = ("ordinary", "edge", "large", "special")
_MOST_ELEMENTS = 1 << 27
_BLOCK = 1 << 20
_EDGE_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.5, 20.0, -20.0, 1e-3, 88.8, -88.8, 1e4, -1e4)
"""Zeros of both signs, ties, and the ends of what exponentials of 32 and of 16 bits hold."""
_STEPS = (0.0, 0.0, 1.0, -1.0, 1e-3)
"""By how many roundings values at one place of several inputs differ; the last is a share of the value."""
_EDGE_INTEGERS = (0, 1, -1, 2, 7, 8, 31, 32, 33, 63, 64, 255, 256, 257, 65535, 65537, (1 << 24) + 1)
"""Shifts past the width, and places beyond those that floats of 8, 16 and 24 bits hold."""
_MOST_TURNS, _TELLING, _NEXT_SEED = 8, 256, 1000
"""How often a draw is made at most, and how many elements are enough."""
_APART = 8
"""One element in this many is large, or no number."""


def draw_inputs(module: HloModule, seed: int = 0, draw: Draw = "ordinary") -> list[Array]:
    """Inputs for a module, flat.

    ``ordinary`` floats are N(0, 1) and integers from 0 to 7. ``edge`` draws mix in zeros of both signs, ties, numbers
    a rounding apart at one place of several inputs, numbers about which exponentials overflow, and integers of all
    bits, those near the limits and large places among them. ``large`` and ``special`` draws are ordinary but for single
    elements, at other places of each input: 1e30, its negative and a subnormal number; and infinities and what is no
    number. Raises RewrightError for what cannot be drawn.
    """
    shapes = module.parameter_shapes()
    if sum(shape.elements for shape in shapes) > _MOST_ELEMENTS:
        raise RewrightError(f"the inputs of {module.name:.60} have more than {_MOST_ELEMENTS:,} elements")
    random = np.random.default_rng(seed)
    drawn = _Drawn(random, draw, len(shapes), seed)
    return [drawn.array(dtype_of(shape), shape.sizes, place) for place, shape in enumerate(shapes)]


def seeds_of(module: HloModule, seed: int) -> list[int]:
    """Seeds for the draws of a module: more where it has few elements, since then one draw shows little."""
    elements = sum(shape.elements for shape in module.parameter_shapes())
    return [seed + _NEXT_SEED * turn for turn in range(max(1, min(_MOST_TURNS, _TELLING // max(elements, 1))))]


def nearby(inputs: Sequence[Array], dtypes: Sequence[np.dtype[Any]], seed: int) -> list[Array]:
    """Inputs of other dtypes in which every float is up to a rounding of its own dtype away from what it was."""
    random = np.random.default_rng((seed, 1))
    found: list[Array] = []
    for own, dtype in zip(inputs, dtypes, strict=True):
        if own.dtype.kind in "biu":
            found.append(own.astype(dtype))
            continue
        step: Array = np.asarray(random.uniform(-1, 1, own.size)).reshape(own.shape)
        with np.errstate(all="ignore"):
            wide: Array = own.astype(np.complex128 if own.dtype.kind == "c" else np.float64)
            moved: Array = wide * (1 + limits_of(own.dtype)[0] * step)
            found.append(moved.astype(dtype))
    return found


@dataclass(frozen=True)
class _Drawn:
    """One draw for ``count`` inputs."""

    random: np.random.Generator
    draw: Draw
    count: int
    seed: int

    def array(self, dtype: np.dtype[Any], sizes: Sequence[int], place: int) -> Array:
        """An array, drawn in blocks: what is drawn has eight bytes or more an element, and the array may be large."""
        found = np.empty(int(np.prod(sizes, dtype=np.int64)), dtype)
        for start in range(0, len(found), _BLOCK):
            part = found[start : start + _BLOCK]
            part[:] = self._block(dtype, len(part))
        if dtype.kind not in "biu" and self.draw in ("large", "special"):
            self._set_apart(found, place)
        return found.reshape(tuple(sizes))

    def _block(self, dtype: np.dtype[Any], count: int) -> Array:
        if dtype.kind == "b":
            return self.random.integers(0, 2, count).astype(bool)
        if dtype.kind in "iu":
            return self._integers(dtype, count)
        found = self.random.standard_normal(count)
        if self.draw == "edge":
            found = self._edges(dtype, found)
        if dtype.kind == "c":
            return (found + 1j * self.random.standard_normal(count)).astype(dtype)
        return np.asarray(found).astype(dtype)

    def _integers(self, dtype: np.dtype[Any], count: int) -> Array:
        found = self.random.integers(0, 8, count).astype(dtype)
        if self.draw != "edge":
            return found
        limits = np.iinfo(dtype)
        special = [e for e in _EDGE_INTEGERS if limits.min <= e <= limits.max]
        # What wraps around wraps near the limits; twice a half of them does, too.
        special += [limits.max, limits.min, limits.max - 1, limits.max // 2 + 1]
        edges = np.array(special, dtype=dtype)[self.random.integers(0, len(special), count)]
        anything = self.random.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        which = self.random.random(count)
        return np.where(which < 0.4, edges, np.where(which < 0.6, anything, found)).astype(dtype)

    def _edges(self, dtype: np.dtype[Any], ordinary: Array) -> Array:
        """Single values, and in some places those that all inputs have there, but for a rounding."""
        count = len(ordinary)
        edges = np.array(_EDGE_FLOATS)[self.random.integers(0, len(_EDGE_FLOATS), count)]
        common = np.random.default_rng((self.seed, 2))
        is_shared, shared = common.random(count) < 0.3, common.uniform(0.5, 8, count)
        shared = shared.astype(dtype if dtype.kind != "c" else np.float32).astype(np.float64)
        step, _, largest = limits_of(dtype)
        steps = np.array([s * step if abs(s) == 1 else s for s in _STEPS])
        shared = shared * (1 + steps[self.random.integers(0, len(steps), count)])
        found = np.where(is_shared, shared, np.where(self.random.random(count) < 0.5, edges, ordinary))
        return np.clip(found, -largest, largest)

    def _set_apart(self, found: Array, place: int) -> None:
        """Large or special values in some places, of which each input has its own as far as there are enough."""
        _, least, largest = limits_of(found.dtype)
        huge = min(1e30, largest / 16)
        values = (huge, -huge, least / 8) if self.draw == "large" else (np.nan, np.inf, -np.inf)
        stride = max(_APART, self.count)
        places = np.arange((place * _APART // max(self.count, 1) + place + self.seed) % stride, len(found), stride)
        if not len(places) and len(found) and (place + self.seed) % self.count == 0:
            places = np.array([self.seed % len(found)])
        found[places] = np.array(values)[(np.arange(len(places)) + place + self.seed) % len(values)].astype(found.dtype)
