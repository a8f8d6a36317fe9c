"""``rewright.optimize``: fused kernels for a program, with the proof that they are right."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from rewright.frontends.torch.capture import capture
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.calls.dispatch import Calls
from rewright.optimize.floor.measuring import OURS, Floor, measure
from rewright.optimize.floor.peers import PEERS, Example, Peer, compile_program
from rewright.optimize.planning.plan import Plan, widen_storage
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.splitting import split_plan
from rewright.optimize.planning.work import Work, work_of
from rewright.optimize.proving.composing import Known
from rewright.optimize.proving.laws import laws
from rewright.optimize.proving.leaving import computed_for, look_ups
from rewright.optimize.proving.proofs import LEAST, Trust, trust, unproved_identity
from rewright.optimize.proving.rewrite_proofs import unproved_rewrite
from rewright.optimize.proving.rewriting import rewritten
from rewright.optimize.remembered.cache import keep, key_of, recall
from rewright.optimize.remembered.entry import Entry
from rewright.optimize.remembered.package import write_package
from rewright.optimize.report import CERTIFICATE, emit_files, explain_result
from rewright.optimize.running import targets
from rewright.optimize.running.checking import Checked, check, small_graph
from rewright.optimize.running.execution import Runner
from rewright.optimize.running.targets import Printed, Target
from rewright.optimize.scalars.domains import Domain
from rewright.proof.certificate import Certificate

Allow = Literal["proved", "tested"]
ROUNDS = 3
"""So often a plan is made anew without what is not proved of it."""
WANT = "for want of a proof"
FLOOR_SECONDS = 30.0
"""After so many, no more parts are timed."""
SMALL_PIECES = 3
"""Pieces of the lanes of a small program, so that what merges them is tested where the program has it."""


@dataclass
class Optimized:
    """An optimised program: call it as the original one.

    ``status`` is ``proved``, ``tested`` (only with ``allow="tested"``) or ``fallback``: then the original program
    runs, and ``reason`` says why.
    """

    status: str
    reason: str
    graph: Graph | None = None
    plan: Plan | None = None
    trust: Trust = field(default_factory=Trust)
    checked: Checked | None = None
    printed: Printed | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """By phase: of the processor for ``capture``, ``plan`` and ``prove``, by the clock for ``build`` and ``check``."""
    runner: Callable[[Mapping[str, torch.Tensor]], dict[str, torch.Tensor]] | None = None
    original: Callable[..., Any] | None = None
    domain: Domain | None = None
    """Where the program is defined, as far as that depends on values."""
    calls: Calls | None = None
    """What calls of the program depend on besides the values of tensors, and what they return."""
    notes: list[str] = field(default_factory=list[str])
    work: Work | None = None
    """Operations of the program, and of the plan."""
    floor: Floor | None = None
    """What was timed on this machine."""
    runs: str = "eager"
    """What a call runs: ``kernels``, ``eager`` for the original program, or ``inductor`` for what that makes of it."""
    compiled: Callable[..., Any] | None = None
    """What Inductor made of the program, where that runs."""
    entry: Entry | None = None
    """Where it was remembered from; then there is no plan, and what was said of it is in files."""

    @property
    def certificate(self) -> Any:
        """The certificate that the plan's graph is the program, where the engine of ``refine`` found one."""
        if self.entry is not None and (self.entry.folder / CERTIFICATE).exists():
            return Certificate.load(self.entry.folder / CERTIFICATE)
        return self.trust.certificate

    @property
    def counts(self) -> tuple[int, int]:
        """How many kernels there are, and how many operators that are a library's."""
        if self.entry is not None:
            return len(self.entry.document["kernels"]), self.entry.document["library"]
        return (0, 0) if self.plan is None else (len(self.plan.kernels), len(self.plan.steps) - len(self.plan.kernels))

    @property
    def left_out(self) -> str:
        """What is left to a library for want of a proof or a lowering, as the end of a sentence; empty for nothing."""
        said = [] if self.plan is None else [d for d in self.plan.decisions if WANT in d or "has no kernel" in d]
        return f"; {'; '.join(dict.fromkeys(said))}" if said else ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernels, or the original program where there are none or a gradient is asked for.

        For a graph the arguments are tensors by input name.
        """
        if self.original is None:
            return self.run(kwargs)
        if self.runner is None or self.calls is None or self.runs == "eager":
            return self.original(*args, **kwargs)
        if self.runs == "inductor":
            self.compiled = self.compiled or compile_program(self.original, args)
            return self.compiled(*args, **kwargs)
        try:
            found, why = self.calls(self.run, args, kwargs)
        except RewrightError as error:
            found, why = None, str(error)
        if not why:
            return found
        if why not in self.notes:
            self.notes.append(why)
        return self.original(*args, **kwargs)

    def run(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The outputs by name, from inputs by name; raises RewrightError where there are no kernels."""
        if self.runner is None:
            raise RewrightError(f"there are no kernels for this graph ({self.reason}); call the program itself")
        with torch.no_grad():
            if self.domain is not None and (why := self.domain.violation(inputs)):
                raise RewrightError(why)
            try:
                return self.runner(inputs)
            except ValueError as error:
                raise RewrightError(str(error)) from None

    def explain(self) -> str:
        """Properties, decisions, kernels and proofs, as text."""
        return explain_result(self)

    def package(self, folder: str | Path) -> list[Path]:
        """Write the kernels as a package that PyTorch alone runs, with its certificate; returns the files.

        Raises RewrightError where there are no kernels, or where a call of the program cannot be written down.
        """
        return write_package(self, Path(folder))

    def emit(self, folder: str | Path) -> list[Path]:
        """Write the generated code and the explanation; returns the files."""
        return emit_files(self, Path(folder))


def optimize(
    program: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    target: Target | None = None,
    *,
    allow: Allow = "proved",
    budget: float = 5.0,
    verify: bool = True,
    floor: bool | Sequence[Peer] = True,
    remember: bool = True,
) -> Optimized:
    """Fused kernels for a program, proved to compute what the program computes.

    Args:
        program: an ``nn.Module``, a function, or a graph.
        args: example arguments; kernels are for their sizes and dtypes.
        kwargs: example arguments by name.
        target: ``"cpu"`` (C++ with OpenMP), ``"cuda"`` (Triton) or ``"torch"`` (plain torch, the reference); by
            default it follows the device of the arguments.
        allow: with ``"tested"`` a plan that agrees with float64 on small inputs is used even where no proof was found.
        budget: seconds for the proof; for each of its pieces where the program is long.
        verify: run the kernels against float64 on small inputs first.
        floor: time the plan, part by part and as a whole, against eager PyTorch and Inductor, and keep the faster of
            each; names of these say against which. False: kernels run, however fast they are. Plain torch, the
            reference, is not timed.
        remember: keep kernels for the CPU, with the proof, in the user's cache, and take them from there where the
            same program was optimised before on this machine.

    Returns:
        A callable with the plan, its proof, its code, and the reason where it falls back to the original program;
        ``runs`` and ``floor`` say what was fastest. Nothing that the program does wrong or that is not supported
        raises; what an argument of ``optimize`` does does.
    """
    if allow not in ("proved", "tested"):
        raise RewrightError(f"allow={allow!r} is no such thing; use 'proved' or 'tested'")
    peers = PEERS if floor is True else tuple(floor or ())
    if unknown := [name for name in peers if name not in PEERS]:
        raise RewrightError(f"floor={unknown[0]!r} is no peer; use True, False, or names among {', '.join(PEERS)}")
    original = program.module() if isinstance(program, torch.export.ExportedProgram) else program
    original = original if callable(original) else None
    chosen = targets.choose(target, [v for v in (*args, *(kwargs or {}).values()) if isinstance(v, torch.Tensor)])
    seconds: dict[str, float] = {}
    found = Optimized("fallback", "", original=original, seconds=seconds)
    try:
        started = time.process_time()
        if original is not None:
            found.calls = Calls.of(original, args, kwargs or {}, partial(_capture, program))
        captured = found.calls.graph if found.calls is not None else _capture(program, args, kwargs)
        found.graph, found.domain = prepare_graph(captured), Domain.of(captured)
        seconds["capture"] = time.process_time() - started
        key = key_of(captured, chosen, (allow, verify, peers)) if remember and chosen == "cpu" else ""
        if key and (entry := recall(key)) is not None:
            _restore(found, entry)
            return found
        _fill(found, captured, chosen, allow, budget, verify)
        if found.runner is not None:
            found.runs = OURS
        if isinstance(found.runner, Runner) and peers and targets.is_timed(chosen):
            started = time.monotonic()
            _measure(found, found.runner, captured, args, kwargs or {}, peers)
            seconds["floor"] = time.monotonic() - started
        if key and found.runner is not None:
            keep(key, found)
    except RewrightError as error:
        found.reason = str(error)
        found.runner = None
    except Exception as error:  # a program that runs without us has to run with us
        found.reason = f"this is a bug of rewright ({type(error).__name__}: {error}); report it"
        found.runner = None
    return found


def _capture(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Graph:
    """The graph of a program; operators without a lowering are opaque calls in it."""
    if isinstance(program, Graph):
        return program
    return capture(program, args, kwargs, guards_queries=True, opaque=True)


def _restore(found: Optimized, entry: Entry) -> None:
    """Fill in what was remembered."""
    said = entry.document
    found.status, found.reason, found.runs = said["status"], said["reason"], said["runs"]
    found.trust = Trust(said["evidence"], said["reason"], assumptions=tuple(said["assumptions"]))
    found.work = None if said["work"] is None else Work(*said["work"])
    found.runner, found.entry = entry.runner(), entry


def _measure(
    found: Optimized,
    runner: Runner,
    captured: Graph,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    peers: Sequence[Peer],
) -> None:
    """Find out what is fastest on this machine; a note says where the program has no values to be timed on."""
    calls = found.calls
    try:
        example = Example.of(captured, found.original, calls, args, kwargs)
        own, named = example.args, example.kwargs

        def call(chosen: Runner) -> Any:
            if calls is None:
                return chosen(example.tensors)
            value, why = calls(chosen, own, named)
            if why:
                raise RewrightError(why)
            return value

        found.floor = measured = measure(runner, example, call, peers, FLOOR_SECONDS)
    except RewrightError as error:
        found.notes.append(f"nothing was timed: {error}")
        return
    found.runner, found.runs, found.compiled = measured.runner, measured.runs, measured.compiled


def _fill(found: Optimized, captured: Graph, target: Target, allow: Allow, budget: float, verify: bool) -> None:
    seconds, graph = found.seconds, found.graph
    assert graph is not None
    started = time.process_time()
    given = None if captured.nodes == graph.nodes else captured
    machine = targets.machine(target)
    planner = Planner(graph, machine=machine)
    found.plan = plan = planner.plan()
    seconds["plan"] = time.process_time() - started
    if not plan.kernels:
        found.reason = "there is nothing to fuse: every operator is a library's"
        return
    plan, found.trust = _trust(planner, plan, budget, given)
    found.plan = plan
    if found.trust.evidence != "proved" and allow != "tested":
        seconds["prove"] = found.trust.seconds
        found.reason = f"the plan is not proved ({found.trust.reason}); allow='tested' uses it all the same"
        return
    cheaper = _cheaper(plan, found.trust, budget)
    seconds["prove"] = found.trust.seconds
    small = small_graph(captured) if verify else None  # as it was given: what was prepared is tested too
    tiny = Planner(prepare_graph(small), machine=machine).plan() if small is not None else None
    if cheaper is not None and _build(found, cheaper, target, small, _rewritten_too(tiny)):
        found.trust.updates += _words(found.trust.rules)
    elif cheaper is not None:
        plan.decisions.append(f"rules of the library are not used: {found.reason}")
    if found.runner is None and not _build(found, plan, target, small, tiny):
        return
    found.status = found.trust.evidence
    found.reason = found.trust.reason


def _trust(planner: Planner, plan: Plan, budget: float, given: Graph | None) -> tuple[Plan, Trust]:
    """The plan, with its unproved parts left to a library if need be, and the evidence for it.

    Reads at computed places are left out first, then everything that is computed for a tensor that is not proved.
    """
    known, apart, spent = Known(), frozenset[int](), 0.0
    found, current = trust(plan, budget, given, hurried=True, known=known), plan
    why = found.reason
    for _ in range(ROUNDS):
        more = look_ups(current, found.unproved) or computed_for(current, found.unproved)
        if found.evidence == "proved" or more <= apart:
            break
        apart, spent = apart | more, spent + found.seconds
        started = time.process_time()
        planner = Planner(plan.graph, apart, planner)
        current = planner.plan()
        spent += time.process_time() - started
        if not current.kernels:
            break
        found = trust(current, budget, given, hurried=True, known=known)
    if found.evidence != "proved" or not current.kernels:
        current, found = plan, trust(plan, min(budget, max(budget - spent, LEAST)), given, known=known)
        found.reason = found.reason if found.evidence == "proved" else why
    elif apart:
        current.decisions.append(f"{len(apart)} operators are left to a library {WANT}: {why}")
    found.seconds += spent
    return current, found


def _build(found: Optimized, plan: Plan, target: Target, small: Graph | None, tiny: Plan | None) -> bool:
    """Print, build and test the kernels of a plan, split for the target; false, with the reason, where a test fails."""
    started = time.monotonic()
    machine = targets.machine(target)
    split = split_plan(plan, machine)
    if len(split.steps) > len(plan.steps) and not unproved_identity(split, found.trust.updates, 5.0, whole=False):
        plan = split
        tiny = None if tiny is None else split_plan(tiny, machine, SMALL_PIECES)
    stored, small_stored = widen_storage(plan), None if tiny is None else widen_storage(tiny)
    printed = targets.print_kernels(target, stored, small_stored)
    runner, small_runner, printed = targets.runners(target, stored, small_stored, printed)
    seconds = found.seconds
    seconds["build"] = seconds.get("build", 0.0) + time.monotonic() - started
    if small is not None and small_runner is not None:
        started = time.monotonic()
        found.checked = check(small, small_runner)
        seconds["check"] = seconds.get("check", 0.0) + time.monotonic() - started
        if not found.checked.passed:
            found.reason = f"kernels failed on small inputs: {found.checked.reason}"
            return False
    found.plan, found.printed, found.runner = plan, printed, runner
    assert found.graph is not None
    found.work = work_of(plan, found.graph)
    return True


def _cheaper(plan: Plan, trust: Trust, seconds: float) -> Plan | None:
    """The plan by rules of the library, where it is cheaper and proved to be the plan; else why not is a decision."""
    started = time.process_time()
    found = rewritten(plan)
    if found is None:
        return None
    try:
        why = unproved_rewrite(plan, found, seconds) or unproved_identity(found.plan, [], seconds, whole=False)
    except RewrightError as error:  # the plan from before is as good as it was
        why = str(error)
    trust.seconds += time.process_time() - started
    if why:
        plan.decisions.append(f"rules of the library are not used: {why}")
        return None
    trust.rules = dict(found.laws)
    return found.plan


def _rewritten_too(tiny: Plan | None) -> Plan | None:
    """The small plan rewritten by the same rules, where they apply to it."""
    found = None if tiny is None else rewritten(tiny)
    return tiny if found is None else found.plan


def _words(rules: Mapping[str, int]) -> list[str]:
    """The rules that a plan was rewritten by, for its explanation."""
    used = [f"rule {name}, {count} times: {laws()[name].rule.statement}" for name, count in rules.items()]
    return [*used, "every stored value is proved to be what it was before these rules"]
