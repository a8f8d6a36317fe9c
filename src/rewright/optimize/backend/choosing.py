"""Two ways to save what gradients need, timed at the first call that asks for them; the faster one stays."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from rewright.optimize.backend.others import said
from rewright.optimize.floor.measuring import timed

_random: Any = torch.random
_LOG = logging.getLogger("rewright.optimize")
Call = Callable[..., Any]
AGAIN, SAVED = "computed again", "saved"
MOST_BYTES = 1 << 30
"""What is larger is not saved to find out whether that is faster."""
WORTH = 0.95
"""Saving what may be computed again has to take less than this much of the time: it costs memory."""


class Choice:
    """A program whose wide tensors are computed again for its gradients, or saved, whichever is faster."""

    def __init__(self, again: Call, saved: Call, size: int) -> None:
        self.calls: dict[str, Call] = {AGAIN: again, SAVED: saved}
        self.size = size
        """Bytes of what is saved or computed again."""
        self.chosen: Call | None = None
        self.lock = threading.RLock()

    def __call__(self, *arguments: Any) -> Any:
        """The results of the program."""
        if self.chosen is None and _asks_for_gradients(arguments):
            with self.lock:
                self.chosen = self.chosen or self._faster(arguments)
        return (self.chosen or self.calls[AGAIN])(*arguments)

    def _faster(self, arguments: Sequence[Any]) -> Call:
        """The way that takes a step on such arguments in less time."""
        if not all(type(a) in _KINDS for a in arguments if isinstance(a, torch.Tensor)):
            return self.calls[AGAIN]
        notes: list[str] = []
        steps = {name: partial(_step, call, arguments) for name, call in self.calls.items()}
        gpus = sorted({a.device.index for a in arguments if isinstance(a, torch.Tensor) and a.is_cuda})
        try:
            with _random.fork_rng(devices=gpus):
                found = timed(steps, notes)
        except Exception as error:  # what a step raises, the call itself raises
            _LOG.warning("what gradients need was not timed: %s", said(error))
            return self.calls[AGAIN]
        for note in notes:
            _LOG.warning("what gradients need, %s", note)
        is_saved = SAVED in found and (AGAIN not in found or found[SAVED] < WORTH * found[AGAIN])
        kept = SAVED if is_saved else AGAIN
        times = ", ".join(f"{name} {1e3 * seconds:.3f} ms" for name, seconds in found.items())
        _LOG.info("gradients: %.1f MB of wide tensors are %s (%s)", self.size / 1e6, kept, times)
        return self.calls[kept]


_KINDS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def _asks_for_gradients(arguments: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments)


def _step(call: Call, arguments: Sequence[Any]) -> Sequence[Any]:
    """One forward and one backward pass of copies of the arguments."""
    given = [_copied(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    wanted = [a for a in given if isinstance(a, torch.Tensor) and a.requires_grad]
    found = [t for t in call(*given) if isinstance(t, torch.Tensor) and t.requires_grad]
    weights = [torch.randn_like(t) for t in found]  # with ones, gradients of weights that add up to one are zero
    return torch.autograd.grad(found, wanted, weights, allow_unused=True)


def _copied(value: torch.Tensor) -> torch.Tensor:
    return value.detach().clone().requires_grad_(value.requires_grad)
