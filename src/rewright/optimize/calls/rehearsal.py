"""A run of a program on fake tensors before it is captured: what it returns, what it runs, and what it changes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily

from rewright.frontends.torch.fakes import as_fake, compiling, new_mode
from rewright.frontends.torch.flexible import dense_attention
from rewright.frontends.torch.messages import capture_error
from rewright.frontends.torch.names import replace
from rewright.frontends.torch.run.running import undisturbed
from rewright.frontends.torch.tensors import parameter_like, stand_in
from rewright.frontends.torch.trace import Tracing, quiet, title
from rewright.ir.errors import CaptureError, RewrightError
from rewright.optimize.calls.ran import Ran, recording
from rewright.optimize.calls.reachable import State
from rewright.optimize.calls.results import Results
from rewright.optimize.calls.tensors import state_of

Look = Callable[[Ran, Mapping[int, str], Mapping[str, Any]], State]
"""What a program reaches, of what it ran, the names of tensors by their ``id``, and its arguments by name."""


@dataclass(frozen=True)
class Rehearsed:
    """What running a program showed."""

    ran: Ran
    state: State
    """What it reaches, arguments included."""
    results: Results


class _Rehearsal(Tracing):
    """Runs a program on the stand-ins that a capture gives it, and records no operators."""

    @contextmanager
    def running(self, mode: FakeTensorMode, ran: Ran | None) -> Generator[tuple[Any, dict[str, torch.Tensor], Any]]:
        """Run, and stay as the program leaves things; gives what is returned, the inputs and the arguments."""
        fakes = {name: as_fake(value, mode) for name, value in self.inputs.items()}
        trained = {n: parameter_like(p, fakes[n]) for n, p in self.parameters.items() if n in fakes}
        given = {n: stand_in(v, fakes[n]).requires_grad_(v.requires_grad) for n, v in self.given.items()}
        parameters = {n: trained[first] for n, first in self.canonical.items()}
        buffers = {n: stand_in(self.buffers[first], fakes[first]) for n, first in self.canonical_buffer.items()}
        positional = {name: replace(name, value, given) for name, value in self._positional()}
        kwargs = {name: replace(name, value, given) for name, value in self.kwargs.items()}
        with quiet(), compiling(), dense_attention(), torch.no_grad(), self.owners.substitute(parameters, buffers):
            with mode, nullcontext() if ran is None else recording(ran):
                returned: Any = self.target(*positional.values(), **kwargs)
            yield returned, {**fakes, **trained, **given}, positional | kwargs


def rehearse(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], look: Look) -> Rehearsed:
    """Run a program; raises RewrightError where that cannot be, or where its calls do more than to compute."""
    with unset_fake_temporarily():
        try:
            rehearsal = _Rehearsal(target, args, kwargs, False, {}, wrappers=True)
            return _twice(rehearsal, look)
        except RewrightError:
            raise
        except Exception as error:
            raise capture_error(error, f"running {title(target)}") from None


def _twice(rehearsal: _Rehearsal, look: Look) -> Rehearsed:
    """Run once to see what is run, and once more to see what that changes."""
    ran, mode = Ran(), new_mode()
    with rehearsal.running(new_mode(), ran):
        pass
    if ran.unknown:
        raise CaptureError(f"calls of the program may differ: {ran.unknown}")
    _refuse_states(rehearsal.inputs, ran)
    names = {id(value): name for name, value in rehearsal.inputs.items()}
    state = look(ran, names, rehearsal.arguments)
    if state.unknown:
        raise CaptureError(f"calls of the program may differ: {state.unknown}")
    with rehearsal.running(mode, None) as (returned, inputs, arguments):
        stand_ins = {id(value): names[id(rehearsal.inputs[name])] for name, value in inputs.items()}
        after = look(ran, stand_ins, arguments)
    if changed := state.differs(after):
        raise CaptureError(f"a call changes {changed}, which kernels do not; return it, or keep it in a buffer")
    every = list(inputs.items())
    for held in state.held:
        if held.tensor.is_inference():
            raise CaptureError(
                f"{held.path} was made in inference mode, where nothing counts whether a call writes to it; "
                "make it a buffer or an argument"
            )
        fake = _stand_in(mode, held.tensor)
        if fake is not None and fake._version != held.tensor._version and fake._version:
            raise CaptureError(f"a call writes to {held.path}, which kernels do not; make it a buffer or an argument")
        every += [(held.path, held.tensor), *([(held.path, fake)] if fake is not None else [])]
    return Rehearsed(ran, state, _observed(rehearsal, Results.of(returned, every)))


def _observed(rehearsal: _Rehearsal, results: Results) -> Results:
    """Results as they lie in memory after a run on the tensors themselves, where these lie in different ways.

    Stand-ins of tensors that are not row by row give some results other strides: ``torch.div(x, y,
    rounding_mode="floor")`` of a transposed x, or ``table[rows]`` of transposed rows.
    """
    tensors: list[Any] = list(rehearsal.inputs.values())
    if all(value.layout is torch.strided and value.is_contiguous() for value in tensors) or not results.made:
        return results
    library: Any = torch
    devices = range(torch.cuda.device_count())
    with undisturbed(rehearsal.inputs), library.random.fork_rng(devices=devices), torch.no_grad():
        try:
            returned = rehearsal.target(*rehearsal.args, **rehearsal.kwargs)
        except Exception:  # as on values that it is not defined on
            return results
        return results.lying_as(returned)


def _refuse_states(inputs: Mapping[str, torch.Tensor], ran: Ran) -> None:
    """Raise CaptureError where the code reads of an input what its stand-in, and so the capture, does not have."""
    mode, asked = new_mode(), ran.asked
    for name, value in inputs.items() if asked else ():
        for (what, own), (_, other) in zip(state_of(value, asked), state_of(as_fake(value, mode), asked), strict=True):
            if own != other:
                raise CaptureError(f"the program reads {name}.{what}, which a capture does not have; pass it")


def _stand_in(mode: FakeTensorMode, tensor: torch.Tensor) -> FakeTensor | None:
    """The fake tensor that stood for one that the program holds, if it used it."""
    converter: Any = mode.fake_tensor_converter
    return converter._get_memo(tensor)
