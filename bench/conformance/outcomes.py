"""What comes of one sample: captured, executed, and compared with what PyTorch computes."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

import rewright as rw
from bench.conformance.choices import valid_choice
from bench.conformance.samples import Case
from rewright import ops
from rewright.frontends.torch.drawing.generators import Generators
from rewright.frontends.torch.drawing.replaying import Replaying
from rewright.frontends.torch.names import result_names
from rewright.interp.drawn import random_numbers
from rewright.interp.program import run
from rewright.ir.errors import CaptureError, RewrightError, UnsupportedOperator
from rewright.ir.unknowns import unknowns
from rewright.ops.base import Real

Numbers = dict[str, np.ndarray]
Results = dict[str, np.ndarray]
Kind = Literal["equal", "rounded", "guarded", "refused", "differs", "foreign", "skipped"]
TOLERANCES = {
    torch.float64: (1e-7, 1e-9),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (5e-3, 1e-3),
    torch.bfloat16: (5e-2, 1e-2),
    torch.complex64: (1e-4, 1e-5),
    torch.complex32: (5e-3, 1e-3),
}
"""By dtype of a sample, relative and absolute; the IR does not round floats."""


@dataclass(frozen=True)
class Outcome:
    """What came of a sample, and in a sentence why it is not equal.

    ``rounded`` is a graph that gives what PyTorch computes in double precision, and not what it rounds to in the
    dtype of the sample; of integers, one that gives PyTorch's result where it is executed in single precision.
    ``guarded`` is one that has no number there and, captured with ``guards_queries``, PyTorch's infinity. ``skipped``
    is a sample that PyTorch itself does not run.
    """

    kind: Kind
    why: str = ""


def outcome(case: Case) -> Outcome:
    """Run a sample with PyTorch and as a captured graph, and compare outputs, gradients and what was written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = _eager(case, case.tensors())
        except Exception as error:
            return Outcome("skipped", _sentence(error))
        if not wanted:
            return Outcome("skipped", "gives no tensor")
        try:
            numbers = _drawn(case)
            found = _captured(case, numbers)
            wanted = _eager(case, case.tensors(), numbers) if numbers else wanted
        except (CaptureError, UnsupportedOperator) as error:
            return Outcome("refused", str(error))
        except Exception as error:
            return Outcome("foreign", f"{type(error).__name__}: {_sentence(error)}")
        return _compared(case, wanted, found, numbers)


def _drawn(case: Case) -> Numbers:
    """Numbers for what a program draws, which both sides are given."""
    graph = rw.capture(case.program, (case.tensors(),), validate=False)
    generator = np.random.default_rng(0)
    found: Numbers = {}
    for name, what in unknowns(graph).items():
        shape = tuple(int(str(n)) for n in graph.nodes[graph.inputs[name]].type.shape)
        value = random_numbers(what, shape, generator, (), edges=False)
        found[name] = generator.standard_normal(shape) if value is None else np.asarray(value)
    return found


def _compared(case: Case, wanted: dict[str, torch.Tensor], found: dict[str, np.ndarray], numbers: Numbers) -> Outcome:
    difference = _difference(case, wanted, found)
    if not difference:
        return Outcome("equal")
    if case.dtype in (torch.float32, torch.bfloat16):
        try:
            wide = _eager(case, case.wide(), numbers)
        except Exception:
            return Outcome("differs", difference)
        if not _difference(case, wide, found, exact=True):
            return Outcome("rounded", difference)
    try:
        return Outcome(_excused(case, wanted, found, numbers), difference)
    except Exception as error:
        return Outcome("foreign", f"{type(error).__name__}: {_sentence(error)}")


def _excused(case: Case, wanted: dict[str, torch.Tensor], found: dict[str, np.ndarray], numbers: Numbers) -> Kind:
    """Whether integers are those of single precision, or what has no number has PyTorch's where it is guarded."""
    if not case.dtype.is_floating_point and not _difference(case, wanted, _captured(case, numbers, real=np.float32)):
        return "rounded"
    guarded = _captured(case, numbers, guards_queries=True)
    known = {name: np.where(_is_undefined(value), guarded[name], value) for name, value in found.items()}
    return "differs" if _difference(case, wanted, known) else "guarded"


def _is_undefined(value: np.ndarray) -> np.ndarray:
    """Where a result is no number."""
    return np.isnan(value) if value.dtype.kind == "f" else np.zeros(value.shape, np.bool_)


def _eager(case: Case, tensors: list[torch.Tensor], numbers: Numbers | None = None) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    versions = [x._version for x in tensors]
    given = {name: torch.from_numpy(value) for name, value in (numbers or {}).items()}
    generators = Generators()
    with generators, Replaying(generators, given) if given else nullcontext():
        results = dict(result_names(case.program(tensors)))
    for place, tensor in enumerate(tensors):
        if tensor.grad is not None:
            results[f"grad:tensors.{place}"] = tensor.grad
        elif tensor._version != versions[place]:
            results[f"updated:tensors.{place}"] = tensor
    return results


def _captured(
    case: Case, numbers: Numbers, *, guards_queries: bool = False, real: Real = np.float64
) -> dict[str, np.ndarray]:
    graph = rw.capture(case.program, (case.tensors(),), validate=False, guards_queries=guards_queries)
    names = [node.op.label for node in graph.nodes if isinstance(node.op, ops.Input)]
    for node in graph.nodes:
        if isinstance(node.op, ops.CustomCall):
            raise UnsupportedOperator("memory that nothing was written to has no value")
    given = numbers | {f"tensors.{i}": _array(x) for i, x in enumerate(case.given)}
    try:
        return run(graph, {name: given[name] for name in names if name in given}, real)
    except RewrightError as error:
        raise RuntimeError(str(error)) from None


def _array(x: torch.Tensor) -> np.ndarray:
    """A tensor as the interpreter takes it: floats are doubles, complex numbers have an axis for their parts."""
    plain = x.detach().resolve_conj().resolve_neg()
    plain = torch.view_as_real(plain) if plain.is_complex() else plain
    plain = plain.resolve_neg() + 0 if plain._is_zerotensor() else plain
    return (plain.double() if plain.is_floating_point() else plain).numpy()


def _difference(
    case: Case, wanted: dict[str, torch.Tensor], found: dict[str, np.ndarray], *, exact: bool = False
) -> str:
    """How the first output that is not the same differs; empty where all are."""
    missing = {*wanted} - {*found}
    if missing:
        return f"no output {', '.join(sorted(missing))}"
    pairs = {name: (_array(x), found[name]) for name, x in wanted.items()}
    apart = [name for name, x in wanted.items() if not _alike(*pairs[name], _tolerance(case, x, exact))]
    if not apart:
        return ""
    if valid_choice(case, {name: pairs[name] for name in apart}):
        return ""
    left, right = pairs[apart[0]]
    return f"{apart[0]}: PyTorch has {_shown(left)} and the graph {_shown(right)}"


def _tolerance(case: Case, result: torch.Tensor, exact: bool) -> tuple[float, float]:
    """That of the coarser one of the dtypes of sample and result; of double precision where that is asked for."""
    if exact:
        return 1e-5, 1e-7
    return max(TOLERANCES.get(dtype, (1e-7, 1e-9)) for dtype in (case.dtype, result.dtype))


def _alike(left: np.ndarray, right: np.ndarray, tolerance: tuple[float, float]) -> bool:
    if left.shape != right.shape or (left.dtype.kind == "f") != (right.dtype.kind == "f"):
        return False
    if left.dtype.kind != "f":
        return bool((left == right).all())
    return bool(np.allclose(right, left, rtol=tolerance[0], atol=tolerance[1], equal_nan=True))


def _shown(x: np.ndarray) -> str:
    return f"{x.dtype}{list(x.shape)} {np.array2string(x.reshape(-1)[:6], precision=5, separator=',')}".replace(
        "\n", ""
    )


def _sentence(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:300] if lines else type(error).__name__


def describe(value: Any) -> str:
    """An argument in a few characters."""
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)[:40]
