"""Kernels for a graph that Dynamo guards: a call of it looks at nothing but what its tensors are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from rewright.frontends.torch.names import ASSERTED
from rewright.ir.graph import Graph
from rewright.optimize.api import Optimized, Request, request
from rewright.optimize.backend.captured import Captured
from rewright.optimize.backend.others import by_inductor, said
from rewright.optimize.backend.returned import Returned
from rewright.optimize.floor.peers import Example
from rewright.optimize.floor.timings import FLOOR_SECONDS, OURS
from rewright.optimize.running import targets
from rewright.optimize.running.execution import Runner
from rewright.optimize.scalars.domains import Domain
from rewright.optimize.sizes.inputs import SizedDomain
from rewright.optimize.sizes.runner import FlexibleRunner

_LOG = logging.getLogger("rewright.optimize")
_KINDS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
Call = Callable[..., Sequence[Any]]
Run = Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]


@dataclass(frozen=True)
class Kernels:
    """A graph by its kernels, called with its tensors in order."""

    module: torch.fx.GraphModule
    """The graph itself, for tensors that kernels do not take."""
    domain: Domain | SizedDomain | None
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    returned: Returned
    runner: Run

    def __call__(self, *tensors: torch.Tensor) -> Sequence[Any]:
        """The results, each where the graph has it: in memory of an argument, or in its own with the same strides."""
        given = dict(zip(self.names, tensors, strict=True))
        if self._takes(tensors, given):
            try:
                found = self.runner(given)
                return self.returned.make([found[name] for name in self.outputs], tensors)
            except Exception as error:  # nothing has been written yet
                _LOG.warning("kernels failed, and eager PyTorch ran: %s", said(error))
        return self.module.forward(*tensors)

    def _takes(self, tensors: Sequence[torch.Tensor], given: Mapping[str, torch.Tensor]) -> bool:
        """Whether tensors can be read from memory, lie where they should, and are such that the graph is defined."""
        for tensor in tensors:
            if type(tensor) not in _KINDS or tensor.is_neg() or tensor.is_conj():
                return False
        for number, strides in self.returned.arguments.items():
            if tensors[number].stride() != strides:
                return False
        return self.domain is None or not self.domain.violation(given)


@dataclass(frozen=True)
class Fastest:
    """What runs for a graph, at its own sizes or at all; ``why`` there are no kernels, or nothing."""

    runs: str
    found: Optimized | None = None
    runner: Run | None = None
    compiled: Call | None = None
    """The graph by Inductor, at the sizes that it was timed at."""
    why: str = ""
    lasting: bool = False
    """Whether a later process would find out the same: there is nothing to fuse, or no proof."""

    def call(self, captured: Captured) -> Call:
        """What is called with the arguments of the graph that was captured."""
        if self.runs == OURS:
            return captured.plain.call(self.kernels(captured))
        if self.runs == "eager":
            return captured.call(captured.program.forward)
        return captured.call(self.compiled or by_inductor(captured.program, captured.arguments))

    def kernels(self, captured: Captured) -> Kernels:
        """The kernels, called with the tensors of the graph that was captured."""
        assert captured.graph is not None and self.found is not None and self.runner is not None
        plain, outputs = captured.plain, tuple(n for n in captured.graph.outputs if not n.startswith(ASSERTED))
        return Kernels(plain.module, self.found.domain, plain.names, outputs, captured.returned, self.runner)


def find_fastest(captured: Captured, graph: Graph | None, kind: str, options: Mapping[str, Any]) -> Fastest:
    """What is fastest for a graph: kernels, or with ``floor``, as ``optimize`` has it, eager PyTorch or Inductor.

    ``graph`` is what was captured, perhaps with symbols for its sizes; None where nothing is computed.
    """
    if graph is None:
        return Fastest("eager")
    asked = request(graph, kwargs=captured.given, **options)
    found = replace(asked, times=partial(_time, asked, captured)).optimized()
    if found.runner is None:
        lasting = found.plan is not None and (not found.plan.kernels or found.trust.evidence != "proved")
        return Fastest("eager", why=found.reason, lasting=lasting)
    _LOG.info("%s: %d kernels, %s%s", kind, found.counts[0], found.status, found.left_out)
    if found.timings:
        _LOG.info("%s: %s", kind, found.timings[0])
    return Fastest(found.runs, found, found.runner, found.compiled)


def _time(asked: Request, captured: Captured, found: Optimized, graph: Graph) -> None:
    """Find out what is fastest: the kernels and what returns their results, or the graph as Dynamo has it."""
    from rewright.optimize.floor.measuring import measure  # with what nobody has looked at yet

    runner = found.runner
    if not isinstance(runner, (Runner, FlexibleRunner)):
        return
    device = targets.device_of(asked.target, captured.examples)
    example = Example(graph, captured.program, captured.arguments, {}, captured.given, device)

    def call(chosen: Run) -> Sequence[Any]:
        return Fastest(OURS, found, chosen).kernels(captured)(*captured.examples)

    found.floor = floor = measure(runner, example, call, asked.peers, FLOOR_SECONDS)
    found.runner, found.runs, found.compiled = floor.runner, floor.runs, floor.compiled
