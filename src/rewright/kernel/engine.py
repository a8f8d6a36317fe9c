"""Does a Triton kernel compute its PyTorch reference, in bounds and without races?

The launches of a function are read as a graph of what all instances leave in memory, where bounds and races are
proved on the way (:mod:`rewright.frontends.triton`). That graph and the reference's are compared by
:func:`rewright.equiv`, whose certificate the independent checker confirms. What the reading rests on is run: the kernel
in Triton's own interpreter beside the reference. *Refuted* is said only of what the interpreter shows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_flatten

from rewright.analysis.evenness import number_of
from rewright.equiv import Equivalence
from rewright.frontends.torch.capture import capture
from rewright.frontends.triton.configurations import Configurations
from rewright.frontends.triton.launches import with_zeros
from rewright.frontends.triton.meaning.operations.transfers import LEFT_OPEN
from rewright.frontends.triton.meaning.writer import is_of_load
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.types import SourceSpan
from rewright.kernel.comparing import compared
from rewright.kernel.condition import as_facts, meets, name_of
from rewright.kernel.constants import with_rounded_constants
from rewright.kernel.known_tables import with_known_tables
from rewright.kernel.parameters import parameters_of, renamed, with_names, with_one_signature
from rewright.kernel.replaying import told_apart
from rewright.kernel.rounding import is_rounding
from rewright.kernel.running import Run, draws, run_beside
from rewright.ops import Compare, CustomCall, IsFinite, Sort, TopK, splat
from rewright.packages import missing
from rewright.refine.verdict import Counterexample, Evidence, Finding

Inputs = Sequence[tuple[Sequence[Any], Mapping[str, Any]]]
_SECONDS = 10.0
"""How long kernels are run beside their reference."""
_SECOND_TRY = 20.0
"""Seconds of a proof under further conditions."""
_IF_ZERO = ", if masked loads give zero where nothing else is said"
_IF_COUNTED = ", where something counts in each row"
_COUNTED = (
    "something counts in each row of attention and of logarithms of sums; where nothing does, PyTorch gives zero or an "
    "infinity, and softmax written out no number"
)
_MOST_CONFIGURATIONS, _CONFIGURATIONS, _AGAIN = 8, 20.0, 2.0
"""Of how many configurations of an autotuner each is proved, for how many seconds others are begun, and how long each
of these is run."""


@dataclass(frozen=True)
class KernelVerdict(Equivalence):
    """A verdict on a kernel and its reference."""

    runs: int = 0
    """On how many inputs the kernel was run beside the reference, in Triton's interpreter."""
    graphs: tuple[Graph, Graph] | None = field(default=None, repr=False, compare=False)
    """The reference, and what was read of the kernel: the programs that the certificate is about."""


def kernel(
    reference: Callable[..., Any],
    launcher: Callable[..., Any] | Literal["inductor"],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    budget: float | None = None,
    explain: bool = True,
    given: Callable[..., Any] | None = None,
) -> KernelVerdict:
    """Whether a function that launches Triton kernels computes what a PyTorch function does.

    Args:
        reference: a function of tensors, in plain PyTorch.
        launcher: a function of the same arguments that launches kernels and returns the same results; or
            ``"inductor"`` for what ``torch.compile`` makes of the reference for CUDA.
        args: arguments of both; sizes are those of these tensors.
        kwargs: arguments by name.
        dynamic: sizes that are symbols, by name of the reference's parameter: ``{"x": {0: "rows"}}``. The verdict is
            for all of them.
        budget: wall-clock seconds of the proof after which the answer is ``unknown``.
        explain: find the first operators where programs differ.
        given: a condition on inputs, which the verdict is for: a function of the reference's arguments that returns
            tensors of truth values, such as ``lambda x, slots: slots > 0``.

    Returns:
        ``proved``: every element of each result is the reference's, all accesses are in bounds, and no instance reads
        or overwrites what another one writes; under ``assumptions``. ``refuted``: Triton's interpreter gives another
        result, or touches what it must not. ``unknown`` says what is not read or not proved.

    Raises:
        RewrightError: where Triton is not installed, or the reference cannot be captured, or not compiled.
    """
    if find_spec("triton") is None:
        raise RewrightError(missing("triton", "reading a kernel"))
    named, sizes = dict(kwargs or {}), dict(dynamic or {})
    made = _generated(launcher, reference, args, named, sizes) if isinstance(launcher, str) else launcher
    reference, launch = with_one_signature(reference, made, len(args))
    meets_given = None if given is None else with_one_signature(reference, given, len(args))[1]
    known = None if meets_given is None else _condition(reference, meets_given, args, named, sizes)
    case = _Case(
        reference, launch, args, named, sizes, budget, explain, getattr(made, "assumptions", ()), known, meets_given
    )
    return case.for_each_configuration()


def _condition(
    reference: Callable[..., Any],
    given: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    sizes: Mapping[str, Mapping[int, str]],
) -> Graph:
    """What inputs meet, as facts, of a function with the reference's signature."""
    if not meets(given, args, kwargs):
        raise RewrightError(f"the arguments do not meet the condition {name_of(given)}; give arguments that do")
    names, others = (parameters_of(f, args, kwargs) for f in (reference, given))
    graph = capture(given, args, kwargs, dynamic=renamed(sizes, names, others) or None)
    return as_facts(graph, dict(zip(others, names, strict=False)), given)


@dataclass(frozen=True)
class _Case:
    """A reference and a launcher with one signature, and what is asked of them."""

    reference: Callable[..., Any]
    launcher: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    sizes: Mapping[str, Mapping[int, str]]
    budget: float | None
    explain: bool
    assumptions: tuple[str, ...]
    """What a compiler took for granted that made the kernels."""
    condition: Graph | None = None
    """What inputs meet, as facts."""
    given: Callable[..., Any] | None = None
    """The same as a function of the arguments."""
    seconds: float = _SECONDS
    """How long kernels are run."""

    def for_each_configuration(self) -> KernelVerdict:
        """The verdict on the first configuration of autotuners, or on one that is not right."""
        configurations = Configurations()
        deadline = time.monotonic() + _CONFIGURATIONS
        first = replace(self, launcher=configurations.launcher(self.launcher, 0)).verdict()
        texts = configurations.texts
        if first.status != "proved" or len(texts) < 2:
            return first
        for number in range(1, len(texts)):
            if number >= _MOST_CONFIGURATIONS or time.monotonic() > deadline:
                text = f"the autotuner takes one of its first {number} configurations of {len(texts)}"
                return replace(first, assumptions=(*first.assumptions, text))
            other = replace(self, launcher=configurations.launcher(self.launcher, number), seconds=_AGAIN)
            found = other.verdict()
            if found.status != "proved":
                return replace(found, reason=f"with the configuration {texts[number]}: {found.reason}")
            more = tuple(text for text in found.assumptions if text not in first.assumptions)
            first = replace(first, assumptions=(*first.assumptions, *more), runs=first.runs + found.runs)
        return replace(first, notes=(*first.notes, f"this is so with each of {len(texts)} configurations"))

    def verdict(self) -> KernelVerdict:
        """The verdict where masked loads leave lanes undefined, and if that is not a proof where they leave zeros."""
        parameters = parameters_of(self.reference, self.args, self.kwargs)
        left = self._captured(guards=True)
        extreme, special = _tests_floats(left), _compared_with(left)
        ties = None if _orders_several(left) else True
        inputs = draws(self.args, self.kwargs, parameters, self.sizes, special=special, extreme=extreme, ties=ties)
        inputs = [own for own in inputs if self.given is None or meets(self.given, *own)]
        run, zeros = self._run(inputs, zeros=False), False  # first: a program may keep what is traced
        if run is not None and run.outcome in _WRONG:
            again = self._run(inputs, zeros=True)
            if again is not None and again.outcome == "agrees":
                run, zeros = again, True
        found = self._read(left, inputs, run, zeros=zeros, guards=True)
        if found.status == "unknown" and not zeros and _reads_undefined(found.graphs):
            budget = _SECOND_TRY if self.budget is None else min(self.budget, _SECOND_TRY)
            again = self._run(inputs, zeros=True)
            other = replace(self, budget=budget)._read(left, inputs, again, zeros=True, guards=True)
            found, zeros = (other, True) if other.status != "unknown" else (found, False)
        if found.status == "unknown":
            found = self._written_out(found, left, inputs, run, zeros=zeros)
        return self._if_zero(found) if zeros else found

    def _captured(self, *, guards: bool) -> Graph:
        """The reference; ``guards`` are for what PyTorch's attention gives a query that no key answers."""
        graph = capture(self.reference, self.args, self.kwargs, dynamic=self.sizes or None, guards_queries=guards)
        return with_known_tables(with_rounded_constants(graph))

    def _written_out(
        self, found: KernelVerdict, left: Graph, inputs: Inputs, run: Run | None, *, zeros: bool
    ) -> KernelVerdict:
        """A verdict that is open, or a proof for a reference whose softmax is written out, where that differs."""
        plain = self._captured(guards=False)
        if plain.nodes == left.nodes:
            return found
        budget = _SECOND_TRY if self.budget is None else min(self.budget, _SECOND_TRY)
        other = replace(self, budget=budget)._read(plain, inputs, run, zeros=zeros, guards=False)
        if other.status != "proved":
            return found
        return replace(other, assumptions=(*other.assumptions, _COUNTED), reason=f"{other.reason}{_IF_COUNTED}")

    def _if_zero(self, found: KernelVerdict) -> KernelVerdict:
        is_used = any(text.endswith(LEFT_OPEN) for text in found.assumptions)
        return replace(found, reason=f"{found.reason}{_IF_ZERO}") if found.status == "proved" and is_used else found

    def _run(self, inputs: Inputs, *, zeros: bool) -> Run | None:
        return _run(self.reference, self.launcher, inputs, self.seconds, zeros)

    def _read(self, left: Graph, inputs: Inputs, run: Run | None, *, zeros: bool, guards: bool) -> KernelVerdict:
        """The verdict of the proof, beside what a run showed."""
        reference, launch = self.reference, self.launcher
        parameters, others = (parameters_of(f, self.args, self.kwargs) for f in (reference, launch))
        is_late = run is not None and run.outcome == "differs" and run.runs > 1
        alone = self._run([inputs[run.runs - 1]], zeros=zeros) if is_late and run is not None else None
        read = with_zeros(launch) if zeros else launch
        right, why = _read(read, self.args, self.kwargs, renamed(self.sizes, parameters, others), guards=guards)
        if right is None:
            return _without_proof(run, why)
        kept = _unchanged(right)  # by the launcher's own names
        right = with_names(right, dict(zip(others, parameters, strict=False)))
        verdict = _in_words(compared(left, right, self.budget, self.explain, self.condition))
        verdict = replace(verdict, assumptions=(*verdict.assumptions, *self.assumptions))
        if verdict.status == "proved" and run is not None and alone is not None and alone.outcome == "agrees":
            found = _without_proof(replace(run, text=f"in a later call {run.text}: it keeps what it gave before"), "")
            return replace(found, graphs=(left, right))
        if verdict.status == "refuted" and run is not None and run.outcome == "agrees":
            others = told_apart(left, right, parameters, (self.args, self.kwargs), ties=not _orders_several(left))
            again = self._run(others, zeros=zeros) if others else None
            run = run if again is None or again.outcome not in _WRONG else again
        if verdict.status == "proved" and run is not None and run.outcome == "differs" and not run.loses_digits:
            args, kwargs = inputs[run.runs - 1]
            named = {**dict(zip(parameters, args, strict=False)), **kwargs}
            run = replace(run, loses_digits=is_rounding(left, right, named, run) or run.loses_digits)
        return replace(_judge(verdict, run, left, right, kept), graphs=(left, right))


def _reads_undefined(graphs: tuple[Graph, Graph] | None) -> bool:
    """Whether results are made of what a load of a kernel leaves open, and not only of memory that nobody wrote."""
    if graphs is None:
        return False
    kernel = graphs[1]
    used = (kernel.nodes[position].op for position in kernel.ancestors(kernel.outputs.values()))
    return any(isinstance(op, CustomCall) and is_of_load(op) for op in used)


def _generated(
    name: str,
    reference: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic: Mapping[str, Mapping[int, str]],
) -> Callable[..., Any]:
    """The launcher that a compiler makes of the reference."""
    if name != "inductor":
        raise RewrightError(f"no compiler is called {name!r}; give a function that launches kernels, or 'inductor'")
    from rewright.kernel.inductor import inductor

    return inductor(reference, args, kwargs, dynamic=dynamic or None)


def _read(
    launcher: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic: Mapping[str, Any],
    *,
    guards: bool,
) -> tuple[Graph | None, str]:
    try:
        sizes = dynamic or None
        graph = capture(launcher, args, kwargs, dynamic=sizes, validate=False, guards_queries=guards)
        return with_known_tables(with_rounded_constants(graph)), ""
    except RewrightError as error:
        return None, str(error)


def _compared_with(graph: Graph) -> list[int]:
    """The integers with which a program compares what it is given, such as the label that does not count."""
    found: dict[int, None] = {}
    for node in graph.nodes:
        for position in node.operands if isinstance(node.op, Compare) else ():
            source = number_of(graph, position)
            value = None if source is None else splat(graph.nodes[source].op)
            if isinstance(value, int) and not isinstance(value, bool) and value not in (0, 1):
                found[value] = None
    return list(found)


def _tests_floats(graph: Graph) -> bool:
    """Whether a program asks for what is no number, or infinite, of which a proof over real numbers says nothing."""
    return any(
        isinstance(node.op, IsFinite)
        or (isinstance(node.op, Compare) and (node.operands[0] == node.operands[1] or _has_infinity(graph, node)))
        for node in graph.nodes
    )


def _orders_several(graph: Graph) -> bool:
    """Whether a program gives places in an order, of which PyTorch does not say which of equal elements comes first."""
    ops = [node.op for node in graph.nodes]
    return any(
        (isinstance(op, Sort) and op.result == "indices")
        or (isinstance(op, TopK) and op.result == "indices" and op.k != 1)
        for op in ops
    )


def _has_infinity(graph: Graph, node: Node) -> bool:
    sources = [number_of(graph, position) for position in node.operands]
    values = [splat(graph.nodes[source].op) for source in sources if source is not None]
    return any(isinstance(value, float) and math.isinf(value) for value in values)


def _run(
    reference: Callable[..., Any], launcher: Callable[..., Any], inputs: Inputs, seconds: float, zeros: bool
) -> Run | None:
    """Both programs on numbers; None where the arguments have none."""
    tensors = [x for x in tree_flatten(inputs[0])[0] if isinstance(x, torch.Tensor)]
    if any(type(x) is not torch.Tensor or x.device.type != "cpu" for x in tensors):
        return None
    return run_beside(reference, launcher, inputs, seconds, zeros=zeros)


def _in_words(verdict: Equivalence) -> Equivalence:
    """The verdict with assumptions on look-ups that say of which programs they are."""
    texts = [t.replace("the left program reads", "the reference or the kernel reads") for t in verdict.assumptions]
    return replace(verdict, assumptions=tuple(texts))


_WRONG = ("differs", "out of bounds")


def _looks_up(found: KernelVerdict) -> bool:
    """Whether a proof takes for granted that places which data says are in bounds."""
    return any("in bounds" in text or "range" in text for text in found.assumptions)


def _why_floats(run: Run) -> str:
    """Why a kernel is wrong that was proved over real numbers, for places that are in bounds."""
    if run.outcome == "out of bounds":
        return "it is right where the places that it is given are in bounds, and its reference runs on others too"
    if run.loses_digits and not run.has_others:
        return "over real numbers both are equal, and the kernel loses digits that the reference keeps"
    return "over real numbers both are equal, and floats overflow or are no numbers"


def _finding(run: Run, graph: Graph | None) -> Finding:
    """What a run shows, with the line that stores the element that is wrong, or is out of bounds."""
    counterexample = None
    if run.outcome == "differs":
        sizes = {f"argument {number}": shape for number, shape in enumerate(run.shapes)}
        counterexample = Counterexample(sizes, run.output, run.index, run.values[0], run.values[1], 0)
    kind = "wrong_value" if run.outcome == "differs" else "out_of_bounds"
    where = SourceSpan(*run.place) if run.place[1] else None if graph is None else _stored_at(graph, run.output)
    return Finding(kind, f"in Triton's interpreter {run.text}", None, where, "", "", None, counterexample)


def _stored_at(graph: Graph, output: str) -> SourceSpan | None:
    """The line that gave an output the elements that it has."""
    position = graph.outputs.get(output)
    while position is not None:
        node = graph.nodes[position]
        if node.span.line:
            return node.span
        position = node.operands[0] if node.operands else None
    return None


def _without_proof(run: Run | None, why: str) -> KernelVerdict:
    """The verdict on a kernel that is not read: what a run shows, and else why it is not."""
    if run is not None and run.outcome in _WRONG:
        return KernelVerdict(
            "refuted", Evidence.TESTED, findings=(_finding(run, None),), reason=run.text, runs=run.runs
        )
    seen = "" if run is None else f"; {_seen(run)}"
    return KernelVerdict("unknown", Evidence.TESTED, reason=why + seen, runs=0 if run is None else run.runs)


def _seen(run: Run) -> str:
    if run.outcome == "agrees":
        return f"values agree on {run.runs} inputs in Triton's interpreter"
    return f"the kernel was not run: {run.text}"


def _unchanged(graph: Graph) -> frozenset[str]:
    """The outputs that are arguments after a kernel wrote to them, and are what was there before."""
    same = {f"updated:{name}": position for name, position in graph.inputs.items()}
    return frozenset(name for name, position in graph.outputs.items() if same.get(name) == position)


def _judge(verdict: Equivalence, run: Run | None, left: Graph, right: Graph, kept: frozenset[str]) -> KernelVerdict:
    """The verdict of the proof, with what a run says of the reading that it is about."""
    found = KernelVerdict(**{name: getattr(verdict, name) for name in Equivalence.__dataclass_fields__})
    others = (name for name in right.outputs if name not in left.outputs and name not in kept)
    written = [name.removeprefix("updated:") for name in others]
    if verdict.status == "proved" and written:
        reason = f"the kernel writes to {', '.join(written)}, which the reference leaves as it is"
        found = replace(found, status="unknown", evidence=Evidence.TESTED, reason=reason, certify=None)
    if run is None:
        text = "the kernel is read as Triton runs it (it was not run, since its arguments have no values on a CPU)"
        evidence = Evidence.ASSUMED if found.status == "proved" else found.evidence
        return replace(found, assumptions=(*found.assumptions, text), evidence=evidence)
    found = replace(found, runs=run.runs)
    if run.outcome in _WRONG:
        is_real = not run.has_others and run.loses_digits is not True
        if found.status == "proved" and is_real and not (run.outcome == "out of bounds" and _looks_up(found)):
            fault = "this is a fault of Rewright, please report it"
            if run.loses_digits is None:
                fault = "it does not run in double precision, which would show whether it loses digits"
            reason = f"alarm: the kernel was proved, and {run.text}; {fault}"
            return replace(found, status="unknown", evidence=Evidence.TESTED, reason=reason, certify=None)
        mine, reason = _finding(run, right), run.text
        if found.status == "proved":
            reason = f"{reason}: {_why_floats(run)}"
        return replace(
            found,
            status="refuted",
            evidence=Evidence.TESTED,
            reason=reason,
            findings=(mine, *found.findings),
            certify=None,
        )
    if run.outcome != "agrees" and found.status == "proved":
        reason = f"proved as it was read; {_seen(run)}, and what no run confirms is no proof"
        return replace(found, status="unknown", evidence=Evidence.TESTED, reason=reason, certify=None)
    if verdict.status == "refuted":
        reason = f"the graph that was read of the kernel differs ({verdict.reason}), and {_seen(run)}"
        return replace(found, status="unknown", evidence=Evidence.TESTED, reason=reason)
    return found
