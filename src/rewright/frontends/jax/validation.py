"""A JAX function as XLA runs it on a CPU, beside its captured graph."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rewright import ops
from rewright.frontends.jax.library import jax
from rewright.frontends.jax.tracing import Traced
from rewright.frontends.validation.comparison import SINGLE, Difference, compare
from rewright.frontends.validation.record import EQUAL, Validation
from rewright.frontends.validation.store import Outcome, Store, open_store
from rewright.frontends.validation.work import work
from rewright.interp.adversarial import Draws, plan_draws
from rewright.interp.program import run
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.base import Array

_MOST_WORK = 2e6
_MOST_NODES = 400
"""Programs of more nodes take XLA longer to compile than they take to be captured and proved."""
_SEEDS = (0, 1)
_FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
_NARROW = frozenset({DType.BF16, DType.F16})


class _NotRun(Exception):
    """Says why a function is not run."""


def check(graph: Graph, traced: Traced, module: bytes, arguments: Any, store: Store | None = None) -> Validation:
    """What was checked; raises CaptureError where the graph gives something else than XLA does.

    Compiling takes longer than capturing, so it is done once for a module and remembered.
    """
    known = store or open_store(f"jax {jax.__version__}")
    key = hashlib.sha256(module).hexdigest()
    found = known.get(key)
    if found is None:
        try:
            found = Outcome(_compare(graph, traced, arguments))
        except _NotRun as error:
            found = Outcome(None, str(error))
        known.put(key, found)
        known.save()
    if found.difference is None:
        return Validation(program=found.why)
    return Validation(difference=found.difference, program=EQUAL)


def _compare(graph: Graph, traced: Traced, arguments: Any) -> float:
    """The largest difference; raises CaptureError, and _NotRun.

    XLA computes in the dtypes of the program, where a rounding may turn a comparison over: only what differs on every
    draw is said to differ.
    """
    why = _not_run(graph)
    if why:
        raise _NotRun(why)
    leaves, structure = jax.tree.flatten(arguments)
    if traced.kept and max(traced.kept) >= len(leaves):
        raise _NotRun("it has arguments that are no arrays")
    compiled = _compile(traced)
    draws = plan_draws(graph)
    failure: tuple[str, Difference] | None = None
    for seed in _SEEDS:
        inputs = _inputs(draws, graph, seed)
        filled = _with_values(leaves, traced, inputs)
        try:
            args, kwargs = jax.tree.unflatten(structure, filled)
            expected: Sequence[Any] = jax.tree.leaves(compiled(*args, **kwargs))
        except Exception as error:
            raise _NotRun(f"it does not run on numbers that are drawn: {_short(error)}") from None
        outcome = _differences(graph, inputs, dict(zip(traced.outputs, expected, strict=True)))
        if not isinstance(outcome, tuple):
            return outcome
        failure = failure or outcome
    assert failure is not None
    name, difference = failure
    raise CaptureError(
        f"{name} at {graph.nodes[graph.outputs[name]].span}: the capture is not the program: XLA gives {difference}; "
        "report it, and capture with validate=False to go on without this check"
    )


def _differences(
    graph: Graph, inputs: Mapping[str, Array], expected: Mapping[str, Any]
) -> float | tuple[str, Difference]:
    try:
        found = run(graph, inputs)
    except RewrightError as error:
        raise _NotRun(f"its graph cannot be executed: {error}") from None
    largest = 0.0
    for name, value in found.items():
        wanted = np.asarray(expected[name])

        def coarse(name: str = name) -> Array:
            return run(graph, inputs, np.float32)[name]

        wide = wanted.astype(np.float64) if value.dtype.kind == "f" else wanted
        difference = compare(wide, value, coarse, SINGLE)
        if isinstance(difference, Difference):
            return name, difference
        largest = max(largest, difference)
    return largest


def _not_run(graph: Graph) -> str:
    if any(isinstance(node.op, ops.CustomCall) for node in graph.nodes):
        return "its graph holds values that are not known"
    if any(node.type.dtype in _NARROW for node in graph.nodes):
        return "it computes in dtypes of 16 bits, which XLA rounds to"
    return "it is large" if len(graph) > _MOST_NODES or work(graph) > _MOST_WORK else ""


def _compile(traced: Traced) -> Any:
    try:
        return traced.lowered.compile(compiler_options=_FAST)
    except Exception as error:
        raise _NotRun(f"it does not compile: {_short(error)}") from None


def _inputs(draws: Draws, graph: Graph, seed: int) -> dict[str, Array]:
    """Inputs on which something is a number, if there are any."""
    for positive in (False, True):
        inputs = draws.draw(seed, seed, positive)
        try:
            found = run(graph, inputs)
        except RewrightError as error:
            raise _NotRun(f"its graph cannot be executed: {error}") from None
        if any(bool(np.isfinite(value).all()) for value in found.values()):
            return inputs
    return draws.draw(seed, seed)


def _with_values(leaves: Sequence[Any], traced: Traced, inputs: Mapping[str, Array]) -> list[Any]:
    """The arguments with drawn values; what the program does not read is zero."""
    found = [np.zeros(leaf.shape, leaf.dtype) if hasattr(leaf, "shape") else leaf for leaf in leaves]
    for place, name in zip(traced.kept, traced.inputs, strict=True):
        if name in inputs:
            found[place] = inputs[name].astype(np.asarray(found[place]).dtype).reshape(np.shape(found[place]))
    return found


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__
