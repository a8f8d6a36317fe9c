"""One call: what PyTorch gives, beside what the graph gives that the lowering made of it."""

from __future__ import annotations

import contextlib
import hashlib
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from rewright import ops
from rewright.frontends.torch.lower import lower
from rewright.frontends.torch.traced import TracedProgram
from rewright.frontends.torch.validation import eager
from rewright.frontends.torch.validation.cuts import Cut, Value
from rewright.frontends.torch.validation.operands import Operands, argument_named, name_of
from rewright.frontends.validation.comparison import Difference, compare
from rewright.frontends.validation.record import KINDS
from rewright.frontends.validation.store import Outcome
from rewright.interp.adversarial import Kind
from rewright.interp.exact import run_exactly
from rewright.interp.program import run
from rewright.interp.rationals import Rationals
from rewright.ir.errors import RewrightError
from rewright.ir.graph import NO_SPAN, Graph
from rewright.ops.base import Array

OPEN_AMONG_EQUALS = frozenset(
    {
        "aten.topk.default",
        "aten.kthvalue.default",
        "aten.sort.default",
        "aten.argsort.default",
        "aten.sort.stable",
        "aten.argsort.stable",
    }
)
"""Operators whose order of equal elements PyTorch leaves open, where they are not told to be stable."""


NOTHING = "it has no values"
"""Why memory that nothing was written to is not run, which leaves nothing open."""


_MOST_ELEMENTS = 1 << 24
"""A call whose results are larger, at the sizes at which it would be run, is not run."""


class NotRun(Exception):
    """A call that cannot be run, or not at these sizes; says why."""


@dataclass(frozen=True)
class Wrong(Exception):
    """A call whose lowering gives something else."""

    call: Cut
    kind: Kind
    difference: Difference

    def __str__(self) -> str:
        return f"PyTorch gives {self.difference} (operands: {self.kind.value}; {self.call})"


def check(call: Cut, mode: FakeTensorMode, *, guards_queries: bool = False) -> Outcome:
    """What came of all draws; raises Wrong where results differ, and NotRun where PyTorch or the lowering refuses."""
    program = _Lowered.of(call, mode, guards_queries)
    seed = int(hashlib.sha256(str(call).encode()).hexdigest()[:12], 16)
    found: list[float] = []
    why = ""
    for kind in KINDS if call.leaves else KINDS[:1]:
        try:
            found.append(program.compared(kind, seed))
        except NotRun as error:
            why = str(error)
        except Wrong as error:
            if kind is not Kind.INFINITE or (error.difference.kind == "numbers" and not _is_guarded(call, mode, seed)):
                raise
            why = f"at infinite operands PyTorch gives {error.difference}"
    return Outcome(max(found) if found else None, why)


def _is_guarded(call: Cut, mode: FakeTensorMode, seed: int) -> bool:
    """Whether the lowering that keeps to PyTorch at infinities agrees there; the usual one leaves that open."""
    try:
        _Lowered.of(call, mode, True).compared(Kind.INFINITE, seed)
    except (NotRun, Wrong):
        return False
    return True


@dataclass(frozen=True)
class _Lowered:
    call: Cut
    graph: Graph
    operands: Operands
    results: int
    """How many results are read."""
    written: bool

    @staticmethod
    def of(call: Cut, mode: FakeTensorMode, guards_queries: bool) -> _Lowered:
        """The graph of a call; raises NotRun where the call or its lowering refuses these sizes."""
        try:
            traced, dtypes, written = _trace(call, mode)
        except Exception as error:
            raise NotRun(f"PyTorch refuses it alone: {_short(error)}") from None
        try:
            graph = lower(traced, guards_queries=guards_queries)
        except RewrightError as error:
            raise NotRun(f"it does not lower alone: {_short(error)}") from None
        opaque = [node.op for node in graph.nodes if isinstance(node.op, ops.CustomCall)]
        if opaque and all(op.is_unspecified for op in opaque) and len(graph) == len(opaque) + len(graph.inputs):
            raise NotRun(NOTHING)
        if opaque:
            raise NotRun("its lowering holds values that are not known")
        return _Lowered(call, graph, Operands(call, graph, dtypes), len(dtypes), written)

    def compared(self, kind: Kind, seed: int) -> float:
        """The largest difference on one draw; raises Wrong, and NotRun where PyTorch refuses all such draws."""
        why = ""
        for values in self.operands.draw(kind, seed):
            try:
                expected = self._eager(values)
                if torch.Tag.nondeterministic_seeded in self.call.steps[-1].target.tags:
                    self._check_not_random(values, expected)
            except NotRun:
                raise
            except Exception as error:
                why = f"PyTorch refuses it: {_short(error)}"
                continue
            return self._compare(expected, values, kind)
        raise NotRun(why)

    def _eager(self, values: Sequence[Array]) -> list[Array]:
        """What PyTorch gives, and what it leaves in operands that it may write."""
        library: Any = torch
        given = [
            leaf.empty(eager.wide(leaf.dtype)).copy_(library.from_numpy(np.asarray(value)))
            for leaf, value in zip(self.call.leaves, values, strict=True)
        ]
        found = eager.results(self.call, given, eager.wide, "cpu")
        tensors = [*_parts(self.call, found[-1]), *(given if self.written else [])]
        return [tensor.contiguous().numpy() for tensor in tensors]

    def _check_not_random(self, values: Sequence[Array], before: Sequence[Array]) -> None:
        """Raise NotRun for a call that gives something else the second time, as one that drops elements does."""
        again = self._eager(values)
        if not all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in zip(before, again, strict=True)):
            raise NotRun("it draws random numbers")

    def _compare(self, expected: Sequence[Array], values: Sequence[Array], kind: Kind) -> float:
        inputs = {name_of(number): value for number, value in enumerate(values)}
        try:
            found = run(self.graph, inputs)
        except RewrightError as error:
            raise NotRun(f"its lowering cannot be executed: {_short(error)}") from None
        largest = 0.0
        for number, (name, value) in enumerate(found.items()):
            wanted, got = self._with_own_limits(expected[number]), value
            if self._is_open(number, got) and (self._is_unordered or self._has_equals(values[0])):
                wanted, got = (self._choose(values[0], indices) for indices in (wanted, got))
            if self._is_unordered and number < self.results and got.ndim:
                wanted, got = (np.sort(one, self._axis) for one in (wanted, got))

            def coarse(name: str = name) -> Array:
                return run(self.graph, inputs, np.float32)[name]

            difference = compare(wanted, got, coarse)
            if not isinstance(difference, Difference):
                largest = max(largest, difference)
            elif kind is Kind.INFINITE or not self._is_rounded(name, inputs, wanted):
                raise Wrong(self.call, kind, difference)
        return largest

    def _with_own_limits(self, expected: Array) -> Array:
        """A result with the largest number of the call's own float type for that of float64: see ``nan_to_num``."""
        own = next((leaf.dtype for leaf in self.call.leaves if leaf.dtype in eager.REALS), None)
        if own is None or expected.dtype.kind != "f":
            return expected
        largest = np.finfo(np.float64).max
        at_limit = np.abs(expected) == largest
        return np.where(at_limit, np.copysign(torch.finfo(own).max, expected), expected) if at_limit.any() else expected

    def _is_rounded(self, name: str, inputs: Mapping[str, Array], expected: Array) -> bool:
        """Whether a result is what PyTorch gives as soon as nothing is rounded: the floor of a quotient, say."""
        try:
            found = run_exactly(self.graph, inputs, Rationals())[name]
            return isinstance(compare(expected, found.astype(expected.dtype), lambda: expected), float)
        except (RewrightError, OverflowError, TypeError, ValueError):
            return False

    def _is_open(self, number: int, value: Array) -> bool:
        """Whether a result is an order of elements that is open among equal ones."""
        known = self.call.name in OPEN_AMONG_EQUALS and value.dtype.kind == "i" and number < self.results
        return known and not argument_named(self.call, "stable", False) and value.ndim > 0

    @property
    def _is_unordered(self) -> bool:
        """Whether the call leaves open in which order it gives what it chooses."""
        return self.call.name == "aten.topk.default" and not argument_named(self.call, "sorted", True)

    def _has_equals(self, source: Array) -> bool:
        """Whether elements are equal among which is chosen, as few integers often are."""
        line = np.sort(source, self._axis)
        size = source.shape[self._axis]
        before, after = (np.take(line, range(start, start + size - 1), self._axis) for start in (0, 1))
        both_undefined = (before != before) & (after != after)
        return bool(((before == after) | both_undefined).any())

    def _choose(self, source: Array, indices: Array) -> Array:
        """The elements that are chosen, instead of where they are."""
        return np.take_along_axis(source, indices, self._axis)

    @property
    def _axis(self) -> int:
        return int(argument_named(self.call, "dim", -1))


def _trace(call: Cut, mode: FakeTensorMode) -> tuple[TracedProgram, tuple[torch.dtype, ...], bool]:
    """The call as a traced program of its own, with the dtypes of its results and whether it writes operands."""
    graph = torch.fx.Graph()
    fakes, values = _without_numbers(call, mode)
    inputs = [graph.placeholder(name_of(number)) for number in range(len(fakes))]
    for node, fake in zip(inputs, fakes, strict=True):
        node.meta["val"] = fake
    nodes: list[torch.fx.Node] = []
    for step, value in zip(call.steps, values, strict=True):
        arguments, keywords = _with_nodes((step.arguments, step.keywords), inputs, nodes)
        nodes.append(graph.call_function(step.target, tuple(arguments), keywords))
        nodes[-1].meta["val"] = value
    outputs = [nodes[-1]] if isinstance(values[-1], torch.Tensor) else []
    for number in call.read:
        outputs.append(graph.call_function(operator.getitem, (nodes[-1], number)))
        outputs[-1].meta["val"] = values[-1][number]
    if any(part.numel() > _MOST_ELEMENTS for part in tree_leaves(values) if isinstance(part, torch.Tensor)):
        raise ValueError("its results are too large")
    dtypes = tuple(part.dtype for part in _parts(call, values[-1]))
    written = call.steps[-1].target._schema.is_mutable
    graph.output((*outputs, *(inputs if written else [])))
    names = [f"result{number}" for number in range(len(outputs))]
    names += [f"after{number}" for number in range(len(inputs))] if written else []
    program = cast("torch.fx.GraphModule", SimpleNamespace(graph=graph))
    return TracedProgram(program, tuple(str(node) for node in inputs), tuple(names), lambda _: NO_SPAN), dtypes, written


def _without_numbers(call: Cut, mode: FakeTensorMode) -> tuple[list[torch.Tensor], list[Any]]:
    """Operands and results of a call as tensors that have a shape and a place and no numbers."""
    with contextlib.suppress(Exception):  # fake tensors know more operators, and are slower
        metas = [leaf.empty(leaf.dtype, "meta") for leaf in call.leaves]
        if metas:  # what is made of nothing would be made in memory
            return metas, eager.results(call, metas, eager.same, "meta")
    with mode:
        fakes = [leaf.empty(leaf.dtype) for leaf in call.leaves]
        return fakes, eager.results(call, fakes, eager.same, "cpu")


def _parts(call: Cut, result: Any) -> list[torch.Tensor]:
    """The results that are read."""
    return [result] if isinstance(result, torch.Tensor) else [result[number] for number in call.read]


def _with_nodes(argument: Any, inputs: Sequence[torch.fx.Node], nodes: Sequence[torch.fx.Node]) -> Any:
    if isinstance(argument, Value):
        return (nodes if argument.step else inputs)[argument.number]
    if isinstance(argument, (list, tuple)):
        return [_with_nodes(item, inputs, nodes) for item in cast("Sequence[Any]", argument)]
    if isinstance(argument, dict):
        items = cast("dict[str, Any]", argument).items()
        return {key: _with_nodes(item, inputs, nodes) for key, item in items}
    return torch.device("cpu") if isinstance(argument, torch.device) else argument


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__
