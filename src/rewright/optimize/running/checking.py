"""Running kernels against float64 on small adversarial inputs before they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch

from rewright import ops
from rewright.analysis.meetings import match_collectives
from rewright.frontends.ranks import ranks
from rewright.frontends.torch.eager.operators import TORCH, library, tensor_of
from rewright.interp.machine import Floating, Machine
from rewright.interp.program import bind_sizes
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, Real
from rewright.optimize.running.checked import Checked
from rewright.optimize.running.isolation import Crashed
from rewright.optimize.scalars.domains import Domain
from rewright.refine.shrink.shrinking import shrink

SCALES = ((1.0, 0.1), (30.0, 10.0, 3.0, 0.1))
"""Inputs are standard normal times these: with 30, logits are in the hundreds. Later ones are for what overflows.

A backward graph is given scores and the logarithm of their sum apart: where they do not fit, exponentials overflow.
"""
HUGE = 1e30
"""Numbers beyond it are near what float32 has no number for, once they are multiplied or summed."""
ROWS_OUT = 2
"""With so many rows, the first of each boolean input is false: a query that a mask keeps all keys from."""
NEAR = 2e-3
"""Numbers that are nearer to the largest one of a dtype than this may be rounded to infinity."""
NUDGES, NUDGE = 2, 2.0**-21
"""So many other draws of roundings, each of a few units in the last place of float32."""
SMALL = 1 << 16
"""Programs of at most this many elements in their largest tensor are tested at their own sizes."""

Kernels = Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]


def small_graph(graph: Graph) -> Graph:
    """The program at small sizes where that is possible, else as it is."""
    largest = max((int(str(node.type.size())) for node in graph.nodes), default=0)
    if largest <= SMALL:
        return graph
    try:
        found = shrink(graph, ranks([graph], {"rank": 1}), match_collectives([graph]))
    except RewrightError:
        return graph
    return graph if isinstance(found, Unsupported) else found.sequential


def check(graph: Graph, kernels: Kernels) -> Checked:
    """Compare kernels with the program in float64, in units of what float32 alone gets wrong.

    What overflows in one order of a sum may not in another one: where a program gets near that, smaller inputs decide.
    So they do where inputs that differ by roundings would be wrong too: softmax of logits in the hundreds is a choice.
    """
    worst, domain = 0.0, Domain.of(graph)
    reached: list[float] = []
    for number, scales in enumerate(SCALES):
        for scale in scales:
            inputs = _define(graph, domain, scale, number)
            if inputs is None:
                return Checked(True, worst, "not run on numbers: no draw was found on which it is defined")
            if number:
                inputs = {name: with_a_row_out(value) for name, value in inputs.items()}
            try:
                exact, rounded = (executed(graph, inputs, real) for real in (np.float64, np.float32))
            except RewrightError as failure:
                return Checked(True, worst, f"not run on numbers: {failure}")
            try:
                error, why = _compared(graph, kernels, inputs, exact, rounded, scale)
            except Crashed as failure:
                return Checked(False, worst, str(failure))
            if why and (scale == scales[-1] or not _decides_nothing(graph, inputs, exact, rounded, scale)):
                return Checked(False, error, why)
            if not why:
                worst = max(worst, error)
                reached.append(scale)
                break
    return Checked(True, worst, f"agrees with float64 on inputs of scale {' and '.join(f'{s:g}' for s in reached)}")


def _compared(
    graph: Graph,
    kernels: Kernels,
    inputs: Mapping[str, Array],
    exact: Mapping[str, Array],
    rounded: Mapping[str, Array],
    scale: float,
) -> tuple[float, str]:
    """The largest relative error on some inputs, and why it is too large."""
    given = {n: tensor_of(v).to(TORCH[_dtype(graph, n)]) for n, v in inputs.items()}
    found, worst = kernels(given), 0.0
    for name, expected in exact.items():
        kind = graph.nodes[graph.outputs[name]].type.dtype
        mine = found[name]
        got = (mine.double() if mine.is_floating_point() else mine).cpu().numpy()
        if scale > 1 and kind.is_integer:
            continue  # ranks and places of values that float32 cannot tell apart
        error, why = compare(got, expected, rounded[name], kind)
        if why and _rounds(graph):
            own = own_outputs(graph, given)[name]
            exactly = expected if kind.is_float else own  # what is compared there is rounded before
            error, why = compare(got, exactly, farther(own, rounded[name], expected, kind), kind, 2.0)
        if why:
            return error, f"{name} on inputs of scale {scale:g}: {why}"
        worst = max(worst, error)
    return worst, ""


def _is_near_overflow(graph: Graph, inputs: Mapping[str, Array]) -> bool:
    """Whether something that is computed from floats is above what float32 has, or near it.

    What is far below zero is not looked at: masks are, of programs that are well within their numbers.
    """
    floats: set[int] = set()
    for position in sorted(graph.live()):
        node = graph.nodes[position]
        if node.type.dtype.is_float and (isinstance(node.op, ops.Input) or floats.intersection(node.operands)):
            floats.add(position)
    large: list[int] = []

    def look(position: int, value: Array) -> None:
        if position in floats and bool((value > HUGE).any()):
            large.append(position)

    executed(graph, inputs, np.float64, look)
    return bool(large)


def _decides_nothing(
    graph: Graph,
    inputs: Mapping[str, Array],
    exact: Mapping[str, Array],
    rounded: Mapping[str, Array],
    scale: float,
) -> bool:
    """Whether smaller inputs are to decide."""
    return (scale > 1 and _is_a_choice(graph, inputs, exact, rounded)) or _is_near_overflow(graph, inputs)


def _is_a_choice(
    graph: Graph, inputs: Mapping[str, Array], exact: Mapping[str, Array], rounded: Mapping[str, Array]
) -> bool:
    """Whether the program itself, in float64, is wrong by the same measure on inputs that differ by roundings."""
    for seed in range(NUDGES):
        generator = np.random.default_rng(seed)
        near = {
            name: value * (1.0 + NUDGE * generator.standard_normal(value.shape)) if value.dtype.kind == "f" else value
            for name, value in inputs.items()
        }
        for name, found in executed(graph, near, np.float64).items():
            kind = graph.nodes[graph.outputs[name]].type.dtype
            if kind.is_float and compare(found, exact[name], rounded[name], kind)[1]:
                return True
    return False


def compare(got: Array, exact: Array, rounded: Array, kind: DType, times: float = 8.0) -> tuple[float, str]:
    """The relative error, and why it is too large: more than so many times that of what is rounded."""
    if kind is DType.BOOL or not kind.is_float:
        wrong = float(np.mean(np.asarray(got != exact))) if exact.size else 0.0
        allowed = float(np.mean(np.asarray(rounded != exact))) * 4 + 0.005 if exact.size else 0.0
        return wrong, "" if wrong <= allowed else f"{wrong:.2%} of the elements differ"
    finite: Array = np.isfinite(exact) & np.isfinite(rounded)
    bad: Array = finite & ~np.isfinite(got)
    if bad.any():
        return float("inf"), f"{int(bad.sum())} elements are not finite where float64 is"
    other: Array = np.isinf(exact) & (rounded == exact) & (got != exact)
    if other.any():
        return float("inf"), f"{int(other.sum())} elements are not infinite where float64 is"
    # Infinity less infinity is no number: what a kernel says there may be the limit, but no finite number.
    if (np.isnan(exact) & np.isfinite(got)).any():
        return float("inf"), "a number where float64 has none"
    size = float(np.max(np.abs(exact[finite]), initial=0.0))
    if size == 0.0:
        size = 1.0
    error = float(np.max(np.abs(got[finite] - exact[finite]), initial=0.0)) / size
    own = float(np.max(np.abs(rounded[finite] - exact[finite]), initial=0.0)) / size
    floor = {DType.F16: 2e-3, DType.BF16: 1.6e-2, DType.F32: 2e-5, DType.F64: 1e-10}[kind]
    allowed = times * own + floor
    return error, "" if error <= allowed else f"error {error:.1e}, where float32 alone has {own:.1e}"


def _rounds(graph: Graph) -> bool:
    """Whether a program has fewer digits than float32 somewhere, or casts float64 to float32."""
    return any(
        node.type.dtype in (DType.F16, DType.BF16)
        or (node.type.dtype is DType.F32 and any(graph.nodes[p].type.dtype is DType.F64 for p in node.operands))
        for node in graph.nodes
    )


def farther(own: Array, rounded: Array, exact: Array, kind: DType) -> Array:
    """What the program itself has in 16 bits at worst: infinite where it overflows, else what is farther from exact."""
    if not kind.is_float:
        return rounded
    found = np.where(np.abs(own - exact) > np.abs(rounded - exact), own, rounded)
    largest = torch.finfo(TORCH[kind]).max
    return np.where(np.abs(exact) > largest * (1 - NEAR), np.inf, np.where(np.isfinite(own), found, own))


def executed(
    graph: Graph, inputs: Mapping[str, Array], real: Real, look: Callable[[int, Array], None] | None = None
) -> dict[str, Array]:
    """The outputs with every float tensor in one dtype; a program with calls that only torch can run is run by it.

    Each value is looked at once it is known: not all of them fit into memory.
    """
    if not any(isinstance(node.op, ops.CustomCall) for node in graph.nodes):

        def settle(position: int, value: Array) -> Array:
            if look is not None:
                look(position, value)
            return value

        machine = Machine(bind_sizes(graph, inputs), inputs, Floating(real), settle=settle)
        machine.run()
        return machine.outputs()
    kind = DType.F64 if real is np.float64 else DType.F32
    values: dict[int, torch.Tensor] = {}
    for position, node in enumerate(graph.nodes):
        if node.type.dtype.is_float:
            node = replace(node, type=TensorType(node.type.shape, kind))
        if isinstance(node.op, ops.Input):
            values[position] = tensor_of(inputs[node.op.label]).to(TORCH[node.type.dtype])
        else:
            values[position] = library(node, [values[p] for p in node.operands]).to(TORCH[node.type.dtype])
        if look is not None:
            look(position, values[position].numpy())
    return {name: values[p].numpy() for name, p in graph.outputs.items()}


def own_outputs(graph: Graph, given: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    """The outputs of a program whose every tensor is rounded to its own dtype, as PyTorch has them in memory.

    In fp16 these overflow where float64 does not, in what is returned and in what is stored between kernels.
    """
    values: dict[int, torch.Tensor] = {}
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Input):
            values[position] = given[node.op.label]
        else:
            found = library(node, [values[p] for p in node.operands])
            values[position] = found.to(TORCH[node.type.dtype])
    return {name: values[p].double().numpy() for name, p in graph.outputs.items()}


def _define(graph: Graph, domain: Domain, scale: float, seed: int) -> dict[str, Array] | None:
    """A draw on which the program is defined; None where none is found."""
    for least in (0, 1, 2):
        found = draw(graph, scale, seed, least)
        given = {name: tensor_of(value).to(TORCH[_dtype(graph, name)]) for name, value in found.items()}
        if not domain.violation(given):
            return found
    return None


def draw(graph: Graph, scale: float, seed: int, least: int = 0) -> dict[str, Array]:
    """Random inputs, rounded to the dtype that they have in the program; integers are the least one or the next."""
    generator = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, position in graph.inputs.items():
        kind = graph.nodes[position].type
        shape = tuple(int(str(s)) for s in kind.shape)
        if kind.dtype.is_float:
            values = torch.as_tensor(generator.standard_normal(shape) * scale, device="cpu").to(TORCH[kind.dtype])
            found[name] = values.double().numpy()
        elif kind.dtype is DType.BOOL:
            found[name] = generator.random(shape) < 0.5
        else:
            found[name] = generator.integers(least, least + 2, shape)
    return found


def with_a_row_out(value: Array) -> Array:
    """Truth values with none in the first of several rows, where a mask keeps all from it; other arrays as they are."""
    if value.dtype != np.bool_ or value.ndim < 2 or value.size < ROWS_OUT * value.shape[-1]:
        return value
    found = value.copy()
    found.reshape(-1, value.shape[-1])[0] = False
    return found


def _dtype(graph: Graph, name: str) -> DType:
    return graph.nodes[graph.inputs[name]].type.dtype
