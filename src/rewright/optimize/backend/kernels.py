"""Kernels for a graph that Dynamo guards: a call of it looks at nothing but what its tensors are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from rewright.frontends.torch.capture import capture
from rewright.optimize.api import FLOOR_SECONDS, optimize
from rewright.optimize.backend.others import said
from rewright.optimize.backend.plain import Plain, without_results
from rewright.optimize.calls.dispatch import CAPTURING
from rewright.optimize.calls.results import Place, Results
from rewright.optimize.floor.measuring import OURS, measure
from rewright.optimize.floor.peers import PEERS, Example, Peer
from rewright.optimize.running import targets
from rewright.optimize.running.execution import Runner
from rewright.optimize.scalars.domains import Domain

_LOG = logging.getLogger("rewright.optimize")
_KINDS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
Call = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Kernels:
    """A graph by its kernels, called with its tensors in order."""

    module: torch.fx.GraphModule
    """The graph itself, for tensors that kernels do not take."""
    domain: Domain | None
    names: tuple[str, ...]
    results: Results
    homes: Mapping[str, tuple[int, ...]]
    """The strides of the arguments whose memory is returned."""
    runner: Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]

    def __call__(self, *tensors: torch.Tensor) -> Sequence[Any]:
        """The results, each where the graph has it: in memory of an argument, or in its own with the same strides."""
        given = dict(zip(self.names, tensors, strict=True))
        if self._takes(given):
            try:
                return self.results.make(self.runner(given), given, ())
            except Exception as error:  # nothing has been written yet
                _LOG.warning("kernels failed, and eager PyTorch ran: %s", said(error))
        return self.module.forward(*tensors)

    def _takes(self, given: Mapping[str, torch.Tensor]) -> bool:
        """Whether tensors can be read from memory, lie where they should, and are such that the graph is defined."""
        if not all(type(t) in _KINDS and not t.is_neg() and not t.is_conj() for t in given.values()):
            return False
        if any(given[name].stride() != strides for name, strides in self.homes.items()):
            return False
        return self.domain is None or not self.domain.violation(given)


def kernels_for(plain: Plain, arguments: Sequence[Any], kind: str, options: Mapping[str, Any]) -> tuple[Call, str]:
    """What runs for a graph, called as the graph that it was made of, and why there are no kernels, or nothing.

    With ``floor``, as :func:`rewright.optimize.api.optimize` has it, that is what is fastest of the kernels, eager
    PyTorch and Inductor.
    """
    examples = plain.examples(arguments)
    given = dict(zip(plain.names, examples, strict=True))
    target = targets.choose(options.get("target"), examples)
    results = _results(plain, examples)
    placed = {
        n: leaf for n, leaf in enumerate(results.leaves) if isinstance(leaf, Place) and isinstance(leaf.home, str)
    }
    if not any(isinstance(leaf, Place) and not isinstance(leaf.home, str) for leaf in results.leaves):
        return plain.call(plain.module.forward), ""  # it computes nothing
    with CAPTURING:
        graph = capture(without_results(plain.module, [*placed]), examples, guards_queries=True, opaque=True)
    peers = _peers(options, target)
    kept = {"remember": False} if peers else {}  # what is remembered cannot be timed part by part
    found = optimize(graph, **{**options, **kept, "target": target, "floor": False})
    if found.runner is None:
        return plain.module.forward, found.reason
    homes = {str(leaf.home): given[str(leaf.home)].stride() for leaf in placed.values()}
    ours = partial(Kernels, plain.module, found.domain, plain.names, results, homes)
    _LOG.info("%s: %d kernels, %s%s", kind, found.counts[0], found.status, found.left_out)
    runner = found.runner
    if peers and isinstance(runner, Runner):
        example = Example(graph, plain.module, tuple(examples), {}, given)
        floor = measure(runner, example, lambda chosen: ours(chosen)(*examples), peers, FLOOR_SECONDS)
        _LOG.info("%s: %s", kind, floor.whole)
        if floor.runs != OURS:
            return plain.call(floor.compiled or plain.module.forward), ""
        runner = floor.runner or runner
    return plain.call(ours(runner)), ""


def _peers(options: Mapping[str, Any], target: targets.Target) -> Sequence[Peer]:
    """What kernels are timed against."""
    wanted = options.get("floor", True)
    return () if not targets.is_timed(target) else PEERS if wanted is True else tuple(wanted or ())


def _results(plain: Plain, examples: Sequence[torch.Tensor]) -> Results:
    """Where what a graph returns lies, by a run on fake tensors."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        given = [mode.from_tensor(example) for example in examples]
        returned = cast("Any", torch.fx.Interpreter(plain.module).run(*given))
        return Results.of(returned, list(zip(plain.names, given, strict=True)))
