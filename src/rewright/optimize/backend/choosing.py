"""Ways to take a step, timed once a gradient was asked for; the fastest one stays."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from rewright.optimize.backend.known import Known
from rewright.optimize.backend.others import said
from rewright.optimize.floor.measuring import agree, timed

_random: Any = torch.random
_LOG = logging.getLogger("rewright.optimize")
Call = Callable[..., Any]
AGAIN, SAVED, EAGER = "computed again", "saved", "eager"
MOST_BYTES = 1 << 30
"""What is larger is not saved to find out whether that is faster."""
WORTH = 0.95
"""Another way than to compute again has to take less than this much of the time: it costs memory."""


class Choice:
    """A program whose wide tensors are computed again for its gradients, or saved, or which eager PyTorch runs.

    The first step computes them again. Only who asks for a gradient pays for more: with the next call each way is timed
    on copies of its arguments.
    """

    def __init__(self, calls: Mapping[str, Call], size: int, stepped: threading.Event, known: Known) -> None:
        self.calls, self.known = calls, known
        self.size = size
        """Bytes of what is saved or computed again."""
        self.stepped = stepped
        """Set when a gradient was computed."""
        self.chosen: Call | None = None
        self.lock = threading.RLock()

    def __call__(self, *arguments: Any) -> Any:
        """The results of the program."""
        if self.chosen is None and self.stepped.is_set() and _asks_for_gradients(arguments):
            with self.lock:
                self.chosen = self.chosen or self._fastest(arguments)
        return (self.chosen or self.calls[AGAIN])(*arguments)

    def _fastest(self, arguments: Sequence[Any]) -> Call:
        """The way that takes a step on such arguments in the least time, now or in an earlier process."""
        if (name := self.known.recall()) in self.calls:
            _LOG.info("gradients: %s, as in an earlier process", name)
            return self.calls[name]
        if not all(type(a) in _KINDS for a in arguments if isinstance(a, torch.Tensor)):
            return self.calls[AGAIN]
        notes: list[str] = []
        gpus = sorted({a.device.index for a in arguments if isinstance(a, torch.Tensor) and a.is_cuda})
        try:
            with _random.fork_rng(devices=gpus):
                tangents: list[torch.Tensor] = []
                steps = {name: partial(_step, call, arguments, tangents) for name, call in self.calls.items()}
                if EAGER in steps and not agree(steps[AGAIN](), steps[EAGER]()):
                    del steps[EAGER]  # it draws other random numbers
                found = timed(steps, notes)
        except Exception as error:  # what a step raises, the call itself raises
            _LOG.warning("what gradients need was not timed: %s", said(error))
            return self.calls[AGAIN]
        for note in notes:
            _LOG.warning("what gradients need, %s", note)
        kept = min(found, key=lambda name: found[name] / (1.0 if name == AGAIN else WORTH), default=AGAIN)
        times = ", ".join(f"{name} {1e3 * seconds:.3f} ms" for name, seconds in found.items())
        what = f"{self.size / 1e6:.1f} MB of wide tensors are {kept}" if kept != EAGER else "eager PyTorch runs"
        _LOG.info("gradients: %s (%s)", what, times)
        self.known.keep(kept)
        return self.calls[kept]


_KINDS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def _asks_for_gradients(arguments: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments)


def _step(call: Call, arguments: Sequence[Any], tangents: list[torch.Tensor]) -> Sequence[Any]:
    """One forward and one backward pass of copies of the arguments: the results, and the gradients.

    The first step draws the tangents, which differ from place to place: with ones, gradients of weights that add up to
    one are zero.
    """
    _random.manual_seed(0)
    leaves = [a.detach().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in arguments]
    wanted = [a for a in leaves if isinstance(a, torch.Tensor) and a.requires_grad]
    results = call(*(a.clone() if isinstance(a, torch.Tensor) else a for a in leaves))  # programs may write to them
    found = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
    tangents.extend(() if tangents else map(torch.randn_like, found))
    gradients = torch.autograd.grad(found, wanted, tangents, allow_unused=True)
    return [t.detach() for t in (*results, *gradients) if isinstance(t, torch.Tensor)]
