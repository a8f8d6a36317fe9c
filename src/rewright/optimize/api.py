"""``rewright.optimize``: fused kernels for a program, with the proof that they are right."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from rewright import certificates
from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.fakes import Dynamic
from rewright.frontends.torch.lower.foreign import not_repeatable
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.memory import pause_garbage_collection
from rewright.ir.sizes import size_symbols, with_sizes
from rewright.ops import CustomCall
from rewright.optimize.calls.ambient import without_gradients
from rewright.optimize.calls.dispatch import Calls
from rewright.optimize.floor.peers import are_read_wrongly, compile_program, given_tensors, graph_by
from rewright.optimize.floor.timings import OURS, PEERS, Floor, Peer
from rewright.optimize.loading import DYNAMO, load
from rewright.optimize.planning.plan import WANT, Plan
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.work import Work
from rewright.optimize.proving.trusted import Allow, Trust
from rewright.optimize.remembered.cache import keep, keep_note, key_of, recall, recall_note
from rewright.optimize.remembered.entry import Entry
from rewright.optimize.running import targets
from rewright.optimize.running.bare import CPU, Steps
from rewright.optimize.running.checked import Checked
from rewright.optimize.running.execution import Runner
from rewright.optimize.running.targets import Printed, Target
from rewright.optimize.scalars.domains import Domain, without_assertions
from rewright.optimize.sizes.inputs import BySizes, SizedDomain, numbers_of
from rewright.optimize.sizes.runner import FlexibleRunner

GraphCall = Callable[[Mapping[str, torch.Tensor]], dict[str, torch.Tensor]]
HINT = 256
"""The size that a symbol stands for where no example says one."""


@dataclass
class Optimized:
    """An optimised program: call it as the original one.

    ``status`` is ``proved``, ``tested`` (only with ``allow="tested"``) or ``fallback``: then the original program
    runs, and ``reason`` says why. ``runs`` says whether that is as it is or by Inductor.
    """

    status: str
    reason: str
    graph: Graph | None = None
    captured: Graph | None = None
    """The program as it was captured; ``graph`` is what plans are made for."""
    plan: Plan | None = None
    trust: Trust = field(default_factory=Trust)
    checked: Checked | None = None
    printed: Printed | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """By phase: of the processor for ``capture``, ``plan`` and ``prove``, by the clock for ``build`` and ``check``."""
    runner: Runner | FlexibleRunner | Steps | None = None
    original: Callable[..., Any] | None = None
    device: torch.device | None = None
    """Where kernels run."""
    domain: Domain | SizedDomain | None = None
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
    by_peer: BySizes[GraphCall] | None = None
    """A graph as it was fastest without kernels, at each tuple of sizes."""
    entry: Entry | None = None
    """Where it was remembered from; then there is no plan, and what was said of it is in files."""

    def __repr__(self) -> str:
        """What it is and what it runs, in a line: graphs and tables are for their own attributes."""
        kernels, others = self.counts
        return f"Optimized({self.status}: {kernels} kernels, {others} operators of a library; runs {self.runs})"

    @property
    def certificate(self) -> Any:
        """The certificate that the plan's graph is the program, where there is one: as a whole, or in pieces."""
        if self.entry is not None and self.entry.certificate.exists():
            return certificates.load(self.entry.certificate)[1]
        return self.trust.certificate

    @property
    def timings(self) -> list[str]:
        """What was timed, now or when it was kept, and what is kept of it, a line each."""
        if self.entry is not None:
            return list(self.entry.document["timings"])
        return [] if self.floor is None else self.floor.lines()

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
        if torch.compiler.is_dynamo_compiling():
            return self._traced(args, kwargs)
        if self.original is None:
            return self.run(kwargs) if self.runs == OURS else self._by_peer(kwargs)
        if self.runs == "inductor" and not are_read_wrongly((args, kwargs)):
            if self.compiled is None:  # a compiled module may have a length
                self.compiled = compile_program(self.original, args)
            return self.compiled(*args, **kwargs)
        if self.runner is None or self.calls is None or self.runs != OURS:
            return self.original(*args, **kwargs)
        try:
            found, why = self.calls(self.run, args, kwargs, self.runner.fresh)
        except RewrightError as error:
            found, why = None, f"{error}: the original program ran"
        if not why:
            return found
        if why not in self.notes:
            self.notes.append(why)
        return self.original(*args, **kwargs)

    def __reduce__(self) -> Any:
        """Raises RewrightError: machine code has no copy."""
        raise RewrightError("an optimized program cannot be copied or pickled; copy the program, and optimize the copy")

    def _traced(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A call in a program that Dynamo compiles: the original is traced, kernels run between two graphs."""
        is_exported = torch.compiler.is_exporting()
        if self.original is not None and (is_exported or self.runs != OURS):
            return self.original(*args, **kwargs)
        from rewright.optimize.calls.untraced import call  # not above: it needs Dynamo, which is there by now

        return call(self, args, kwargs)

    def _by_peer(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """A graph as it was fastest without kernels, where it is defined and its inputs are there."""
        if self.captured is None or self.domain is None or self.runner is None:
            return self.run(inputs)
        with torch.no_grad():
            if why := self.domain.violation(inputs):
                raise RewrightError(why)
            if self.by_peer is None:
                self.by_peer = BySizes(self.captured, partial(self._graph_by_peer, self.captured))
            return self.by_peer.at(inputs)(inputs)

    def _graph_by_peer(self, captured: Graph, sizes: Mapping[str, int]) -> GraphCall:
        """The graph at some sizes, by what was fastest."""
        graph = with_sizes(captured, sizes)
        found: list[Callable[..., Any]] = [] if self.compiled is None or sizes else [self.compiled]

        def call(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            given = given_tensors(graph, inputs)
            if not found:
                found.append(graph_by(self.runs, graph, given, self.device or CPU))
            return dict(zip(graph.outputs, found[0](*given), strict=True))

        return call

    def run(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The outputs by name, from inputs by name; raises RewrightError where there are no kernels."""
        if self.runner is None:
            raise RewrightError(f"there are no kernels for this graph ({self.reason}); call the program itself")
        with without_gradients():
            try:
                if self.domain is not None and (why := self.domain.violation(inputs)):
                    raise RewrightError(why)
                return self.runner(inputs)
            except ValueError as error:
                raise RewrightError(str(error)) from None

    def explain(self) -> str:
        """Properties, decisions, kernels and proofs, as text."""
        from rewright.optimize.report import explain_result

        return explain_result(self)

    def prove_kernels(
        self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *, budget: float | None = None
    ) -> Any:
        """Prove that the Triton kernels, as they are printed for the plan, compute the program; the verdict is kept.

        They are for the sizes of these arguments, with the first tiles that a GPU tries. No GPU is needed. It is the
        verdict of :func:`rewright.kernel`, and :meth:`explain` has it from then on.

        Raises RewrightError where there is no plan, for a graph, and where Triton is not installed.
        """
        from rewright.optimize.running.printed import prove_printed

        if self.plan is None or self.original is None:
            raise RewrightError("kernels are proved for the plan of a function or module; this result has none")
        found = prove_printed(self.original, args, kwargs, plan=self.plan, budget=budget)
        self.trust.kernels = found
        return found

    def package(self, folder: str | Path) -> list[Path]:
        """Write the kernels as a package that PyTorch alone runs, with its certificate; returns the files.

        Raises RewrightError where there are no kernels, or where a call of the program cannot be written down.
        """
        from rewright.optimize.remembered.package import write_package

        return write_package(self, Path(folder))

    def register(self, name: str) -> Callable[..., Any]:
        """The program with its own signature, as one operator ``torch.ops.<namespace>.<name>`` that runs the kernels.

        So ``torch.export`` and ``torch.compile`` keep them in what is made of larger programs. The name is
        ``namespace::name``. The operator has no gradient, and its results lie row by row. It is the program as it was
        captured: what that reads besides tensors does not change any more, and kernels run whatever is faster.

        Raises RewrightError where there are no kernels, for a name that is none, and for a program that writes to its
        arguments, returns their memory, or reads parameters of a module that it is not.
        """
        from rewright.optimize.operator import register_operator

        return register_operator(self, name)

    def emit(self, folder: str | Path) -> list[Path]:
        """Write the generated code and the explanation; returns the files."""
        from rewright.optimize.report import emit_files

        return emit_files(self, Path(folder))


def _runs_once(graph: Graph) -> str:
    """A call of a program that must not be run more often than the program runs it; empty where there is none."""
    calls = (not_repeatable(node.op) for node in graph.nodes if isinstance(node.op, CustomCall))
    return next(filter(None, calls), "")


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
    dynamic: Dynamic | None = None,
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
            same program was optimised before on this machine. That there are none is kept too, with the budget.
        dynamic: names for sizes that change, by input and axis, such as ``{"x": {0: "batch", 1: "tokens"}}``. Kernels
            take these sizes: one plan and one proof are for all of them, and nothing is compiled for a second one. A
            note says where that cannot be, and kernels are for the sizes of the example.

    Returns:
        A callable with the plan, its proof, its code, and the reason where it falls back to the original program;
        ``runs`` and ``floor`` say what was fastest. Nothing that the program does wrong or that is not supported
        raises; what an argument of ``optimize`` does does.
    """
    options: dict[str, Any] = {"allow": allow, "budget": budget, "verify": verify, "floor": floor, "remember": remember}
    asked = request(program, args, kwargs, target, **options)
    if not dynamic:
        return asked.optimized()
    found = asked.optimized(dynamic)
    if found.runner is None:
        why = f"kernels are for the sizes of the example: {found.reason}"
        found = asked.optimized()
        found.notes.append(why)
    return found


def request(
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
) -> Request:
    """What :func:`optimize` is asked with the same arguments; raises RewrightError for one that there is not."""
    if allow not in ("proved", "tested"):
        raise RewrightError(f"allow={allow!r} is no such thing; use 'proved' or 'tested'")
    peers = PEERS if floor is True else tuple(floor or ())
    if unknown := [name for name in peers if name not in PEERS]:
        raise RewrightError(f"floor={unknown[0]!r} is no peer; use True, False, or names among {', '.join(PEERS)}")
    original = program.module() if isinstance(program, torch.export.ExportedProgram) else program
    original = original if callable(original) else None
    tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs or {})) if isinstance(leaf, torch.Tensor)]
    chosen = targets.choose(target, tensors)
    return Request(program, original, args, kwargs or {}, tensors, chosen, allow, budget, verify, peers, remember)


@dataclass(frozen=True)
class Request:
    """What is to be optimised, and how."""

    program: Any
    original: Callable[..., Any] | None
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    tensors: Sequence[torch.Tensor]
    target: Target
    allow: Allow
    budget: float
    verify: bool
    peers: Sequence[Peer]
    remember: bool
    times: Callable[[Optimized, Graph], None] | None = None
    """Finds out what is fastest for the graph of an example, where that is not the program with its arguments."""

    def optimized(self, dynamic: Dynamic | None = None) -> Optimized:
        """What comes out; what goes wrong is a reason to run the original program."""
        found = Optimized("fallback", "", original=self.original)
        try:
            self._optimize(found, dynamic)
        except RewrightError as error:
            _fall_back(found, str(error))
        except Exception as error:  # a program that runs without us has to run with us
            _fall_back(found, f"this is a bug of rewright ({type(error).__name__}: {error}); report it")
        return found

    def _optimize(self, found: Optimized, dynamic: Dynamic | None) -> None:
        if self.original is not None:
            load(DYNAMO)
        with pause_garbage_collection():
            whole, captured = self._prepared(found, dynamic)
            is_flexible = bool(size_symbols(captured))
            hints = self._sizes(captured, found.calls) if is_flexible else {}
            about = tuple((name, size.bit_length()) for name, size in hints.items())  # what is fastest depends on it
            options = (self.allow, self.budget, self.verify, self.peers, self.times is not None, about)
            is_kept = self.remember and self.target == "cpu"
            key = key_of(whole, self.target, options) if is_kept else ""
            once = _runs_once(captured)
            verify = self.verify and not once
            if key and (entry := recall(key)) is not None and _restore(found, entry, captured, hints, verify):
                return
        from rewright.optimize import making
        from rewright.optimize.sizes import making as sizes  # and so the planner, and the prover

        if once:
            found.notes.append(f"not run on numbers, and not timed: {once} may do more than compute")
        refused: str | None = recall_note(f"{key}-refused") if key else None
        if refused:
            found.reason = f"{refused} (remembered from an earlier call)"
        elif is_flexible:
            sizes.find_kernels(found, captured, hints, self.target, self.allow, self.budget, verify)
        else:
            making.find_kernels(found, captured, self.target, self.allow, self.budget, verify)
        example = with_sizes(captured, hints) if is_flexible else captured
        if self.peers and targets.is_timed(self.target) and not once:
            if self.times is None:
                making.keep_fastest(found, example, self.args, self.kwargs, self.peers)
            else:
                self.times(found, example)
        if key and found.runner is None and not refused:
            keep_note(f"{key}-refused", found.reason)
        elif key and found.runner is not None and (found.floor is not None or once or not self.peers):
            keep(key, found)  # what was not timed now may be timed later

    def _prepared(self, found: Optimized, dynamic: Dynamic | None) -> tuple[Graph, Graph]:
        """The program as a graph, and without what it asserts."""
        started = time.process_time()
        found.device = targets.device_of(self.target, self.tensors)
        whole = self._captured(found, dynamic)
        captured = without_assertions(whole)
        found.graph, found.captured = prepare_graph(captured), captured
        found.domain = SizedDomain(whole) if size_symbols(captured) else Domain.of(whole)
        found.seconds["capture"] = time.process_time() - started
        return whole, captured

    def _captured(self, found: Optimized, dynamic: Dynamic | None) -> Graph:
        """The program as a graph, perhaps with symbols for sizes."""
        capturing = partial(_capture, self.program)
        graph = None if dynamic is None else capturing(self.args, self.kwargs, dynamic)
        if self.original is None:
            return graph or capturing(self.args, self.kwargs)
        found.calls = Calls.of(self.original, self.args, self.kwargs, capturing, graph)
        return found.calls.graph

    def _sizes(self, captured: Graph, calls: Calls | None) -> dict[str, int]:
        """The numbers that an example has for symbols."""
        if calls is not None:
            return numbers_of(captured, calls.tensors(self.args, self.kwargs))
        return numbers_of(captured, self.kwargs) if self.kwargs else dict.fromkeys(size_symbols(captured), HINT)


def _fall_back(found: Optimized, reason: str) -> None:
    """Leave a program as it is."""
    found.status, found.reason, found.runs = "fallback", reason, "eager"
    found.runner = found.compiled = None


def _capture(
    program: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, dynamic: Dynamic | None = None
) -> Graph:
    """The graph of a program; operators without a lowering are opaque calls in it."""
    if isinstance(program, Graph):
        if dynamic:
            raise RewrightError("a graph says itself which of its sizes are symbols; leave dynamic out")
        return program
    return capture(program, args, kwargs, dynamic=dynamic, guards_queries=True, opaque=True)


def _restore(found: Optimized, entry: Entry, captured: Graph, hints: Mapping[str, int], verify: bool) -> bool:
    """Fill in what was remembered; false where it cannot be loaded, and is to be made anew."""
    try:
        runner = entry.sized_runner(captured, hints, verify) if entry.is_sized else entry.runner()
    except RewrightError as error:
        found.notes.append(str(error))
        return False
    said = entry.document
    found.status, found.reason, found.runs = said["status"], said["reason"], said["runs"]
    found.trust = Trust(said["evidence"], said["reason"], assumptions=tuple(said["assumptions"]))
    found.work = None if said["work"] is None else Work(*said["work"])
    found.runner, found.entry = runner, entry
    return True
