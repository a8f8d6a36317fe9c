"""A JAX function traced and lowered, with the names of what goes in and comes out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewright.frontends.jax.library import jax
from rewright.frontends.jax.messages import capture_error
from rewright.frontends.jax.names import input_names, output_names
from rewright.ir.dims import Shape
from rewright.ir.errors import CaptureError, RewrightError


@dataclass(frozen=True)
class Traced:
    """JAX's lowered program; names and global shapes are of the parameters that it kept and of all results."""

    lowered: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    output_shapes: tuple[Shape, ...]
    name: str = "program"
    kept: tuple[int, ...] = ()
    """Which leaves of the arguments are parameters."""


def trace(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
) -> Traced:
    """Trace a function, under ``jit`` or not, on arrays or ``ShapeDtypeStruct``; raises CaptureError.

    With ``backward`` the function must give one number, and its gradients with respect to the first argument are
    results too.
    """
    try:
        target: Any = jax.jit(_with_gradient(function)) if backward else function
        program: Any = target if hasattr(target, "trace") else jax.jit(target)
        traced: Any = program.trace(*args, **(kwargs or {}))
        lowered: Any = traced.lower()
        differentiated = len(jax.tree.leaves(args[0])) if backward else 0
    except RewrightError:
        raise
    except Exception as error:
        raise capture_error(error, f"tracing {_name(function)}") from error
    return replace(_named(traced, lowered, differentiated), name=_name(function))


def _with_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        return jax.value_and_grad(function)(*args, **kwargs)

    return value_and_gradient


def _named(traced: Any, lowered: Any, differentiated: int) -> Traced:
    """``differentiated`` is the number of leaves whose gradients are the last results."""
    debug = traced.jaxpr.jaxpr.debug_info
    arguments: Sequence[Any] = traced.jaxpr.in_avals
    results: Sequence[Any] = traced.jaxpr.out_avals
    names = input_names(_paths(debug.arg_names, len(arguments)))
    ends = output_names(_paths(debug.result_paths, len(results)))
    if differentiated:
        ends = ["output", *(f"grad:{name}" for name in names[:differentiated])]
    kept: list[int] = sorted(
        lowered._lowering.compile_args["kept_var_idx"]
    )  # unused arguments are no parameters of the module
    return Traced(
        lowered,
        tuple(names[place] for place in kept),
        tuple(ends),
        tuple(_shape(arguments[place]) for place in kept),
        tuple(map(_shape, results)),
        kept=tuple(kept),
    )


def _shape(kind: Any) -> Shape:
    if not all(isinstance(size, int) for size in kind.shape):
        raise CaptureError(f"an array of shape {kind.shape} has symbolic sizes; give numbers")
    return tuple(kind.shape)


def _paths(given: Any, count: int) -> list[str]:
    """The paths that JAX noted, or none at all where it did not."""
    paths = [text if isinstance(text, str) else "" for text in given or ()]
    return paths if len(paths) == count else [""] * count


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
