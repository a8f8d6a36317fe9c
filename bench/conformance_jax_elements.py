"""Elementwise functions of JAX: every one on the edges of every dtype that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from bench.conformance_jax_values import FLOATS, INTEGERS, Case, case, edges, inside, numbers, pairs, words

_UNARY_FLOAT = words(
    "acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erfc erf_inv exp exp2 expm1 "
    "floor is_finite lgamma log log1p logistic reciprocal rsqrt sin sinh sqrt tan tanh"
)
_UNARY_NUMBER = words("abs neg sign square")
_UNARY_BITS = words("bitwise_not clz population_count")
_UNARY_NUMPY = words(
    "abs absolute angle arccos arcsin arctan arctanh around cbrt ceil conj cos deg2rad exp expm1 fabs floor i0 "
    "iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not nan_to_num negative "
    "positive rad2deg reciprocal rint round sign signbit sin sinc sinh sqrt square tan tanh trunc invert bitwise_count"
)
_WHOLE = words(
    "abs absolute around ceil conj fabs floor iscomplex isfinite isinf isnan isneginf isposinf isreal logical_not "
    "nan_to_num negative positive rint round sign signbit square trunc invert bitwise_count"
)
_UNARY_NN = words(
    "celu elu gelu glu hard_sigmoid hard_swish hard_tanh leaky_relu log_sigmoid mish relu "
    "relu6 selu sigmoid silu soft_sign softplus sparse_plus squareplus"
)
_BINARY_NUMBER = words("add sub mul div rem max min eq ne lt le gt ge")
_BINARY_FLOAT = words("atan2 pow nextafter igamma igammac zeta")
_BINARY_BITS = words("bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical shift_right_arithmetic")
_BINARY_NUMPY = words(
    "add subtract multiply divide true_divide floor_divide mod remainder fmod divmod maximum minimum fmax fmin power "
    "float_power arctan2 hypot logaddexp logaddexp2 copysign heaviside equal not_equal less less_equal greater "
    "greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift ldexp "
    "isclose nextafter"
)
_ROUNDED = words("float_power arctan2 hypot logaddexp logaddexp2 copysign heaviside ldexp divide true_divide")
_BOUNDED = words("acos asin atanh erf_inv arccos arcsin arctanh")
_POSITIVE = words("acosh lgamma digamma igamma igammac zeta log log2 log10 sqrt rsqrt")


def elementwise() -> Iterator[Case]:
    """All cases of functions of elements."""
    yield from _unary()
    yield from _binary()
    yield from _conversions()
    yield from _others()


def _unary() -> Iterator[Case]:
    for name in _UNARY_FLOAT:
        yield from _on_edges(f"lax.{name}", getattr(lax, name), FLOATS)
        yield from _in_domain(f"lax.{name}", name, getattr(lax, name))
    for name in _UNARY_NUMBER:
        yield from _on_edges(f"lax.{name}", getattr(lax, name), (*FLOATS, *INTEGERS))
    for name in _UNARY_BITS:
        yield from _on_edges(f"lax.{name}", getattr(lax, name), (*INTEGERS, "bool"))
    for name in _UNARY_NUMPY:
        yield from _on_edges(f"jnp.{name}", getattr(jnp, name), FLOATS)
        for dtype in ("int32", "int8", "uint8", "uint64", "bool"):
            # Functions that have no integer for an integer are computed in single precision, and so on small numbers.
            values = edges(dtype) if name in _WHOLE else numbers((9,), dtype)
            yield case(f"jnp.{name}", getattr(jnp, name), values)
        yield from _in_domain(f"jnp.{name}", name, getattr(jnp, name))
    for name in _UNARY_NN:
        yield from _on_edges(f"nn.{name}", getattr(nn, name), ("float64", "float32"))
    for method in (lax.RoundingMethod.AWAY_FROM_ZERO, lax.RoundingMethod.TO_NEAREST_EVEN):
        for dtype in FLOATS:
            yield case("lax.round", lambda x, m=method: lax.round(x, m), edges(dtype), label=method.name)
    for exponent in (-3, -2, -1, 0, 1, 2, 3, 5, 8):
        for dtype in ("float64", "float32", "int32", "uint8", "int64"):
            if exponent >= 0 or dtype.startswith("float"):
                yield case(
                    "lax.integer_pow", lambda x, n=exponent: lax.integer_pow(x, n), edges(dtype), label=str(exponent)
                )
    for bits in ((8, 7), (5, 10), (8, 23), (4, 3)):
        for dtype in ("float64", "float32"):
            values = numbers((12,), dtype, special=True) * 1.1
            yield case("lax.reduce_precision", lambda x, b=bits: lax.reduce_precision(x, *b), values, label=str(bits))


def _on_edges(name: str, function: Any, dtypes: tuple[str, ...]) -> Iterator[Case]:
    for dtype in dtypes:
        yield case(name, function, edges(dtype))
    yield case(name, function, edges(dtypes[0])[:0], label="empty")


def _in_domain(name: str, short: str, function: Any) -> Iterator[Case]:
    kind = "unit" if short in _BOUNDED else "positive" if short in _POSITIVE else None
    if kind is not None:
        for dtype in FLOATS:
            yield case(name, function, inside(kind, dtype), label=kind)


def _binary() -> Iterator[Case]:
    for name in _BINARY_NUMBER:
        yield from _on_pairs(f"lax.{name}", getattr(lax, name), (*FLOATS, *INTEGERS))
    for name in _BINARY_FLOAT:
        if name == "zeta":  # at infinity XLA's compiled series is not what its unoptimised one is
            yield case("lax.zeta", lax.zeta, numbers((9,)), numbers((9,), seed=1))
        else:
            yield from _on_pairs(f"lax.{name}", getattr(lax, name), FLOATS)
        if name in _POSITIVE:
            yield case(
                f"lax.{name}", getattr(lax, name), inside("positive") + 1, inside("positive")[::-1], label="positive"
            )
    for name in _BINARY_BITS:
        yield from _on_pairs(f"lax.{name}", getattr(lax, name), INTEGERS)
        if name.startswith("shift"):
            yield from _fixed_shifts(f"lax.{name}", getattr(lax, name))
        else:
            yield from _on_pairs(f"lax.{name}", getattr(lax, name), ("bool",))
    for name in _BINARY_NUMPY:
        yield from _on_pairs(f"jnp.{name}", getattr(jnp, name), ("float64", "bfloat16"))
        for dtype in ("int32", "int8", "uint8", "uint64", "bool"):
            given = (numbers((9,), dtype), numbers((9,), dtype, 1)) if name in _ROUNDED else pairs(dtype)
            yield case(f"jnp.{name}", getattr(jnp, name), *given)
    for left, right in (
        ("float32", "int32"),
        ("int32", "uint32"),
        ("int8", "uint8"),
        ("uint64", "int64"),
        ("bool", "int8"),
    ):
        for name in ("add", "multiply", "maximum", "floor_divide", "power", "less", "where"):
            x, y = numbers((3, 1), left), numbers((1, 4), right, 1)
            function = (lambda a, b: jnp.where(a > b, a, b)) if name == "where" else getattr(jnp, name)
            yield case(f"jnp.{name}", function, x, y, label="promotion")


def _on_pairs(name: str, function: Any, dtypes: tuple[str, ...]) -> Iterator[Case]:
    for dtype in dtypes:
        yield case(name, function, *pairs(dtype))


def _fixed_shifts(name: str, function: Any) -> Iterator[Case]:
    for dtype in INTEGERS:
        width = edges(dtype).dtype.itemsize * 8
        for by in (0, 1, 3, width - 1, width, width + 1):
            label = f"by {by}"
            yield case(name, lambda x, n=by: function(x, jnp.full_like(x, n)), edges(dtype), label=label)


def _conversions() -> Iterator[Case]:
    """Every dtype to every dtype; floats beyond what integers hold, and NaN."""
    large = [3e2, -3e2, 1e5, -1e5, 3e9, -3e9, 1e19, -1e19, 2.0**31, -(2.0**31), 2.0**63, 2.0**64, 127.5, 255.5, -0.75]
    dtypes = ("float64", "float32", "bfloat16", *INTEGERS, "bool")
    for source in dtypes:
        values = edges(source)
        if source in FLOATS:
            values = np.concatenate([values, np.array(large).astype(values.dtype)])
        for target in dtypes:
            yield case(
                "lax.convert_element_type",
                lambda x, t=target: lax.convert_element_type(x, jnp.dtype(t)),
                values,
                label=target,
            )
            yield case("jnp.astype", lambda x, t=target: x.astype(jnp.dtype(t)), values, label=target)


def _others() -> Iterator[Case]:
    for name in ("gcd", "lcm"):
        for dtype in ("int32", "uint8"):
            yield case(f"jnp.{name}", getattr(jnp, name), numbers((8,), dtype), numbers((8,), dtype, 1))
    for dtype in (*FLOATS, "int32", "uint8", "uint64"):
        x, low, high = numbers((4, 3), dtype, special=True), numbers((4, 3), dtype, 1), numbers((4, 3), dtype, 2)
        yield case("lax.clamp", lax.clamp, low, x, high)
        yield case("lax.clamp", lambda x: lax.clamp(x.dtype.type(1), x, x.dtype.type(2)), x, label="numbers")
        yield case("jnp.clip", lambda x: jnp.clip(x, 1, 5), x)
        yield case("jnp.clip", jnp.clip, x, low, high)
        yield case("lax.select", lax.select, numbers((4, 3), "bool"), x, low)
        yield case("jnp.where", lambda c, x: jnp.where(c, x, 0), numbers((4, 3), "bool"), x)
        yield case(
            "jnp.where", lambda c, x: jnp.where(c, x, x.dtype.type(1)), numbers((3,), "bool"), x, label="broadcast"
        )
        if dtype in FLOATS:
            yield case("jnp.where", lambda c, x: jnp.where(c, x, jnp.nan), numbers((4, 3), "bool"), x, label="NaN")
            yield case(
                "jnp.where", lambda c, x: jnp.where(c, jnp.nan, x), numbers((4, 3), "bool"), x, label="NaN first"
            )
            yield case("jnp.where", lambda c, x: jnp.where(c, x, -jnp.inf), numbers((4, 3), "bool"), x, label="-inf")
        yield case(
            "lax.select_n",
            lambda i, *xs: lax.select_n(i, *xs),
            numbers((4, 3), "int32", special=False) % 3,
            x,
            low,
            high,
        )
        yield case(
            "jnp.select",
            lambda c, d, x, y: jnp.select([c, d], [x, y], 7),
            numbers((4, 3), "bool"),
            numbers((4, 3), "bool", 1),
            x,
            low,
        )
        yield case(
            "jnp.piecewise", lambda x: jnp.piecewise(x, [x < 1, x > 2], [lambda v: v + 1, lambda v: v * 2, 0]), x
        )
        yield case(
            "jnp.choose",
            lambda i, x, y: jnp.choose(i, [x, y], mode="clip"),
            numbers((4, 3), "int32"),
            x,
            low,
            label="clip",
        )
        yield case(
            "jnp.choose",
            lambda i, x, y: jnp.choose(i, [x, y], mode="wrap"),
            numbers((4, 3), "int32"),
            x,
            low,
            label="wrap",
        )
    for dtype in ("float64", "float32", "bfloat16"):
        yield case("jnp.frexp", jnp.frexp, numbers((9,), dtype))
        yield case("jnp.modf", jnp.modf, numbers((9,), dtype, special=True))
        yield case(
            "jnp.nan_to_num",
            lambda x: jnp.nan_to_num(x, nan=5.0, posinf=7.0, neginf=-7.0),
            edges(dtype),
            label="numbers",
        )
        yield case("jnp.round", lambda x: jnp.round(x, 1), numbers((9,), dtype), label="1")
        yield case(
            "lax.bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, jnp.int32), numbers((9,), "float32")
        )
        yield case(
            "lax.bitcast_convert_type",
            lambda x: lax.bitcast_convert_type(x, jnp.float32),
            np.array([0x3F800000, 0xBF800001, 0x42280000, 0x7F7FFFFF], np.uint32),
            label="normal",
        )
        yield case("lax.polygamma", lambda x: lax.polygamma(jnp.full_like(x, 2), x), inside("positive", dtype))
