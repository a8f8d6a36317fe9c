"""Kernels for a graph that Dynamo guards: a call of it looks at nothing but what its tensors are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from rewright.frontends.torch.capture import capture
from rewright.optimize.api import optimize
from rewright.optimize.backend.others import said
from rewright.optimize.backend.plain import Plain
from rewright.optimize.backend.returned import Returned, returned_by
from rewright.optimize.calls.dispatch import CAPTURING
from rewright.optimize.calls.results import UPDATED
from rewright.optimize.floor.measuring import measure
from rewright.optimize.floor.peers import Example
from rewright.optimize.floor.timings import OURS, PEERS, Peer
from rewright.optimize.making import FLOOR_SECONDS
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
    outputs: tuple[str, ...]
    returned: Returned
    runner: Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]

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
        if not all(type(t) in _KINDS and not t.is_neg() and not t.is_conj() for t in tensors):
            return False
        if any(tensors[number].stride() != strides for number, strides in self.returned.arguments.items()):
            return False
        return self.domain is None or not self.domain.violation(given)


def kernels_for(plain: Plain, arguments: Sequence[Any], kind: str, options: Mapping[str, Any]) -> tuple[Call, str]:
    """What runs for a graph, called as the graph that it was made of, and why there are no kernels, or nothing.

    With ``floor``, as :func:`rewright.optimize.api.optimize` has it, that is what is fastest of the kernels, eager
    PyTorch and Inductor.
    """
    examples = plain.examples(arguments)
    given = dict(zip(plain.names, examples, strict=True))
    returned = returned_by(plain, examples)
    if not returned.computed:
        return plain.call(plain.module.forward), ""
    with CAPTURING:
        graph = capture(returned.module, examples, guards_queries=True, opaque=True)
    if any(name.startswith(UPDATED) for name in graph.outputs):
        return plain.module.forward, "it writes to its arguments"
    target = targets.choose(options.get("target"), examples)
    peers = _peers(options, target)
    chosen: dict[str, Any] = {**options, "target": target, "floor": False}
    if peers:
        chosen["remember"] = False  # what is remembered cannot be timed part by part
    found = optimize(graph, **chosen)
    if found.runner is None:
        return plain.module.forward, found.reason
    _LOG.info("%s: %d kernels, %s%s", kind, found.counts[0], found.status, found.left_out)
    ours = partial(Kernels, plain.module, found.domain, plain.names, tuple(graph.outputs), returned)
    if not peers or not isinstance(found.runner, Runner):
        return plain.call(ours(found.runner)), ""
    example = Example(graph, plain.module, tuple(examples), {}, given, targets.device_of(target, examples))
    floor = measure(found.runner, example, lambda runner: ours(runner)(*examples), peers, FLOOR_SECONDS)
    _LOG.info("%s: %s", kind, floor.whole)
    if floor.runs == OURS:
        return plain.call(ours(floor.runner or found.runner)), ""
    return plain.call(plain.module.forward if floor.compiled is None else floor.compiled), ""


def _peers(options: Mapping[str, Any], target: targets.Target) -> Sequence[Peer]:
    """What kernels are timed against."""
    wanted = options.get("floor", True)
    return () if not targets.is_timed(target) else PEERS if wanted is True else tuple(wanted or ())
