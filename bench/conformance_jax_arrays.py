"""Functions of whole arrays of JAX: reductions, layout, products, order, and indices that may be out of range."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from bench.conformance_jax_indices import indexed
from bench.conformance_jax_values import INTEGERS, Case, case, numbers, words

_SOME = ("float64", "bfloat16", "int32", "int8", "uint8", "uint64", "bool")
_AXES = (None, 0, 1, -1, (0, 2), (0, 1, 2), ())


def structured() -> Iterator[Case]:
    """All cases of functions of arrays."""
    yield from _reductions()
    yield from _cumulative()
    yield from _windows()
    yield from _layout()
    yield from _products()
    yield from _order()
    yield from _made()
    yield from _control()
    yield from _gradients()
    yield from indexed()


def _reductions() -> Iterator[Case]:
    for name in words(
        "sum prod max min all any mean argmax argmin count_nonzero ptp var std nansum nanprod nanmax nanmin nanmean"
    ):
        function = getattr(jnp, name)
        for dtype in _SOME:
            for axis in _AXES:
                single = name.startswith("arg")
                if single and isinstance(axis, tuple):
                    continue
                special = name in (
                    "max",
                    "min",
                    "all",
                    "any",
                    "nansum",
                    "nanmax",
                    "nanmin",
                    "count_nonzero",
                    "argmax",
                    "argmin",
                )
                x = numbers((2, 3, 2), dtype, 3, special)
                yield case(f"jnp.{name}", partial(function, axis=axis), x, label=f"axis={axis}")
        yield case(f"jnp.{name}", partial(function, axis=0, keepdims=True), numbers((2, 3)), label="keepdims")
        if name not in ("max", "min", "argmax", "argmin", "ptp", "nanmax", "nanmin"):
            yield case(f"jnp.{name}", partial(function, axis=0), numbers((0, 3)), label="empty")
    for name in words("reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor"):
        dtypes = (
            ("float64", "bfloat16", *INTEGERS) if name[7:] in ("sum", "prod", "max", "min") else (*INTEGERS, "bool")
        )
        for dtype in dtypes:
            for axes in ((0,), (0, 1), ()):
                x = numbers((3, 4), dtype, 5, special=dtype in INTEGERS)
                yield case(f"lax.{name}", partial(getattr(lax, name), axes=axes), x, label=f"{axes}")
    for start in (0.0, 2.5, -np.inf, np.nan):
        for kind in (lax.add, lax.max, lax.min, lax.mul):
            yield case(
                "lax.reduce",
                lambda x, s=start, f=kind: lax.reduce(x, s, f, (0,)),
                numbers((3, 4)),
                label=f"{kind.__name__} from {start}",
            )
        yield case(
            "lax.reduce",
            lambda x, s=start: lax.reduce(x, s, lax.max, (0,)),
            numbers((0, 4)),
            label=f"max of nothing from {start}",
        )
    for ddof in (0, 1, 2, 0.5):
        for name in ("var", "std"):
            yield case(
                f"jnp.{name}", partial(getattr(jnp, name), axis=1, ddof=ddof), numbers((3, 5)), label=f"ddof={ddof}"
            )
    mask = numbers((3, 4), "bool")
    for name in ("sum", "mean", "max", "var"):
        extra = {"initial": -1.0} if name == "max" else {}
        yield case(
            f"jnp.{name}",
            lambda x, w, g=name, e=extra: getattr(jnp, g)(x, axis=0, where=w, **e),
            numbers((3, 4)),
            mask,
            label="where",
        )
    for order in (None, 1, 2, np.inf, -np.inf, 0, 3):
        yield case("jnp.linalg.norm", lambda x, o=order: jnp.linalg.norm(x, o), numbers((5,)), label=f"{order}")
    yield case("jnp.average", lambda x, w: jnp.average(x, axis=0, weights=w), numbers((3, 2)), numbers((3,)) + 3)
    for name in ("logsumexp", "softmax", "log_softmax", "standardize"):
        for axis in (0, 1, -1):
            yield case(f"nn.{name}", partial(getattr(nn, name), axis=axis), numbers((3, 4)), label=f"axis={axis}")
    for dtype in ("float64", "int32"):
        yield case("jnp.median", partial(jnp.median, axis=0), numbers((5, 3), dtype))
        yield case("jnp.quantile", lambda x: jnp.quantile(x, 0.3, axis=0), numbers((5, 3), dtype))


def _cumulative() -> Iterator[Case]:
    for name in words("cumsum cumprod"):
        for dtype in (*_SOME, "int64"):
            for axis in (0, 1, None):
                x = numbers((3, 4), dtype, 7, special=dtype in INTEGERS)
                yield case(f"jnp.{name}", partial(getattr(jnp, name), axis=axis), x, label=f"axis={axis}")
    for name in words("cumsum cumprod cummax cummin cumlogsumexp"):
        for reverse in (False, True):
            for dtype in ("float64", "int32", "uint64") if name != "cumlogsumexp" else ("float64",):
                function = partial(getattr(lax, name), axis=1, reverse=reverse)
                yield case(f"lax.{name}", function, numbers((2, 5), dtype), label=f"reverse={reverse}")
    yield case("lax.associative_scan", lambda x: lax.associative_scan(jnp.add, x), numbers((5, 2)))
    for n in (1, 2):
        yield case("jnp.diff", partial(jnp.diff, n=n, axis=0), numbers((4, 3)), label=str(n))
        yield case("jnp.diff", partial(jnp.diff, n=n), numbers((4, 3), "uint8"), label=str(n))
    yield case("jnp.trapezoid", jnp.trapezoid, numbers((4,)))
    yield case("jnp.ediff1d", jnp.ediff1d, numbers((4,)))


def _windows() -> Iterator[Case]:
    for kind, start in ((lax.add, 0), (lax.max, None), (lax.min, None), (lax.mul, 1)):
        for window, strides, padding in (
            ((2, 3), (1, 1), "VALID"),
            ((2, 2), (2, 1), "SAME"),
            ((3, 1), (1, 2), ((1, 1), (0, 2))),
            ((5, 5), (1, 1), "VALID"),
        ):
            for dtype in ("float64", "int32", "uint8", "uint64"):
                info = np.iinfo(dtype) if dtype != "float64" else np.finfo(dtype)
                low = (
                    start
                    if start is not None
                    else (
                        (-np.inf if kind is lax.max else np.inf)
                        if dtype == "float64"
                        else info.min
                        if kind is lax.max
                        else info.max
                    )
                )
                function = partial(_windowed, start=low, kind=kind, window=window, strides=strides, padding=padding)
                yield case(
                    "lax.reduce_window",
                    function,
                    numbers((4, 5), dtype, 9),
                    label=f"{kind.__name__} {window} {strides} {padding}",
                )
    yield case(
        "lax.reduce_window",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID", window_dilation=(2,)),
        numbers((6,)),
        label="dilation",
    )
    yield case(
        "lax.reduce_window",
        lambda x: lax.reduce_window(x, 1.0, lax.add, (2,), (1,), "SAME"),
        numbers((6,)),
        label="from 1",
    )
    for groups in (1, 2):
        for strides, padding, left, right in (
            ((1, 1), "SAME", (1, 1), (1, 1)),
            ((2, 1), "VALID", (1, 1), (1, 2)),
            ((1, 1), ((1, 2), (0, 1)), (2, 1), (1, 1)),
            ((1, 1), ((-1, 0), (0, -1)), (1, 1), (1, 1)),
        ):
            for dtype in ("float64", "int32"):
                function = partial(
                    lax.conv_general_dilated,
                    window_strides=strides,
                    padding=padding,
                    lhs_dilation=left,
                    rhs_dilation=right,
                    feature_group_count=groups,
                )
                yield case(
                    "lax.conv_general_dilated",
                    function,
                    numbers((2, 4, 5, 4), dtype),
                    numbers((4, 4 // groups, 2, 2), dtype, 1),
                    label=f"{strides} {padding} {left} {right} {groups}",
                )
    yield case(
        "lax.conv_transpose",
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        numbers((1, 3, 3, 2)),
        numbers((2, 2, 2, 3), seed=1),
    )
    for mode in ("full", "same", "valid"):
        yield case("jnp.convolve", partial(jnp.convolve, mode=mode), numbers((5,)), numbers((3,), seed=1), label=mode)
        yield case("jnp.correlate", partial(jnp.correlate, mode=mode), numbers((5,)), numbers((3,), seed=1), label=mode)


def _windowed(x: Any, start: Any, kind: Any, window: Any, strides: Any, padding: Any) -> Any:
    return lax.reduce_window(x, x.dtype.type(start), kind, window, strides, padding)


def _layout() -> Iterator[Case]:
    x = numbers((2, 3, 4))
    shapes: dict[str, list[Any]] = {
        "reshape": [(6, 4), (24,), (4, 3, 2), (2, 1, 12)],
        "ravel": [()],
        "squeeze": [()],
        "transpose": [(), ((1, 2, 0),)],
        "flip": [(), (0,), ((0, 2),)],
        "roll": [(1,), (-2, 0), (5, 1), ((1, 2), (0, 2))],
        "rot90": [(), (2,), (-1, (1, 2))],
        "tile": [(2,), ((2, 1, 3),)],
        "repeat": [(2,), (3, 1)],
        "moveaxis": [(0, 2), ((0, 1), (2, 0))],
        "swapaxes": [(0, 2)],
        "expand_dims": [(0,), ((1, 3),)],
        "broadcast_to": [((5, 2, 3, 4),)],
        "array_split": [(2, 2), (3, 1)],
        "split": [(2, 2), ([1, 2], 1)],
        "atleast_3d": [()],
        "flipud": [()],
        "fliplr": [()],
        "tril": [(), (1,), (-1,)],
        "triu": [(), (1,), (-2,)],
        "trace": [(), (1,), (-1,)],
        "diagonal": [(), (1,), (-1, 1, 2)],
        "unstack": [()],
        "resize": [((3, 5),)],
    }
    for name, settings in shapes.items():
        for dtype in ("float64", "int8", "bool"):
            for setting in settings:
                arguments = setting if isinstance(setting, tuple) and name not in ("reshape",) else (setting,)
                yield case(
                    f"jnp.{name}",
                    lambda v, g=name, a=arguments: getattr(jnp, g)(v, *a),
                    numbers((2, 3, 4), dtype),
                    label=f"{arguments}",
                )
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "mean", "linear_ramp"):
        for width in (1, ((0, 1), (2, 0), (1, 1))):
            yield case("jnp.pad", lambda v, m=mode, w=width: jnp.pad(v, w, mode=m), x, label=f"{mode} {width}")
    for config in (((1, 2, 0),), ((0, 0, 1),), ((-1, 1, 2),), ((2, -2, 1),), ((-2, -1, 0),)):
        for dtype in ("float64", "int32", "uint8", "bool"):
            yield case(
                "lax.pad",
                lambda v, p, c=config: lax.pad(v, p, c),
                numbers((5,), dtype),
                numbers((), dtype, 1),
                label=f"{config}",
            )
    for name in words("concatenate stack vstack hstack dstack column_stack"):
        yield case(f"jnp.{name}", lambda a, b, g=name: getattr(jnp, g)([a, b]), x, numbers((2, 3, 4), seed=1))
        yield case(
            f"jnp.{name}",
            lambda a, b, g=name: getattr(jnp, g)([a, b]),
            numbers((3,), "int8"),
            numbers((3,), "uint8"),
            label="promotion",
        )
    yield case(
        "lax.concatenate", lambda a, b: lax.concatenate([a, b], 1), numbers((2, 0)), numbers((2, 3)), label="empty"
    )
    for start, limit, stride in (((0, 1), (2, 3), (1, 1)), ((1, 0), (3, 4), (2, 3)), ((2, 2), (2, 4), (1, 1))):
        yield case(
            "lax.slice",
            lambda v, a=start, b=limit, s=stride: lax.slice(v, a, b, s),
            numbers((3, 4)),
            label=f"{start} {limit} {stride}",
        )
    for index in (
        (slice(None, None, -1),),
        (slice(-3, None),),
        (Ellipsis, -1),
        (None, slice(1, None, 2)),
        (0, slice(None), -2),
        (slice(3, 0, -2), Ellipsis),
    ):
        yield case("jnp.ndarray.__getitem__", lambda v, i=index: v[i], numbers((4, 3, 4)), label=f"{index}")
    for dims in ((), (0,), (1, 2)):
        yield case("lax.rev", partial(lax.rev, dimensions=dims), x, label=f"{dims}")
    yield case("lax.broadcast_in_dim", lambda v: lax.broadcast_in_dim(v, (2, 3, 4), (0, 2)), numbers((2, 1)))
    yield case("lax.collapse", lambda v: lax.collapse(v, 0, 2), x)
    yield case("jnp.meshgrid", lambda a, b: jnp.meshgrid(a, b), numbers((2,)), numbers((3,)))
    yield case("jnp.ix_", lambda a, b: a[jnp.ix_(b, jnp.array([0, 2]))], numbers((3, 4)), np.array([1, 0]))
    yield case("jnp.block", lambda a: jnp.block([[a, a], [a, a]]), numbers((2, 2)))
    yield case("jnp.diag", jnp.diag, numbers((3,)))
    yield case("jnp.diag", partial(jnp.diag, k=-1), numbers((3, 3)), label="k=-1")
    yield case("jnp.kron", jnp.kron, numbers((2, 2)), numbers((2, 3), seed=1))
    yield case("jnp.vander", partial(jnp.vander, N=4), numbers((3,)))


def _products() -> Iterator[Case]:
    for dtype in ("float64", "float32", "bfloat16", *INTEGERS):
        a, b, special = numbers((3, 4), dtype), numbers((4, 2), dtype, 1), dtype in INTEGERS
        yield case("jnp.matmul", jnp.matmul, a, b)
        yield case(
            "jnp.matmul",
            jnp.matmul,
            numbers((2, 3, 4), dtype, 2, special),
            numbers((4,), dtype, 3, special),
            label="vector",
        )
        yield case(
            "jnp.dot", jnp.dot, numbers((2, 4), dtype, 4, special), numbers((4, 3), dtype, 5, special), label="wraps"
        )
        dimensions = (((2,), (1,)), ((0,), (0,)))
        yield case(
            "lax.dot_general",
            lambda x, y, d=dimensions: lax.dot_general(x, y, d),
            numbers((2, 3, 4), dtype),
            numbers((2, 4, 2), dtype, 1),
        )
        yield case(
            "lax.dot_general",
            lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))),
            numbers((2, 0), dtype),
            numbers((0, 3), dtype),
            label="empty",
        )
        yield case("jnp.outer", jnp.outer, numbers((3,), dtype), numbers((2,), dtype, 1))
        yield case("jnp.inner", jnp.inner, numbers((2, 3), dtype), numbers((4, 3), dtype, 1))
        yield case("jnp.vdot", jnp.vdot, numbers((6,), dtype), numbers((6,), dtype, 1))
        yield case("jnp.tensordot", jnp.tensordot, numbers((2, 3, 4), dtype), numbers((3, 4, 2), dtype, 1))
    yield case(
        "lax.dot_general",
        lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32),
        numbers((2, 3), "int8", 0, True),
        numbers((3, 2), "int8", 1, True),
        label="int8 to int32",
    )
    yield case(
        "lax.dot_general",
        lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32),
        numbers((2, 3), "uint8", 0, True),
        numbers((3, 2), "int8", 1, True),
        label="uint8 by int8",
    )
    yield case(
        "lax.dot_general",
        lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32),
        numbers((2, 3), "bfloat16"),
        numbers((3, 2), "bfloat16", 1),
        label="bfloat16 to float32",
    )
    for spec, left, right in (
        ("ij,jk->ik", (2, 3), (3, 4)),
        ("bij,bkj->bik", (2, 3, 4), (2, 2, 4)),
        ("ij,ij->", (2, 3), (2, 3)),
        ("ij,j->ij", (2, 3), (3,)),
        ("abc,cd->dab", (2, 3, 4), (4, 2)),
        ("ii,j->ij", (3, 3), (2,)),
    ):
        yield case("jnp.einsum", partial(jnp.einsum, spec), numbers(left), numbers(right, seed=1), label=spec)
    yield case("jnp.cross", jnp.cross, numbers((2, 3)), numbers((2, 3), seed=1))
    yield case(
        "nn.dot_product_attention", nn.dot_product_attention, *(numbers((1, 3, 2, 4), "float32", k) for k in range(3))
    )
    yield case(
        "nn.dot_product_attention",
        partial(nn.dot_product_attention, is_causal=True),
        *(numbers((1, 3, 2, 4), "float32", k) for k in range(3)),
        label="causal",
    )
    for name in ("det", "inv", "cholesky", "qr", "eigh", "svd", "slogdet"):
        yield case(f"jnp.linalg.{name}", getattr(jnp.linalg, name), np.eye(3) * 2 + 0.5)
    yield case("jnp.linalg.solve", jnp.linalg.solve, np.eye(3) * 2 + 0.5, numbers((3, 1)))
    yield case("jnp.fft.fft", jnp.fft.fft, numbers((4,)))


def _order() -> Iterator[Case]:
    for dtype in ("float64", "float32", "bfloat16", "int32", "int8", "uint8", "uint64", "bool"):
        for name in ("sort", "argsort"):
            for descending in (False, True):
                for axis in (0, 1):
                    special = descending is False and axis == 1
                    function = partial(getattr(jnp, name), axis=axis, descending=descending)
                    yield case(
                        f"jnp.{name}",
                        function,
                        numbers((4, 5), dtype, 11, special),
                        label=f"axis={axis} descending={descending}",
                    )
        if dtype != "bool":
            for k in (1, 3):
                yield case("lax.top_k", lambda x, n=k: lax.top_k(x, n), numbers((3, 5), dtype, 12), label=str(k))
        yield case(
            "lax.sort", lambda a, b: lax.sort((a, b), num_keys=1), numbers((6,), dtype, 13), numbers((6,), "int32", 14)
        )
        yield case(
            "lax.sort",
            lambda a, b: lax.sort((a, b), num_keys=2),
            numbers((6,), dtype, 13),
            numbers((6,), "int32", 14),
            label="two keys",
        )
    yield case("jnp.sort", jnp.sort, numbers((0,)), label="empty")
    yield case("jnp.lexsort", lambda a, b: jnp.lexsort((a, b)), numbers((6,)), numbers((6,), "int32"))
    for side in ("left", "right"):
        for method in ("scan", "scan_unrolled", "sort", "compare_all"):
            yield case(
                "jnp.searchsorted",
                partial(jnp.searchsorted, side=side, method=method),
                np.array([-2.0, 0, 0, 1, 3]),
                numbers((4,), seed=2),
                label=f"{side} {method}",
            )
    yield case("jnp.digitize", jnp.digitize, numbers((5,)), np.array([-1.0, 0, 1]))
    yield case("jnp.partition", lambda x: jnp.partition(x, 2), numbers((6,)))
    yield case("jnp.unique", partial(jnp.unique, size=4, fill_value=9), numbers((6,), "int32"))
    yield case("jnp.nonzero", partial(jnp.nonzero, size=4, fill_value=-1), numbers((6,), "int32"))
    yield case("jnp.argwhere", partial(jnp.argwhere, size=3), numbers((2, 3), "bool"))
    yield case("jnp.bincount", partial(jnp.bincount, length=4), np.array([0, 3, 1, 1, 7, -2]))
    yield case("jnp.histogram", lambda x: jnp.histogram(x, bins=3, range=(-1, 2)), numbers((8,)))
    yield case("jnp.isin", lambda x: jnp.isin(x, jnp.array([1, 3])), numbers((6,), "int32"))
    yield case(
        "jnp.interp", lambda x: jnp.interp(x, jnp.array([-1.0, 0.0, 2.0]), jnp.array([3.0, 1.0, 5.0])), numbers((9,))
    )


def _made() -> Iterator[Case]:
    for dtype in ("float64", "float32", "bfloat16", *INTEGERS):
        kind = jnp.dtype(dtype)
        yield case("jnp.arange", lambda x, k=kind: jnp.arange(2, 9, 3, dtype=k) + x, numbers((3,), dtype))
        yield case("lax.iota", lambda x, k=kind: lax.iota(k, 4) * x, numbers((4,), dtype, special=dtype in INTEGERS))
        yield case(
            "lax.broadcasted_iota", lambda x, k=kind: lax.broadcasted_iota(k, (2, 3), 1) - x, numbers((2, 3), dtype)
        )
        yield case("jnp.eye", lambda x, k=kind: jnp.eye(3, 4, 1, dtype=k) + x, numbers((3, 4), dtype))
        yield case("jnp.linspace", lambda x, k=kind: jnp.linspace(0, 10, 4, dtype=k) + x, numbers((4,), dtype))
        yield case("jnp.full_like", lambda x: jnp.full_like(x, 3) + x, numbers((2,), dtype))
        yield case("jnp.zeros_like", lambda x: jnp.zeros_like(x) - x, numbers((2,), dtype))
        yield case("jnp.tri", lambda x, k=kind: jnp.tri(3, 3, -1, dtype=k) + x, numbers((3, 3), dtype))
        if dtype in INTEGERS:
            limits = np.iinfo(dtype)
            yield case(
                "lax.full",
                lambda x, m=limits.max, k=kind: lax.full((2,), m, k) + x,
                numbers((2,), dtype),
                label="largest",
            )
            yield case(
                "lax.full",
                lambda x, m=limits.min, k=kind: lax.full((2,), m, k) - x,
                numbers((2,), dtype),
                label="smallest",
            )
    yield case("jnp.logspace", lambda x: jnp.logspace(0, 2, 4) + x, numbers((4,)))
    yield case("nn.one_hot", lambda i: nn.one_hot(i, 4), np.array([0, 3, 4, -1]))
    yield case("jnp.array", lambda x: jnp.array([jnp.nan, jnp.inf, 1.0]) + x, numbers((3,)), label="NaN among numbers")


def _control() -> Iterator[Case]:
    x = numbers((4,))
    for dtype in ("float64", "int32", "uint8"):
        v = numbers((4,), dtype)
        yield case("lax.cond", lambda a: lax.cond(a[0] > 0, lambda b: b + 1, lambda b: b * 2, a), v)
        yield case(
            "lax.switch",
            lambda i, a: lax.switch(i, [lambda b: b + 1, lambda b: b * 2, lambda b: -b], a),
            np.int32(1),
            v,
        )
        yield case(
            "lax.switch",
            lambda i, a: lax.switch(i, [lambda b: b + 1, lambda b: b * 2], a),
            np.int32(-3),
            v,
            label="below",
        )
        yield case(
            "lax.switch",
            lambda i, a: lax.switch(i, [lambda b: b + 1, lambda b: b * 2], a),
            np.int32(9),
            v,
            label="above",
        )
        yield case("lax.fori_loop", lambda a: lax.fori_loop(0, 3, lambda i, b: b * 2 + i.astype(b.dtype), a), v)
        yield case("lax.scan", lambda a: lax.scan(lambda c, y: (c + y, c * y), a[0], a), v)
        yield case("lax.map", lambda a: lax.map(lambda y: y * y, a), v)
        yield case("jax.vmap", jax.vmap(lambda a: jnp.roll(a, 1) + a), numbers((3, 4), dtype))
    yield case(
        "lax.while_loop", lambda a: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, a)), x
    )
    yield case(
        "lax.while_loop",
        lambda a: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (a[0], a)),
        x,
        label="by data",
    )


def _gradients() -> Iterator[Case]:
    smooth = words("exp log1p sin cos tanh square expm1 arctan sinh sqrt abs cbrt")
    for name in smooth:
        yield case(
            f"grad jnp.{name}",
            jax.grad(lambda x, g=name: jnp.sum(getattr(jnp, g)(x) * x)),
            np.array([0.5, 1.25, 2.0, 0.75]),
        )
    for name in words("relu gelu silu softplus sigmoid elu selu relu6 log_sigmoid hard_tanh"):
        yield case(f"grad nn.{name}", jax.grad(lambda x, g=name: jnp.sum(getattr(nn, g)(x) * x)), numbers((6,)))
    for name in words("sum prod max min mean var std cumsum cumprod sort logsumexp"):
        function = nn.logsumexp if name == "logsumexp" else getattr(jnp, name)
        yield case(
            f"grad jnp.{name}",
            jax.grad(lambda x, f=function: jnp.sum(f(x, axis=0) ** 2)),
            np.array([[0.5, 1.0], [2.0, -1.5], [0.25, 3.0]]),
        )
    yield case("grad jnp.where", jax.grad(lambda x: jnp.sum(jnp.where(x > 0, x * x, 3 * x))), numbers((6,)))
    yield case(
        "grad jnp.take",
        jax.grad(lambda x, i: jnp.sum(jnp.take(x, i) ** 2)),
        numbers((4,)),
        np.array([0, 2, 2, 9, -1, -9]),
    )
    yield case(
        "grad jnp.matmul", jax.grad(lambda x, w: jnp.sum((x @ w) ** 2)), numbers((3, 4)), numbers((4, 2), seed=1)
    )
    yield case(
        "grad lax.reduce_window",
        jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID") ** 2)),
        np.array([1.0, 2, 4, 3, 5, 6]),
    )
