"""Random inputs for modules: every dtype, ordinary values in one draw and edge values in another."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np

from rewright.env.hlo.shapes import Shape
from rewright.env.module import HloModule
from rewright.ir.errors import RewrightError

Array = np.ndarray[Any, Any]
Draw = Literal["ordinary", "edge"]
DRAWS: tuple[Draw, ...] = ("ordinary", "edge")
_DTYPES = {
    "pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128",
}  # fmt: skip
_MOST_ELEMENTS = 1 << 27
_BLOCK = 1 << 20
_EDGE_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.5, 20.0, -20.0, 1e-3)
_EDGE_INTEGERS = (0, 1, -1, 2, 7, 8, 31, 32, 33, 63, 64)


def dtype_of(shape: Shape) -> np.dtype[Any]:
    """The numpy dtype of an array; raises RewrightError where there is none."""
    if shape.element == "bf16":
        types: Any = import_module("ml_dtypes")
        return np.dtype(types.bfloat16)
    if shape.element not in _DTYPES:
        raise RewrightError(f"inputs of {shape} cannot be drawn; give the module inputs of numbers")
    return np.dtype(_DTYPES[shape.element])


def draw_inputs(module: HloModule, seed: int = 0, draw: Draw = "ordinary") -> list[Array]:
    """Inputs for a module, flat.

    Ordinary floats are N(0, 1) and integers from 0 to 7; edge draws mix in zeros of both signs, large and small
    numbers, shifts past the width, negative and extreme integers. Raises RewrightError for what cannot be drawn.
    """
    shapes = module.parameter_shapes()
    if sum(shape.elements for shape in shapes) > _MOST_ELEMENTS:
        raise RewrightError(f"the inputs of {module.name:.60} have more than {_MOST_ELEMENTS:,} elements")
    random = np.random.default_rng(seed)
    return [_drawn(random, dtype_of(shape), shape.sizes, draw) for shape in shapes]


def _drawn(random: np.random.Generator, dtype: np.dtype[Any], sizes: Sequence[int], draw: Draw) -> Array:
    """An array, drawn in blocks: what is drawn has eight bytes or more an element, and the array may be large."""
    found = np.empty(int(np.prod(sizes, dtype=np.int64)), dtype)
    for start in range(0, len(found), _BLOCK):
        part = found[start : start + _BLOCK]
        part[:] = _block(random, dtype, len(part), draw)
    return found.reshape(tuple(sizes))


def _block(random: np.random.Generator, dtype: np.dtype[Any], count: int, draw: Draw) -> Array:
    kind = dtype.kind
    if kind == "b":
        return random.integers(0, 2, count).astype(bool)
    if kind in "iu":
        found = random.integers(0, 8, count)
        if draw == "edge":
            limits = np.iinfo(dtype)
            special = [e for e in _EDGE_INTEGERS if limits.min <= e <= limits.max]
            # What wraps around wraps near the limits; twice a half of them does, too.
            special += [limits.max, limits.min, limits.max - 1, limits.max // 2 + 1]
            edges = np.array(special, dtype=dtype)[random.integers(0, len(special), count)]
            return np.where(random.random(count) < 0.5, edges, found.astype(dtype)).astype(dtype)
        return found.astype(dtype)
    found = random.standard_normal(count)
    if draw == "edge":
        edges = np.array(_EDGE_FLOATS)[random.integers(0, len(_EDGE_FLOATS), count)]
        found = np.where(random.random(count) < 0.5, edges, found)
    if kind == "c":
        return (found + 1j * random.standard_normal(count)).astype(dtype)
    return np.asarray(found).astype(dtype)
