"""One program, run once on real tensors, as the flat ATen graph of what it did."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from rewright.frontends.torch import complexes
from rewright.frontends.torch.decompositions import library_decompositions
from rewright.frontends.torch.drawing import operators
from rewright.frontends.torch.drawing.generators import Generators, seed_was_set
from rewright.frontends.torch.drawing.states import OtherGenerators
from rewright.frontends.torch.flexible import noting
from rewright.frontends.torch.foreach import foreach_decompositions
from rewright.frontends.torch.messages import capture_error
from rewright.frontends.torch.run.memory import Memory
from rewright.frontends.torch.run.recorder import RunRecorder
from rewright.frontends.torch.run.routing import fix_reads
from rewright.frontends.torch.run.watching import recording
from rewright.frontends.torch.tensors import from_local, local, spec_of, version
from rewright.frontends.torch.trace import Groups, Trace, Tracing, digest_of, title
from rewright.frontends.torch.traced import TracedProgram
from rewright.frontends.torch.waiting import log
from rewright.ir.errors import CaptureError, RewrightError

Tensors = dict[str, torch.Tensor]


def run(
    target: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
    groups: Groups | None = None,
    rank: int = 0,
    memory: Memory | None = None,
) -> Trace:
    """Run a module or function once on the tensors given, and record what it does.

    As :func:`rewright.frontends.torch.trace.trace`, with real tensors instead of fake ones: branches on values, split
    sizes and constants made of them are those of this run, and the trace's assumptions say which values were looked
    at. ``memory`` knows what depends on inputs. Tensors are left as they were found. Raises CaptureError.
    """
    doing = f"running {title(target)}" + (f" on rank {rank}" if groups else "")
    try:
        generators = Generators(seeded=groups is not None and seed_was_set(), moves=False)
        running = Running(target, args, kwargs or {}, backward, {}, wrappers=True, generators=generators)
        return running.run_real(groups or dict, rank, memory or Memory())
    except RewrightError:
        raise
    except Exception as error:
        raise capture_error(error, doing) from None


class Running(Tracing):
    """The state of one run; nothing is exchanged, because the program's own tensors are the inputs."""

    def run_real(self, groups: Groups, rank: int, memory: Memory) -> Trace:
        """Run once."""
        self._check_values()
        own = complexes.decompositions()
        table = {**foreach_decompositions(), **library_decompositions(), **own, **operators.DEFINED}
        recorder = RunRecorder(memory, table, self.generators)
        others = OtherGenerators()
        differentiates = self.backward or self._trains()
        with self.generators, undisturbed(self.inputs), noting() as masks, torch.set_grad_enabled(differentiates):
            for value in self.inputs.values():
                recorder.placeholder(complexes.parts(local(value)))
            self._follow(recorder)
            module = recorder.module([complexes.inner(local(value)) for value in self.results.named.values()])
            specs = {name: spec_of(value) for name, value in self.results.named.items()}
        inputs, assumed = fix_reads(module, recorder.reads, tuple(self.inputs), self.recorder.span)
        program = TracedProgram(module, inputs, tuple(self.results.named), self.recorder.span, groups(), rank, ran=True)
        known = {name: spec for name, spec in self.specs.items() if name in inputs}
        marks = {name: mark for name, mark in self.marks.items() if name in inputs}
        buffers = {name: digest_of(value) for name, value in self.buffers.items() if name in inputs}
        taken = (*assumed, *masks, *others.assumptions())
        return Trace(program, known, specs, self._notes(), taken, buffers, marks, log.entries())

    def _follow(self, recorder: RunRecorder) -> None:
        """Run the program under the recorder and collect its results."""
        trained: Tensors = {n: p for n, p in self.parameters.items() if self.canonical[n] == n}
        trained |= {n: self.given[n] for n in self._differentiable()}
        held = {n: local(t) for n, t in self.inputs.items()}
        before = {n: version(t, held[n]) for n, t in self.inputs.items()}
        pairs = {n: complexes.outer(complexes.parts(local(t)), t) for n, t in self.inputs.items() if t.is_complex()}
        parts = {n: from_local(self.specs[n], t) for n, t in pairs.items()}
        with (
            self.recorder.record(recorder, self.owners.named_modules()),
            self._exchanged(parts),
            recording(recorder),
        ):
            self._execute({**self.given, **{n: t for n, t in parts.items() if n in self.given}}, trained)
        written = {n: t for n, t in self.inputs.items() if version(t, held[n]) != before[n]}
        self.results.named |= {f"updated:{n}": t for n, t in written.items()}

    def _exchanged(self, parts: Tensors) -> AbstractContextManager[None]:
        """With these in the place of the buffers of their names."""
        buffers = {n: parts[first] for n, first in self.canonical_buffer.items() if first in parts}
        return self.owners.substitute({}, buffers) if buffers else nullcontext()

    def _check_values(self) -> None:
        for name, value in self.inputs.items():
            inner = local(value)
            if isinstance(inner, FakeTensor) or inner.is_meta:
                raise CaptureError(f"{name!r} has no values, and the program runs for real; build it on the CPU, tiny")
        first: dict[int, str] = {}
        for name, value in self.given.items():
            other = first.setdefault(id(value), name)
            if other != name:
                raise CaptureError(f"{other!r} and {name!r} are one tensor, and a run cannot tell them; pass a copy")


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether all elements are equal, or no numbers both."""
    return bool(((one == other) | ((one != one) & (other != other))).all())


@contextmanager
def undisturbed(inputs: Tensors) -> Generator[None]:
    """Without gradients at first; afterwards values and gradients are what they were."""
    values = {name: local(value).detach().clone() for name, value in inputs.items()}
    gradients = {name: value.grad for name, value in inputs.items() if value.is_leaf}
    for name in gradients:
        inputs[name].grad = None
    try:
        yield
    finally:
        with torch.no_grad():
            for name, value in inputs.items():
                if not _is_same(local(value), values[name]):
                    local(value).detach().copy_(values[name])
        for name, gradient in gradients.items():
            inputs[name].grad = gradient
