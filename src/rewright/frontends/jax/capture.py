"""One sequential JAX program as a graph of the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewright.frontends.hlo.proto import read
from rewright.frontends.hlo.reading import Interface, lower
from rewright.frontends.jax.messages import capture_error
from rewright.frontends.jax.tracing import trace
from rewright.frontends.jax.validation import check
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.graph import Graph


def capture(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
    validate: bool = True,
) -> Graph:
    """The graph of a JAX function, which may be under ``jit``, on arrays or ``jax.ShapeDtypeStruct``.

    Inputs are named by argument and path (``params.w``), outputs ``output`` or by their path in what is returned
    (``loss``, ``output.0``). With ``backward`` the function gives one number, and the gradients of it with respect to
    the first argument are outputs ``grad:<input>`` too. Shardings are passed over: they say where parts are computed.
    With ``validate`` the graph is run beside what XLA compiles. Raises CaptureError, and UnsupportedOperator for what
    has no lowering.
    """
    traced = trace(function, args, kwargs, backward=backward)
    if "sdy.manual_computation" in traced.lowered.as_text():
        raise CaptureError(
            "the function holds a shard_map, which is a program of ranks; capture it with capture_ranks over its mesh"
        )
    try:
        module = traced.lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    except Exception as error:
        raise capture_error(error, "lowering to HLO") from error
    graph = lower(replace(read(module), name=traced.name), 1, Interface(traced.inputs, traced.outputs))
    if not isinstance(graph, Graph):
        raise RewrightError(f"the function is compiled for {len(graph.graphs)} devices; capture it with capture_ranks")
    return check(graph, traced, module, (args, dict(kwargs or {}))).attach_to(graph) if validate else graph
