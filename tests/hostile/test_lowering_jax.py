"""JAX programs on the values at which readings of them were wrong: what is captured computes what JAX computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rewright as rw
from rewright.interp.program import run
from rewright.ir.errors import RewrightError, UnsupportedOperator

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
INF, NAN = np.inf, np.nan


def captured(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the captured graph computes."""
    with jax.enable_x64(True):
        graph = rw.capture(function, arguments, framework="jax")
        return next(iter(run(graph, dict(zip(graph.inputs, map(np.asarray, arguments), strict=True))).values()))


def check(function: Callable[..., Any], *arguments: Any) -> None:
    """The captured graph computes what JAX computes, in the same dtype."""
    with jax.enable_x64(True):
        expected = np.asarray(jax.jit(function)(*arguments))
    found = captured(function, *arguments)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_floats_that_an_integer_type_does_not_hold_saturate() -> None:
    """XLA makes 255 of 300.0 and 0 of -1.7. The capture wrapped around (44, 255), and equal programs were refuted."""
    x = jnp.arange(12.0).reshape(3, 4) * 40 - 100
    left = rw.capture(lambda x: x.astype(jnp.uint8).astype(jnp.int32), (x,), framework="jax")
    right = rw.capture(lambda x: jnp.clip(jnp.trunc(x), 0, 255).astype(jnp.int32), (x,), framework="jax")
    assert rw.equiv(left, right).status != "refuted"


def test_casts_that_wrap_and_casts_that_saturate_are_two_functions() -> None:
    """``x.astype(uint8)`` and the last eight bits of ``x.astype(int32)`` were taken for one function of floats."""
    x = np.array([300.0, -1.7, 3.0])
    check(lambda x: x.astype(jnp.int32).astype(jnp.uint8), x)
    saturated, wrapped = (
        rw.capture(f, (x,), framework="jax")
        for f in (lambda x: x.astype(jnp.uint8), lambda x: x.astype(jnp.int32).astype(jnp.uint8))
    )
    assert rw.equiv(saturated, wrapped).status != "proved"


@pytest.mark.parametrize("target", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_every_float_becomes_the_integer_that_xla_makes_of_it(target: str) -> None:
    """NaN is 0, and what is too large is the largest number; the capture gave whatever the processor gives."""
    values = [0.9, -0.9, 127.5, 255.5, 300.0, -129.0, 1e5, -1e5, 3e9, -3e9, 2.0**31, 2.0**63, 2.0**64, 1e30, -1e30]
    x = np.array([*values, NAN, INF, -INF, -0.0])
    check(lambda x: x.astype(target), x)


def test_a_negative_index_that_is_given_counts_from_the_end() -> None:
    """It was assumed away, and the capture read another element (dynamic slices) or ended in an error."""
    x = np.arange(12.0).reshape(4, 3)
    check(lambda x, i: x[i], x, np.array([-1, 0, -4, 2]))
    check(lambda x, i: x[i], x, np.int32(-1))
    check(lambda x, i: lax.dynamic_index_in_dim(x, i, 0), x, np.int32(-2))
    check(lambda x, i: x.at[i].set(7.0), x, np.array([-1, 0]))
    check(lambda x, i: x.at[i].add(7.0), x, np.array([-1, 3, -1]))


def test_an_index_out_of_range_is_moved_or_dropped() -> None:
    """Captures of whole programs took it for granted that there is none."""
    x = np.arange(12.0).reshape(4, 3)
    beyond = np.array([9, -9, 4, -5])
    check(lambda x, i: x[i], x, beyond)
    check(lambda x, i: x.at[i].get(mode="fill", fill_value=-1.0), x, beyond)
    check(lambda x, i: x.at[i].add(1.0), x, beyond)
    check(lambda x, i: x.at[i].multiply(2.0, mode="clip"), x, beyond[:1])
    check(lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 2)), x, beyond)


def test_a_block_that_is_partly_out_of_range_is_not_written_at_all() -> None:
    """The elements inside were written: HLO drops a whole block, and the IR drops elements."""
    numbers = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    x, block = np.zeros((4, 4)), np.ones((2, 2, 2))
    check(lambda x, i, u: lax.scatter_max(x, i, u, numbers, mode="fill"), x, np.array([[3, 3], [1, 1]]), block)
    check(lambda x, i, u: lax.scatter_add(x, i, u, numbers, mode="drop"), x, np.array([[-1, 0], [2, 2]]), block)


def test_a_read_that_fills_with_nan_is_refused_where_it_fills() -> None:
    """``jnp.take`` gives NaN out of range; a gather is not defined there, and says so in one line."""
    check(lambda x, i: jnp.take(x, i), np.arange(5.0), np.array([-1, 4, 0]))
    with pytest.raises(RewrightError, match="out of range"):
        captured(lambda x, i: jnp.take(x, i), np.arange(5.0), np.array([5]))


def test_a_choice_of_nan_is_a_choice() -> None:
    """The other side was taken, whatever the condition said."""
    x = np.array([1.0, -1.0, 2.0])
    check(lambda x: jnp.where(x > 0, x, jnp.nan), x)
    check(lambda x: jnp.sum(jnp.where(x > 0, x, jnp.nan)), x)
    kept, chosen = (
        rw.capture(f, (x,), framework="jax") for f in (lambda x: x * 1, lambda x: jnp.where(x > 0, x, jnp.nan))
    )
    assert rw.equiv(kept, chosen).status != "proved"


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_integers_wrap_and_shifts_end_at_the_width(dtype: str) -> None:
    """A shift by 63 ended in an OverflowError, one by the width or more gave a number, and so did a division by 0."""
    info = np.iinfo(dtype)
    x = np.array([0, 1, 3, info.max, info.max - 1, info.min, info.min + 1, info.max // 3], dtype)
    for amount in (0, 1, info.bits - 1, info.bits, 100):
        by = np.full_like(x, amount)
        for shift in (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic):
            check(shift, x, by)
            check(lambda x, f=shift, n=by: f(x, n), x)
    for function in (lax.add, lax.mul, lax.sub, lax.div, lax.rem, jnp.floor_divide):
        check(function, x, x[::-1].copy())
    check(lambda x: -x, x)
    check(lambda x: jnp.dot(x, x), x)
    check(lambda x: jnp.cumsum(x), x)
    check(lambda x: x + jnp.array(info.max, dtype), x)


def test_a_product_of_short_integers_is_as_wide_as_its_result() -> None:
    """It wrapped in 8 bits where the program asks for 32."""
    x = np.full((2, 3), 127, np.int8)
    numbers = (((1,), (1,)), ((), ()))
    check(lambda x: lax.dot_general(x, x, numbers, preferred_element_type=jnp.int32), x)


def test_rounding_to_fewer_digits_is_no_identity() -> None:
    """It was passed over."""
    check(lambda x: lax.reduce_precision(x, 11, 52), np.array([1.1, 3.3]))
    with pytest.raises(UnsupportedOperator, match="fewer digits"):
        captured(lambda x: lax.reduce_precision(x, 8, 7), np.array([1.1, 3.3]))


def test_a_search_for_the_least_finds_what_is_no_number() -> None:
    """The first element that is no number is the answer; the capture looked for a number."""
    x = np.array([3.0, NAN, -INF, NAN])
    check(jnp.argmin, x)
    check(jnp.argmax, x)
