"""Cases of conformance with JAX, and the values that they are tried on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float64", "float32", "bfloat16")
INF, NAN = float("inf"), float("nan")
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, NAN, INF, -INF, 0.75, -3.25, 10.0, -7.0)
"""Special values, ties of rounding, and numbers that every float dtype holds."""
_NUMBERS = (0.5, -0.75, 1.25, 0.0, 2.0, -1.5, 0.25, 3.0, -2.0, 1.0, -0.25, 0.125)
_UNIT = (0.5, -0.75, 0.25, 0.0, -0.5, 0.875, -0.125, 0.625)
_POSITIVE = (0.5, 0.75, 1.25, 2.0, 1.5, 0.25, 3.0, 1.0)


@dataclass(frozen=True)
class Case:
    """A function of arrays with its attributes fixed, and arrays."""

    name: str
    label: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        kinds = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.arguments)
        return f"{self.name}({kinds}{', ' if self.label else ''}{self.label})"


def case(name: str, function: Callable[..., Any], *arguments: Any, label: str = "") -> Case:
    """A case whose inputs are called ``xs.0``, ``xs.1``, and so on."""

    def program(*xs: Any) -> Any:
        return function(*xs)

    return Case(name, label, program, tuple(np.asarray(x) for x in arguments))


def dtype(name: str) -> np.dtype[Any]:
    """numpy's dtype, or that of ``ml_dtypes``."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def edges(name: str) -> Any:
    """The values of a dtype at which functions change what they do."""
    if name == "bool":
        return np.array([True, False, True, True, False, False])
    if name in INTEGERS:
        info = np.iinfo(name)
        own = (0, 1, 2, 3, 5, 7, 100, info.max, info.max - 1, info.max // 2 + 1, info.max // 3)
        return np.array(own + ((-1, -2, -3, -7, info.min, info.min + 1) if info.min else (info.max - 2,)), name)
    return np.array(_SPECIAL).astype(dtype(name))


def pairs(name: str) -> tuple[Any, Any]:
    """Every edge with every edge."""
    own = edges(name)
    left, right = np.meshgrid(own, own, indexing="ij")
    return left.reshape(-1), right.reshape(-1)


def numbers(shape: Sequence[int], name: str = "float64", seed: int = 0, special: bool = False) -> Any:
    """Numbers that every dtype holds, with ties among them; ``special`` puts in NaN, infinities, and limits."""
    size = int(np.prod(shape, dtype=np.int64))
    generator = np.random.default_rng([seed, size, len(shape)])
    if name == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if name in INTEGERS:
        own = edges(name) if special else np.arange(0 if name.startswith("u") else -6, 9)
    else:
        own = np.array(_SPECIAL if special else _NUMBERS)
    return generator.choice(own, shape).astype(dtype(name))


def inside(kind: str, name: str = "float64") -> Any:
    """Numbers where a function of a kind is defined: ``unit`` or ``positive``."""
    return np.array(_UNIT if kind == "unit" else _POSITIVE).astype(dtype(name))


def words(text: str) -> list[str]:
    """Names, written as one text."""
    return text.split()
