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
from rewright.ir.errors import RewrightError
from rewright.optimize.api import FLOOR_SECONDS, Optimized, optimize
from rewright.optimize.backend.others import said
from rewright.optimize.backend.plain import Plain, without_results
from rewright.optimize.calls.dispatch import CAPTURING
from rewright.optimize.calls.results import Place, Results
from rewright.optimize.floor.measuring import Floor, measure
from rewright.optimize.floor.peers import PEERS, Example, Peer
from rewright.optimize.running import targets
from rewright.optimize.running.execution import Runner

_LOG = logging.getLogger("rewright.optimize")
_KINDS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
Call = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Kernels:
    """A graph by its kernels, called with its tensors in order."""

    module: torch.fx.GraphModule
    """The graph itself, for tensors that kernels do not take."""
    found: Optimized
    names: tuple[str, ...]
    results: Results
    homes: Mapping[str, tuple[int, ...]]
    """The strides of the arguments whose memory is returned."""
    runner: Runner

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
        return self.found.domain is None or not self.found.domain.violation(given)


def kernels_for(plain: Plain, arguments: Sequence[Any], kind: str, options: Mapping[str, Any]) -> tuple[Call, str]:
    """What runs for a graph, called as the graph that it was made of, and why there are no kernels, or nothing.

    With ``floor``, as :func:`rewright.optimize.api.optimize` has it, that is what is fastest of the kernels, eager
    PyTorch and Inductor.
    """
    examples = plain.examples(arguments)
    given = dict(zip(plain.names, examples, strict=True))
    target = targets.choose(options.get("target"), examples)
    results = _results(plain, examples)
    placed = {n: leaf for n, leaf in enumerate(results.leaves) if isinstance(leaf, Place) and isinstance(leaf.home, str)}
    if not any(isinstance(leaf, Place) and not isinstance(leaf.home, str) for leaf in results.leaves):
        return plain.call(plain.module.forward), ""  # it computes nothing
    with CAPTURING:
        graph = capture(without_results(plain.module, [*placed]), examples, guards_queries=True, opaque=True)
    found = optimize(graph, **{**options, "target": target, "floor": False})
    if found.runner is None:
        return plain.module.forward, found.reason
    homes = {str(leaf.home): given[str(leaf.home)].stride() for leaf in placed.values()}
    ours = partial(Kernels, plain.module, found, plain.names, results, homes)
    _LOG.info("%s: %d kernels, %s%s", kind, len(found.plan.kernels) if found.plan else 0, found.status, found.left_out)
    example = Example(graph, plain.module, tuple(examples), {}, given)
    floor = _floor(example, found.runner, ours, target, options.get("floor", True))
    if floor is None:
        return plain.call(ours(found.runner)), ""
    _LOG.info("%s: %s", kind, floor.whole)
    if floor.compiled is not None:
        return plain.call(floor.compiled), ""
    return plain.call(plain.module.forward if floor.runs == "eager" else ours(floor.runner or found.runner)), ""


def _floor(
    example: Example,
    runner: Runner,
    ours: Callable[[Runner], Call],
    target: targets.Target,
    wanted: bool | Sequence[Peer],
) -> Floor | None:
    """What is fastest; None where nothing is to be timed, or cannot be."""
    peers = PEERS if wanted is True else tuple(wanted or ())
    if not peers or not targets.is_timed(target):
        return None
    try:
        return measure(runner, example, lambda chosen: ours(chosen)(*example.args), peers, FLOOR_SECONDS)
    except RewrightError as error:
        _LOG.info("nothing was timed: %s", error)
        return None


def _results(plain: Plain, examples: Sequence[torch.Tensor]) -> Results:
    """Where what a graph returns lies, by a run on fake tensors."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        given = [mode.from_tensor(example) for example in examples]
        returned = cast("Any", torch.fx.Interpreter(plain.module).run(*given))
        return Results.of(returned, list(zip(plain.names, given, strict=True)))
