"""A program as a whole: what PyTorch gives for outputs, gradients and state, beside its captured graph."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from rewright import ops
from rewright.frontends.torch.lower.nodes import operator_name
from rewright.frontends.torch.lower.sizes import DTYPES, TORCH
from rewright.frontends.torch.names import ASSERTED
from rewright.frontends.torch.trace import Trace
from rewright.frontends.torch.validation.checking import OPEN_AMONG_EQUALS
from rewright.frontends.torch.validation.doubles import Doubles
from rewright.frontends.torch.validation.eager import undisturbed, wide
from rewright.frontends.validation.comparison import NARROW, PARTLY_SINGLE, SINGLE, Difference, Tolerance, compare
from rewright.frontends.validation.record import EQUAL
from rewright.frontends.validation.work import work
from rewright.interp.adversarial import Draws, plan_draws
from rewright.interp.program import run
from rewright.ir.digest import digest
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ir.unknowns import unknowns
from rewright.ops.base import Array

_MOST_WORK = 2e7
"""Multiplications and elements of a program that is run; larger ones take longer than they were captured in."""
_SEED = 0
Retrace = Callable[[], Graph]


def check(trace: Trace, graph: Graph, retrace: Retrace) -> str:
    """``equal``, or why the program was not run beside its graph; raises CaptureError where the two differ.

    Buffers that have values keep them, and everything else is drawn. A program that is captured otherwise the second
    time keeps state of its own, and is not said to differ.
    """
    why = _not_run(trace, graph)
    if why:
        return why
    draws = plan_draws(graph)
    for positive in (False, True):
        inputs = _inputs(draws, trace.held, positive)
        try:
            found = run(graph, inputs)
        except RewrightError as error:
            return f"its graph cannot be executed: {error}"
        if positive or any(bool(np.isfinite(value).all()) for value in found.values()):
            break
    try:
        failure = _difference(found, _eager(trace, inputs), graph, inputs, PARTLY_SINGLE)
        if failure is not None:  # it may look at its dtypes
            own = _in_own_dtypes(trace, graph, inputs)
            failure = failure if _difference(found, own, graph, inputs, _own(graph)) is not None else None
    except Exception as error:
        return f"it does not run on numbers that are drawn: {_short(error)}"
    if failure is not None and (line := _unordered(trace)):
        raise CaptureError(
            f"topk at {line}: the program reads the order of what it gives, which sorted=False leaves open, and "
            "PyTorch gives another one; leave it out, or capture with validate=False to go on without this check"
        )
    if failure is not None and _is_open(trace):
        return "it orders or chooses elements in a way that PyTorch leaves open, and differs there"
    return EQUAL if failure is None else _differs(*failure, graph, retrace)


def _is_open(trace: Trace) -> bool:
    """Whether a program asks for an order of elements that is open among equal ones."""
    nodes = trace.program.module.graph.nodes
    return any(node.op == "call_function" and operator_name(node) in OPEN_AMONG_EQUALS for node in nodes)


def _unordered(trace: Trace) -> str:
    """Where a program asks for the largest elements in any order; empty where it does not."""
    for node in trace.program.module.graph.nodes:
        if node.op == "call_function" and operator_name(node) == "aten.topk.default":
            given = dict(zip(("x", "k", "dim", "largest", "sorted"), node.args, strict=False)) | node.kwargs
            if not given.get("sorted", True) and given["k"] != 1:
                return str(trace.program.spans(node))
    return ""


def _difference(
    found: Mapping[str, Array],
    expected: Mapping[str, Array],
    graph: Graph,
    inputs: Mapping[str, Array],
    tolerance: Tolerance,
) -> tuple[str, Difference] | None:
    """The first output that differs."""
    for name, value in found.items():
        if name.startswith(ASSERTED):
            continue  # it is no result

        def coarse(name: str = name) -> Array:
            return run(graph, inputs, np.float32)[name]

        difference = compare(expected[name], value, coarse, tolerance)
        if isinstance(difference, Difference):
            return name, difference
    return None


def _own(graph: Graph) -> Tolerance:
    """How far a program in its own dtypes may be from one over the reals."""
    narrow = any(node.type.dtype in (DType.BF16, DType.F16) for node in graph.nodes)
    return NARROW if narrow else SINGLE


def _differs(name: str, difference: Difference, graph: Graph, retrace: Retrace) -> str:
    try:
        again = digest(retrace())
    except RewrightError as error:
        return f"it cannot be captured twice: {error}"
    if again != digest(graph):
        return "it is another program the second time, and keeps state of its own"
    if difference.kind == "undefined":
        return f"{name} is {difference}, on numbers that are drawn"
    raise CaptureError(
        f"{name} at {graph.nodes[graph.outputs[name]].span}: the capture is not the program: PyTorch gives "
        f"{difference} when the program is run as a whole; report it, and capture with validate=False to go on "
        "without this check"
    )


def _not_run(trace: Trace, graph: Graph) -> str:
    """Why a program is not run; empty where it may be."""
    if trace.again is None:
        return "it holds distributed tensors, or was recorded while it ran"
    if not all(node.type.is_static() for node in graph.nodes):
        return "its sizes are symbols"
    if any(isinstance(node.op, ops.CustomCall) for node in graph.nodes):
        return "its graph holds values that are not known"
    if not graph.inputs.keys() <= {*trace.program.inputs, *unknowns(graph)}:
        return "it holds large tensors that are none of its inputs"
    if work(graph) > _MOST_WORK:
        return "it is large"
    return ""


def _inputs(draws: Draws, given: Mapping[str, torch.Tensor], positive: bool) -> dict[str, Array]:
    known: dict[str, Array] = {
        name: value.detach().to(wide(value.dtype)).cpu().numpy()
        for name, value in given.items()
        if value.dtype in DTYPES
    }
    return {**draws.draw(_SEED, 0, positive), **{name: known[name] for name in draws.inputs if name in known}}


def _eager(trace: Trace, inputs: Mapping[str, Array]) -> dict[str, Array]:
    with Doubles():
        return _run(trace, {name: _tensor(value) for name, value in inputs.items()})


def _in_own_dtypes(trace: Trace, graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    types = {name: graph.nodes[position].type.dtype for name, position in graph.inputs.items()}
    return _run(trace, {name: _tensor(value).to(TORCH[types[name]]) for name, value in inputs.items()})


def _run(trace: Trace, tensors: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    assert trace.again is not None
    with undisturbed(), contextlib.redirect_stdout(io.StringIO()):
        found = trace.again(tensors)
    return {name: _array(value.detach()) for name, value in found.items()}


def _array(value: torch.Tensor) -> Array:
    """The numbers of a result; complex ones are pairs, as in the graph."""
    real = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    return real.to(wide(real.dtype)).contiguous().cpu().numpy()


def _tensor(value: Array) -> torch.Tensor:
    library: Any = torch
    return library.from_numpy(np.array(value))


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__
