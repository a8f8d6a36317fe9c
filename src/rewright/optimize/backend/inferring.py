"""A program without gradients, as it was compiled or as it is; the faster one stays."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from rewright.optimize.backend.known import Known
from rewright.optimize.backend.others import said
from rewright.optimize.backend.plain import Sizes, sizes_of
from rewright.optimize.floor.measuring import NEAR, agree, timed

_random: Any = torch.random
_LOG = logging.getLogger("rewright.optimize")
Call = Callable[..., Any]
COMPILED, EAGER = "compiled", "eager"
MOST = 3
"""For so many tuples of sizes both are timed; what was faster at the last one is taken at all others."""
MOST_KEPT = 64
"""For so many it is kept over processes what was faster."""


class Inference:
    """A program as it was compiled, which PyTorch's own operators may be faster than: that splits them into others.

    The first call of each tuple of sizes runs what was compiled. With the second one both are timed, on the same
    arguments: nothing is timed that writes to them, or does more than compute its results.
    """

    def __init__(self, compiled: Call, eager: Call, known: Known, *, is_flexible: bool) -> None:
        self.compiled, self.known = compiled, known
        self.calls = {COMPILED: compiled, EAGER: eager}
        self.is_flexible = is_flexible
        """Whether Dynamo keeps a size of the program open."""
        self.chosen: dict[Sizes, Call] = {}
        self.seen: set[Sizes] = set()
        self.last = compiled
        self.lock = threading.RLock()

    def __call__(self, *arguments: Any) -> Any:
        """The results of the program."""
        sizes = sizes_of(arguments) if self.is_flexible else ()
        call = self.chosen.get(sizes) or (self.last if len(self.chosen) >= MOST else None)
        if call is not None:
            return call(*arguments)
        with self.lock:
            if sizes not in self.seen:
                return self._first(sizes, arguments)
            self.chosen[sizes] = self.last = call = self.calls[self._faster(sizes, arguments)]
        return call(*arguments)

    def _first(self, sizes: Sizes, arguments: Sequence[Any]) -> Any:
        before = _versions(arguments)
        found = self.compiled(*arguments)
        if before != _versions(arguments):  # which AOTAutograd would have said
            self.chosen[sizes] = self.compiled
        elif (name := self._known().get(repr(sizes))) is not None:
            _LOG.info("inference: the %s program runs, as in an earlier process", name)
            self.chosen[sizes] = self.last = self.calls[name]
        else:
            self.seen.add(sizes)
        return found

    def _known(self) -> dict[str, str]:
        """What was faster in an earlier process, by sizes."""
        found: object = self.known.recall()
        if not isinstance(found, dict):
            return {}
        return {s: name for s, name in cast("dict[str, str]", found).items() if name in self.calls}

    def _faster(self, sizes: Sizes, arguments: Sequence[Any]) -> str:
        """The name of what runs such arguments in less time."""
        notes: list[str] = []
        gpus = sorted({a.device.index for a in arguments if isinstance(a, torch.Tensor) and a.is_cuda})
        try:
            with _random.fork_rng(devices=gpus):
                if not agree(*(call(*arguments) for call in self.calls.values())):  # it draws random numbers
                    return COMPILED
                found = timed({name: lambda call=call: call(*arguments) for name, call in self.calls.items()}, notes)
        except Exception as error:  # what a call raises, the next one raises
            notes.append(said(error))
            found = dict[str, float]()
        for note in notes:
            _LOG.warning("eager PyTorch was not timed: %s", note)
        kept = min(found, key=lambda name: found[name] / (1.0 if name == COMPILED else NEAR), default=COMPILED)
        times = ", ".join(f"{name} {1e3 * seconds:.3f} ms" for name, seconds in found.items())
        _LOG.info("inference: the %s program runs (%s)", kept, times)
        self.known.keep(dict([*self._known().items(), (repr(sizes), kept)][-MOST_KEPT:]))
        return kept


def _versions(arguments: Sequence[Any]) -> list[int]:
    """How often each tensor was written to, where something counts that."""
    tensors = [a for a in arguments if isinstance(a, torch.Tensor) and not a.is_inference()]
    return [a._version for a in tensors]  # pyright: ignore[reportPrivateUsage]


def has_own_tensors(module: torch.fx.GraphModule) -> bool:
    """Whether a graph of Dynamo's reads tensors that are not its arguments, and that it may write to."""
    names = [str(node.target) for node in module.graph.nodes if node.op == "get_attr"]
    return any(isinstance(_attribute(module, name), torch.Tensor) for name in names)


def _attribute(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module
