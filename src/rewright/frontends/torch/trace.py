"""One program, forward or with backward, as one flat ATen graph over fake tensors.

The program runs once, under a recorder below autograd. Parameters are exchanged inside the trace, so that the real
``loss.backward()``, parameter hooks, sharding hooks and gradient accumulation are recorded as they happen.
"""

from __future__ import annotations

import hashlib
import logging
import re
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from unittest import mock

import torch
import torch.fx
from torch import nn
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import disable_autocast_cache

from rewright.frontends.aten.context import Communicator
from rewright.frontends.torch import complexes
from rewright.frontends.torch.asserting import AssertingClasses
from rewright.frontends.torch.constants import check_constants
from rewright.frontends.torch.decompositions import library_decompositions
from rewright.frontends.torch.definitions import TRACED
from rewright.frontends.torch.drawing import operators
from rewright.frontends.torch.drawing.distributed import one_stream
from rewright.frontends.torch.drawing.generators import Generators, seed_was_set
from rewright.frontends.torch.drawing.replaying import Replaying
from rewright.frontends.torch.drawing.states import OtherGenerators, readable_states
from rewright.frontends.torch.exported import InterpretedProgram, as_program
from rewright.frontends.torch.fakes import (
    CPU,
    Dynamic,
    Symbols,
    as_fake,
    assumptions,
    compiling,
    derive_symbols,
    device_of,
    mode_of,
    new_mode,
    undecided_sizes,
)
from rewright.frontends.torch.flexible import dense_attention, noting
from rewright.frontends.torch.foreach import foreach_decompositions, placed_one_by_one
from rewright.frontends.torch.marks import Mark, mark_of
from rewright.frontends.torch.messages import capture_error
from rewright.frontends.torch.names import bind_arguments, leaves, replace, result_names
from rewright.frontends.torch.optimizers import Optimizers
from rewright.frontends.torch.overwriting import NotingOverwriting
from rewright.frontends.torch.owners import Owners, first_names
from rewright.frontends.torch.recorder import Recorder
from rewright.frontends.torch.remembering import KnownResults
from rewright.frontends.torch.replicated import notes_of
from rewright.frontends.torch.spans import SourceRecorder
from rewright.frontends.torch.tensors import from_local, local, parameter_like, spec_of, stand_in, version
from rewright.frontends.torch.traced import TracedProgram
from rewright.frontends.torch.waiting import Waits, log
from rewright.frontends.torch.wrappers import refusing_wrappers
from rewright.frontends.triton.launches import intercepted
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.memory import pause_garbage_collection

Tensors = dict[str, torch.Tensor]
_NO_GRADIENT = "does not require grad"
_DIGESTED_AT_ONCE = 1 << 20
"""Elements of a buffer that are looked at together."""
Groups = Callable[[], dict[str, Communicator]]


@dataclass(frozen=True)
class Trace:
    """A traced program with the DTensor specs of what goes in and comes out (None for a plain tensor)."""

    program: TracedProgram
    input_specs: dict[str, Any]
    output_specs: dict[str, Any]
    notes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    buffers: dict[str, str] = field(default_factory=dict[str, str])
    """By name of a buffer a digest of its values, which is empty where it has none."""
    marks: dict[str, Mark] = field(default_factory=dict[str, Mark])
    """What plain parameters say of how they are split."""
    waits: Waits = field(default_factory=Waits)
    """What was begun and waited for among ranks."""
    again: Callable[[Mapping[str, torch.Tensor]], Tensors] | None = field(default=None, compare=False)
    """Runs the program on other inputs; None for one that cannot be."""
    held: Tensors = field(default_factory=dict[str, torch.Tensor], compare=False)
    """The buffers that have values."""


@dataclass
class _Results:
    """What the program returned while it ran under the tracer."""

    named: Tensors = field(default_factory=dict[str, torch.Tensor])
    untold: dict[str, tuple[torch.Tensor, torch.Tensor]] = field(
        default_factory=dict[str, tuple[torch.Tensor, torch.Tensor]]
    )
    """What no version counter says was written, with its local part: ``.data`` has a counter of its own."""
    without_gradient: list[str] = field(default_factory=list[str])


def trace(
    target: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
    dynamic: Dynamic | None = None,
    groups: Groups | None = None,
    rank: int = 0,
    opaque: bool = False,
) -> Trace:
    """Run a module or function once on fake tensors and record what it does.

    With ``backward`` the gradient of the loss is part of the program: the loss is the returned scalar, or the ``loss``
    entry of what is returned. A function that calls ``backward`` itself (a training step) needs no flag. Gradients are
    named ``grad:<parameter>``, and parameters, buffers, arguments and optimizer state that the program overwrites
    ``updated:<name>``. The state of an optimizer is named ``<optimizer>.<parameter>.<what>``.
    ``dynamic`` names sizes that stay symbols. ``groups`` is asked for the process groups after the run. With ``opaque``
    Fourier transforms stay the calls that they are. Raises CaptureError.
    """
    doing = f"tracing {title(target)}" + (f" on rank {rank}" if groups else "")
    mode = _caller()
    with unset_fake_temporarily(), counting_writes(), pause_garbage_collection(), intercepted():
        tracing = partial(
            Tracing,
            target,
            args,
            kwargs or {},
            backward,
            dynamic or {},
            opaque=opaque,
            device=CPU if groups else None,
            mode=mode,
            generators=Generators(seeded=groups is not None and seed_was_set()),
        )
        try:
            try:
                return tracing().run(groups or _no_groups, rank)
            except RuntimeError as error:
                if _NO_GRADIENT not in str(error):
                    raise
                # It differentiates by leaves of its own, such as x.detach().requires_grad_().
                return tracing(differentiates=True).run(groups or _no_groups, rank)
        except RewrightError:
            raise
        except Exception as error:
            texts = " ".join(text for axes in (dynamic or {}).values() for text in axes.values())
            raise capture_error(error, doing, sorted(set(re.findall(r"[A-Za-z_]\w*", texts)))) from None


class Tracing:
    """The state of one trace: what is exchanged, and what is known afterwards."""

    def __init__(
        self,
        target: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        backward: bool,
        dynamic: Dynamic,
        *,
        wrappers: bool = False,
        differentiates: bool = False,
        opaque: bool = False,
        device: torch.device | None = None,
        mode: Callable[[], AbstractContextManager[Any]] = nullcontext,
        generators: Generators | None = None,
    ) -> None:
        self.recorder = SourceRecorder(Tracing._exchange.__code__)
        self.target: Any = getattr(target, "_orig_mod", target)  # what torch.compile wraps
        self.args: Sequence[Any] = args
        self.differentiates = differentiates
        self.kwargs: Mapping[str, Any] = kwargs
        self.backward, self.dynamic, self.opaque = backward, dynamic, opaque
        self.device = device
        """Where every tensor is, for a program of ranks; None for where each of them is."""
        self.mode = mode
        """What the program itself runs in; around it writes are counted, which inference tensors do not do."""
        self.generators = generators or Generators()
        self.arguments = self._bind()
        owner: Any = self.target.module if isinstance(self.target, InterpretedProgram) else self.target
        self.owners = Owners.of(owner, self.arguments, wrappers=wrappers)
        self.parameters, self.buffers = self.owners.parameters(), self.owners.buffers()
        self.canonical, self.canonical_buffer = first_names(self.parameters), first_names(self.buffers)
        self.given = _argument_tensors(self.arguments)
        self.optimizers = Optimizers.of(self.target, self.arguments, self.parameters)
        self.state = self.optimizers.state()
        self.inputs = self._named_inputs()
        self.specs: dict[str, Any] = {name: spec_of(value) for name, value in self.inputs.items()}
        found = {name: mark_of(value) for name, value in self.inputs.items()}
        self.marks = {name: mark for name, mark in found.items() if mark is not None}
        self.results = _Results()
        self.asserted: tuple[str, ...] = ()
        """What the program asserts of numbers that it reads of tensors."""

    def _bind(self) -> dict[str, Any]:
        """Arguments by name; a program that is a graph already is replaced by one that interprets it."""
        graph = as_program(self.target, self.args, self.kwargs)
        if graph is None:
            if not callable(self.target):
                raise CaptureError(f"{self.target!r} is no program; pass a module, a function or an exported program")
            function = self.target.forward if isinstance(self.target, nn.Module) else self.target
            return bind_arguments(function, self.args, self.kwargs)
        program, self.args = graph
        program.listener = self.recorder.follow
        self.target, self.kwargs = program, {}
        return dict(zip(program.names(), self.args, strict=True))

    def _named_inputs(self) -> Tensors:
        found: Tensors = {n: p for n, p in self.parameters.items() if self.canonical[n] == n}
        found |= {n: b for n, b in self.buffers.items() if self.canonical_buffer[n] == n}
        for name, value in self.given.items():
            if name in found:
                raise CaptureError(f"the argument {name!r} has the name of a parameter; rename the argument")
            found[name] = value
        return found | self.state

    def run(self, groups: Groups, rank: int) -> Trace:
        """Trace once."""
        mode = mode_of(local(v) for v in self.inputs.values()) or new_mode(symbolic=bool(self.dynamic))
        symbols = Symbols(mode) if self.dynamic else None
        values = self._fake_inputs(mode, symbols)
        others = OtherGenerators()
        with self._surroundings(), noting() as assumed, self.generators:
            module = self._record(mode, values)
        check_constants(module, self.recorder)
        results = self.results.named | {name: value for name, (value, _) in self.results.untold.items()}
        program = TracedProgram(
            module,
            tuple(self.inputs),
            tuple(self.results.named),
            self.recorder.span,
            groups(),
            rank,
            tuple(self.results.untold),
        )
        specs = {name: spec_of(value) for name, value in results.items()}
        if symbols is not None:
            symbols.check()
        held = {name: digest_of(value) for name, value in self.buffers.items()}
        known = (*assumptions(mode), *assumed, *self.asserted, *others.assumptions())
        again = None if any(self.specs.values()) else self.rerun
        own = {name: value for name, value in self.buffers.items() if _has_values(value)}
        return Trace(program, self.specs, specs, self._notes(), known, held, self.marks, log.entries(), again, own)

    def _with_gradients(self) -> AbstractContextManager[Any]:
        return torch.set_grad_enabled(self.backward or self.differentiates or self._trains())

    def _trains(self) -> bool:
        """Whether a function may call backward itself: then gradients must be recorded although nobody asked."""
        return not isinstance(self.target, nn.Module) and bool(self.parameters or self._differentiable())

    def _differentiable(self) -> list[str]:
        return [name for name, value in self.given.items() if value.requires_grad and value.is_leaf]

    def _fake_inputs(self, mode: FakeTensorMode, symbols: Symbols | None) -> list[torch.Tensor]:
        for name in self.dynamic:
            if name not in self.given:
                raise CaptureError(f"no argument {name!r} to make symbolic; the arguments are {sorted(self.given)}")
        values: list[torch.Tensor] = []
        for name, value in self.inputs.items():
            shape = symbols.shape(name, value, self.dynamic[name]) if symbols and name in self.dynamic else None
            values.append(as_fake(complexes.parts(local(value)), mode, shape, self.device))
        return values

    def _record(self, mode: FakeTensorMode, values: list[torch.Tensor]) -> torch.fx.GraphModule:
        """What the program does with these values in place of its inputs: exchange, call, differentiate."""
        own = complexes.decompositions(opaque=self.opaque)
        table = {**foreach_decompositions(), **library_decompositions(), **own, **TRACED}
        known = None if mode.shape_env else KnownResults(mode)
        if self.opaque:  # who runs it draws as PyTorch does
            recorder = Recorder(table, known, custom=False)
        else:
            recorder = Recorder({**table, **operators.DEFINED}, known, generators=self.generators)
        for value in values:
            recorder.placeholder(value)
        spans = self.recorder.record(recorder, self.owners.named_modules())
        symbolic = nullcontext() if mode.shape_env is None else enable_python_dispatcher()
        with undecided_sizes(), disable_autocast_cache(), symbolic, mode, recorder, spans:
            found = recorder.module(self._exchange(values))
        self.asserted = tuple(recorder.assumed)
        return found

    def _exchange(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        """The results of the program with these values in place of its inputs."""
        pieces = zip(self.inputs, values, strict=True)
        every = {n: from_local(self.specs[n], complexes.outer(v, self.inputs[n])) for n, v in pieces}
        for name, dims in self.dynamic.items():
            derive_symbols(every[name], dims)
        trained = {n: parameter_like(p, every[n]) for n, p in self.parameters.items() if n in every}
        given = {n: stand_in(value, every[n]) for n, value in self.given.items()}
        plain = [n for n in self._differentiable() if not isinstance(given[n], nn.Parameter)]
        given |= {n: stand_in(self.given[n], given[n].detach().requires_grad_()) for n in plain}
        exchanged: Tensors = {**every, **trained, **given}
        held = {n: local(t) for n, t in exchanged.items()}
        before = {n: version(t, held[n]) for n, t in exchanged.items()}
        parameters = {n: trained[first] for n, first in self.canonical.items()}
        buffers = {n: stand_in(self.buffers[first], every[first]) for n, first in self.canonical_buffer.items()}
        remembered: Tensors = {}
        with self.owners.substitute(parameters, buffers), self._optimize(parameters, every, remembered):
            self._execute(given, {**trained, **{n: given[n] for n in self._differentiable()}})
        written = {n: t for n, t in exchanged.items() if version(t, held[n]) != before[n]}
        self.results.named |= {f"updated:{n}": t for n, t in {**written, **remembered}.items()}
        self.results.untold = {f"updated:{n}": (t, held[n]) for n, t in exchanged.items() if n not in written}
        certain = [local(value) for value in self.results.named.values()]
        every_result = [*certain, *(inner for _, inner in self.results.untold.values())]
        return [complexes.inner(value) for value in every_result]

    def rerun(self, values: Mapping[str, torch.Tensor]) -> Tensors:
        """The results of the program by name, run by PyTorch on these inputs, which it may write.

        Those that are no inputs of the program are numbers that it draws.
        """
        self.results = _Results()
        numbers = {name: value for name, value in values.items() if name not in self.inputs}
        draws = Replaying(self.generators, numbers) if numbers else nullcontext()
        with counting_writes(), unset_fake_temporarily(), self._surroundings(), self.generators, draws:
            given = {n: v.clone() if v.is_inference() else v for n, v in values.items()}
            found = self._exchange([given[n].to(self.device or device_of(v)) for n, v in self.inputs.items()])
        return dict(zip((*self.results.named, *self.results.untold), found, strict=True))

    @contextmanager
    def _surroundings(self) -> Generator[None]:
        """What a program is traced and run in."""
        with (
            quiet(),
            compiling(),
            dense_attention(),
            refusing_wrappers(),
            placed_one_by_one(),
            one_stream(self.generators),
            nullcontext() if self.opaque else readable_states(),
            self._with_gradients(),
            AssertingClasses() if self.opaque else nullcontext(),
        ):
            yield

    def _optimize(
        self, parameters: Mapping[str, torch.Tensor], every: Tensors, results: Tensors
    ) -> AbstractContextManager[None]:
        """With optimizers that hold what stands in for parameters and for their state."""
        table = {id(p): parameters[name] for name, p in self.parameters.items()}
        table |= {id(value): every[name] for name, value in self.state.items()}
        return self.optimizers.substitute(table, results)

    def _execute(self, given: Tensors, trained: Tensors) -> None:
        args = [replace(name, value, given) for name, value in self._positional()]
        kwargs = {name: replace(name, value, given) for name, value in self.kwargs.items()}
        log.calls.clear()
        with NotingOverwriting(), self.mode():
            returned: Any = self.target(*args, **kwargs)
            named = dict(result_names(returned))
            gradients = _gradients(trained)
            if self.backward and not gradients:
                named = with_loss(named)
                loss: Any = named["loss"]
                loss.backward()
                gradients = _gradients(trained)
        if not named and not gradients:
            what = "None" if returned is None else f"a value of type {type(returned).__name__}"
            raise CaptureError(
                f"{title(self.target)} returns {what}, in which there is no tensor; return tensors, also in tuples, "
                "lists, dictionaries and dataclasses"
            )
        if gradients:
            self.results.without_gradient = [n for n, p in trained.items() if p.requires_grad and n not in gradients]
        self.results.named = named | {f"grad:{n}": g for n, g in gradients.items()}

    def _positional(self) -> list[tuple[str, Any]]:
        names = [name for name in self.arguments if name not in self.kwargs]
        return list(zip(names, self.args, strict=True))

    def _notes(self) -> tuple[str, ...]:
        missing = self.results.without_gradient
        silent = (f"no gradient reaches {', '.join(missing)}",) if missing else ()
        hooks = [note for _, module in self.owners.named_modules() for note in notes_of(module)]
        return (*silent, *self.optimizers.notes(), *dict.fromkeys(hooks))


def with_loss(named: Mapping[str, torch.Tensor]) -> Tensors:
    """The results with the one to differentiate called ``loss``; raises CaptureError where there is none."""
    found = dict(named)
    if "loss" not in found:
        scalars = [name for name, value in found.items() if value.dim() == 0 and value.is_floating_point()]
        if len(scalars) != 1:
            raise CaptureError(
                f"backward needs one scalar loss, and the program returns {sorted(found)}; return the loss, or a "
                "mapping with a 'loss' entry"
            )
        found = {("loss" if name == scalars[0] else name): value for name, value in found.items()}
    if not found["loss"].requires_grad:
        raise CaptureError("the loss does not depend on any parameter that requires a gradient; check requires_grad")
    return found


def title(target: Any) -> str:
    """What to call a program in a message."""
    return type(target).__name__ if isinstance(target, nn.Module) else getattr(target, "__name__", "the function")


def digest_of(value: torch.Tensor) -> str:
    """What tells the values of a buffer from others, whatever its size and dtype; empty for one without values.

    Of a distributed tensor the local part counts where that is the whole.
    """
    spec = spec_of(value)
    if spec is not None and not all(placement.is_replicate() for placement in spec.placements):
        return ""
    own = local(value)
    if type(own) not in (torch.Tensor, nn.Buffer, nn.Parameter) or own.is_meta or own.layout is not torch.strided:
        return ""
    numbers = complexes.parts(own.detach())
    found = hashlib.sha256(f"{tuple(numbers.shape)}".encode())
    parts: Sequence[torch.Tensor] = cast("Any", numbers.reshape(-1)).split(_DIGESTED_AT_ONCE)
    for part in parts:
        wide: Any = part.double() if part.is_floating_point() else part.long()
        found.update(wide.cpu().numpy().tobytes())
    return found.hexdigest()[:32]


def _has_values(value: torch.Tensor) -> bool:
    return type(value) in (torch.Tensor, nn.Buffer, nn.Parameter) and value.device.type != "meta"


def counting_writes() -> AbstractContextManager[Any]:
    """Outside of inference mode, whose tensors do not count how often they are written."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext()


def _caller() -> Callable[[], AbstractContextManager[Any]]:
    """What enters inference mode again, where it is entered now."""
    return torch.inference_mode if torch.is_inference_mode_enabled() else nullcontext


def _argument_tensors(arguments: Mapping[str, Any]) -> Tensors:
    every = (leaf for name, value in arguments.items() for leaf in leaves(name, value))
    return {path: leaf for path, leaf in every if isinstance(leaf, torch.Tensor)}


def _gradients(trained: Tensors) -> Tensors:
    found: dict[str, Any] = {n: p.grad for n, p in trained.items()}
    return {n: gradient for n, gradient in found.items() if gradient is not None}


def _no_groups() -> dict[str, Communicator]:
    return {}


@contextmanager
def quiet() -> Generator[None]:
    """Without the program's warnings, except that a collective outside of its group is an error.

    PyTorch logs the traceback of a failing meta kernel besides raising its error, which is reported in one line.
    """
    with warnings.catch_warnings(), mock.patch.object(logging.getLogger(FakeTensorMode.__module__), "disabled", True):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="Running .* on global rank")
        yield
