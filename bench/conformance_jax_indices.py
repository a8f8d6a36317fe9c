"""Functions of JAX that take indices: in range, negative, and beyond; every mode of what is out of range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax, ops

from bench.conformance_jax_values import Case, case, numbers

_MODES = (None, "clip", "fill", "drop", "promise_in_bounds", "wrap")
_RANGES: dict[str, tuple[int, ...]] = {
    "inside": (0, 2, 2, 3),
    "negative": (-1, -4, 0, -2),
    "beyond": (4, -5, 9, 1),
    "far": (100, -100, 2**31 - 1, -(2**31)),
}
_INDEX_TYPES = ("int32", "int64", "int8", "uint8", "uint32")


def indexed() -> Iterator[Case]:
    """All cases of functions that take indices."""
    yield from _read()
    yield from _written()
    yield from _blocks()
    yield from _general()


def _indices() -> Iterator[tuple[str, Any]]:
    for label, values in _RANGES.items():
        yield label, np.array(values, np.int32)
    for dtype in _INDEX_TYPES:
        yield dtype, np.array((-1, 1, 7, 3)).astype(dtype)


def _read() -> Iterator[Case]:
    for dtype in ("float64", "bfloat16", "int32", "uint8", "bool"):
        x = numbers((4, 3), dtype, 21)
        for label, index in _indices():
            yield case("jnp.ndarray.__getitem__", lambda v, i: v[i], x, index, label=label)
            yield case("jnp.ndarray.__getitem__", lambda v, i: v[i, -1], x, index, label=f"{label}, -1")
            yield case("jnp.ndarray.__getitem__", lambda v, i: v[i[0]], x, index, label=f"{label}, scalar")
    for dtype in ("float64", "int32"):
        x = numbers((4, 3), dtype, 22)
        for label, index in _indices():
            for mode in _MODES:
                if mode != "promise_in_bounds" or label == "inside":
                    if mode != "drop":
                        yield case(
                            "jnp.take",
                            lambda v, i, m=mode: jnp.take(v, i, axis=0, mode=m),
                            x,
                            index,
                            label=f"{label} {mode}",
                        )
                    if mode != "wrap":
                        yield case(
                            "jnp.ndarray.at.get",
                            lambda v, i, m=mode: v.at[i].get(mode=m),
                            x,
                            index,
                            label=f"{label} {mode}",
                        )
            yield case("jnp.take", lambda v, i: jnp.take(v, i), x, index, label=f"{label} flat")
            yield case(
                "jnp.ndarray.at.get",
                lambda v, i: v.at[i].get(mode="fill", fill_value=7),
                x,
                index,
                label=f"{label} fill 7",
            )
            for mode in (None, "clip", "fill"):
                yield case(
                    "jnp.take_along_axis",
                    lambda v, i, m=mode: jnp.take_along_axis(v, i[:, None], 0, mode=m),
                    x,
                    index,
                    label=f"{label} {mode}",
                )
            yield case("jnp.ndarray.__getitem__", lambda v, i: v[i, i % 3], x, index, label=f"{label}, two")
            yield case("jnp.ndarray.__getitem__", lambda v, i: v[:, i][0], x, index, label=f"{label}, columns")


def _written() -> Iterator[Case]:
    for dtype in ("float64", "int32", "uint8"):
        x, update = numbers((4, 3), dtype, 23), numbers((4, 3), dtype, 24)
        for label, index in _indices():
            for method in ("set", "add", "multiply", "min", "max"):
                modes = (None, "clip", "drop") if method in ("set", "add") else (None,)
                for mode in modes:
                    repeated = len({int(i) % 4 for i in index}) < len(index) or mode == "clip"
                    if method == "set" and repeated and label != "inside":
                        continue  # which one of two updates is kept is not said
                    name = f"jnp.ndarray.at.{method}"
                    yield case(
                        name,
                        lambda v, i, u, f=method, m=mode: getattr(v.at[i], f)(u, mode=m),
                        x,
                        index,
                        update,
                        label=f"{label} {mode}",
                    )
            yield case("jnp.ndarray.at.set", lambda v, i: v.at[i[0]].set(5), x, index, label=f"{label} scalar")
            yield case("jnp.ndarray.at.set", lambda v, i: v.at[:, i[0]].set(5), x, index, label=f"{label} column")
            yield case("jnp.ndarray.at.apply", lambda v, i: v.at[i[0]].apply(lambda e: e * 2), x, index, label=label)
            yield case("ops.segment_sum", lambda u, i: ops.segment_sum(u, i, 3), update, index, label=label)
        yield case("ops.segment_max", lambda u, i: ops.segment_max(u, i, 3), update, np.array([0, 2, 2, 5]))


def _blocks() -> Iterator[Case]:
    starts = ((0, 0), (1, 2), (-1, 0), (-9, -2), (3, 3), (100, -100))
    for dtype in ("float64", "int32", "uint8"):
        x, block = numbers((4, 5), dtype, 25), numbers((2, 3), dtype, 26)
        for kind in ("int32", "int64", "int8", "uint8", "uint32"):
            for at in starts:
                given = np.array(at).astype(kind)
                yield case(
                    "lax.dynamic_slice",
                    lambda v, a: lax.dynamic_slice(v, (a[0], a[1]), (2, 3)),
                    x,
                    given,
                    label=f"{at} {kind}",
                )
                yield case(
                    "lax.dynamic_update_slice",
                    lambda v, u, a: lax.dynamic_update_slice(v, u, (a[0], a[1])),
                    x,
                    block,
                    given,
                    label=f"{at} {kind}",
                )
        for at in starts:
            yield case("lax.dynamic_slice", lambda v, a=at: lax.dynamic_slice(v, a, (2, 3)), x, label=f"{at} numbers")
            yield case(
                "lax.dynamic_update_slice",
                lambda v, u, a=at: lax.dynamic_update_slice(v, u, a),
                x,
                block,
                label=f"{at} numbers",
            )
        for at in (0, -1, -9, 3, 77):
            for keep in (False, True):
                yield case(
                    "lax.dynamic_index_in_dim",
                    lambda v, a, k=keep: lax.dynamic_index_in_dim(v, a, 0, k),
                    x,
                    np.int32(at),
                    label=f"{at} {keep}",
                )
            yield case(
                "lax.dynamic_slice_in_dim",
                lambda v, a: lax.dynamic_slice_in_dim(v, a, 2, 1),
                x,
                np.int32(at),
                label=str(at),
            )
            yield case(
                "lax.dynamic_update_index_in_dim",
                lambda v, u, a: lax.dynamic_update_index_in_dim(v, u, a, 0),
                x,
                numbers((5,), dtype, 27),
                np.int32(at),
                label=str(at),
            )


def _general() -> Iterator[Case]:
    rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    blocks = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
    into = lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0, 1)
    )
    for dtype in ("float64", "int32", "uint8"):
        x = numbers((5, 4), dtype, 28)
        for mode in ("clip", "fill", "promise_in_bounds"):
            for label, values in _RANGES.items():
                if mode == "promise_in_bounds" and label != "inside":
                    continue
                index = np.array(values, np.int32)[:, None]
                yield case(
                    "lax.gather",
                    lambda v, i, m=mode: lax.gather(v, i, rows, (1, 4), mode=m),
                    x,
                    index,
                    label=f"rows {label} {mode}",
                )
                two = np.concatenate([index, index[::-1]], 1)
                two = two // 2 if mode == "promise_in_bounds" else two
                yield case(
                    "lax.gather",
                    lambda v, i, m=mode: lax.gather(v, i, blocks, (2, 3), mode=m),
                    x,
                    two,
                    label=f"blocks {label} {mode}",
                )
                for name in ("scatter_add", "scatter_mul", "scatter_min", "scatter_max"):
                    update = numbers((4, 2, 3), dtype, 29)
                    yield case(
                        f"lax.{name}",
                        lambda v, i, u, g=name, m=mode: getattr(lax, g)(v, i, u, into, mode=m),
                        x,
                        two,
                        update,
                        label=f"{label} {mode}",
                    )
                if label != "negative":
                    yield case(
                        "lax.scatter",
                        lambda v, i, u, m=mode: lax.scatter(v, i, u, into, mode=m),
                        x,
                        two[:1],
                        numbers((1, 2, 3), dtype, 29),
                        label=f"{label} {mode}",
                    )
