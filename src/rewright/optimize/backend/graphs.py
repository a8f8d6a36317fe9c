"""One graph of AOTAutograd's: for each tuple of sizes that it is called with, what runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]

from rewright.optimize.backend.known import Known
from rewright.optimize.backend.others import by_inductor, by_inductor_for_all_sizes, said
from rewright.optimize.backend.plain import Sizes, is_flexible, sizes_of
from rewright.optimize.floor.timings import OURS, PEERS

if TYPE_CHECKING:
    from rewright.optimize.backend.captured import Captured
    from rewright.optimize.backend.fitted import Fitted

_LOG = logging.getLogger("rewright.optimize")
MOST_SIZES = 8
"""For so many tuples of sizes a graph gets kernels of their own, where none take these sizes."""
MOST_WIDTHS = 4
"""For so many widths of rows it gets kernels for all other sizes."""
MOST_FITTED = 64
"""For so many tuples of sizes what calls the kernels for all of them is kept."""
_WHY = "why there are no kernels"
Call = Callable[..., Sequence[Any]]


class GraphCalls:
    """A graph without side effects, called with its arguments; kernels are made at the first call of each size.

    Dynamo's guards say for which arguments the graph is, so that only sizes that the graph keeps open are looked at.
    """

    def __init__(self, module: torch.fx.GraphModule, kind: str, options: Mapping[str, Any]) -> None:
        self.module, self.kind, self.options = module, kind, options
        self.flexible = is_flexible(module)
        self.by_sizes: dict[Sizes, Call] = {}
        self.fitted: list[Fitted] = []
        """Kernels for all sizes, where these are open, or for all with the same width of rows."""
        self.by_fitted: dict[Sizes, Call] = {}
        """What calls them."""
        self.is_fitting = self.flexible
        """Whether kernels for all sizes are looked for."""
        self.rest: Call | None = None
        """What runs for more sizes."""
        self.fastest = OURS
        """Else what was faster than kernels at some size: it is taken to be at all others."""
        self.lock = threading.RLock()

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """The results, with the strides that the graph says."""
        if not torch.is_grad_enabled() and not _is_watched():
            return self._run(arguments)
        with torch.no_grad(), _unwatched():
            return self._run(arguments)

    def _run(self, arguments: Sequence[Any]) -> Sequence[Any]:
        sizes = sizes_of(arguments) if self.flexible else ()
        call = self.by_fitted.get(sizes) or self.by_sizes.get(sizes)
        if call is None:
            with self.lock:
                call = self.by_fitted.get(sizes) or self.by_sizes.get(sizes) or self._prepare(sizes, arguments)
        try:
            return call(*arguments)
        except Exception as error:  # the graph's own, which eager PyTorch then raises, or of what was compiled
            _LOG.warning("%s left to eager PyTorch: %s", self.kind, said(error))
            return self.module.forward(*arguments)

    def _prepare(self, sizes: Sizes, arguments: Sequence[Any]) -> Call:
        given = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
        if (fitted := self._by_fitted(sizes, given)) is not None:
            return fitted
        if len(self.by_sizes) < MOST_SIZES and self.fastest == OURS:
            self.by_sizes[sizes] = call = self._by_kernels(given)
            return call
        if self.rest is None:
            self.rest = self._made_for_rest()
        return self.rest

    def _made_for_rest(self) -> Call:
        """What runs for all sizes that nothing was made for."""
        if self.fastest == OURS:
            self._left(f"kernels were made for {MOST_SIZES} tuples of sizes, and no more are")
        elif self.fastest == "eager":
            _LOG.info("%s has no kernels for more sizes: eager PyTorch was faster", self.kind)
            return self.module.forward
        else:
            _LOG.info("%s has no kernels for more sizes: Inductor was faster", self.kind)
        return by_inductor_for_all_sizes(self.module)

    def _by_fitted(self, sizes: Sizes, arguments: Sequence[Any]) -> Call | None:
        """What is fastest for all sizes; None where the graph is another program at these, or nothing is for all."""
        try:
            calls = (self._fastest(fitted, None, arguments) for fitted in self.fitted)
            call = next((call for call in calls if call is not None), None)
            if call is None and self.is_fitting:
                from rewright.optimize.backend.fitted import Fitted  # with the first graph that is called
                from rewright.optimize.backend.kernels import find_fastest

                self.is_fitting = False
                find = partial(find_fastest, kind=self.kind, options=self.options)
                what = f"symbols {self.kind} {len(self.fitted)}"
                known = Known.of(self.module, what, remember=self.options.get("remember", True))
                fitted, captured = Fitted.of(self.module, arguments, find, known)
                self.fitted.append(fitted)
                self.is_fitting = len(self.fitted) < MOST_WIDTHS
                call = self._fastest(fitted, captured)
        except Exception as error:
            _LOG.info("%s has kernels for each size by itself: %s", self.kind, said(error))
            return None
        if call is not None:
            if len(self.by_fitted) >= MOST_FITTED:
                del self.by_fitted[next(iter(self.by_fitted))]
            self.by_fitted[sizes] = call
        return call

    def _fastest(self, fitted: Fitted, captured: Captured | None, arguments: Sequence[Any] = ()) -> Call | None:
        if fitted.fastest.runs == OURS:
            return fitted.call(arguments) if captured is None else fitted.fastest.call(captured)
        if fitted.fastest.runs == "eager":
            return self.module.forward
        self.rest = self.rest or by_inductor_for_all_sizes(self.module)
        return self.rest

    def _by_kernels(self, arguments: Sequence[Any]) -> Call:
        """What is fastest, or where there are no kernels, what Inductor makes of the graph.

        Where PyTorch was faster in an earlier process, or kernels were not proved, the graph is not captured again. One
        that draws numbers is: what draws them is not left to Inductor, whose numbers are others.
        """
        from rewright.optimize.backend.captured import Captured  # with the first graph that is called
        from rewright.optimize.backend.kernels import find_fastest

        known = self._known(arguments)
        runs = known.recall()
        if isinstance(runs, dict):
            self._left(f"{cast('dict[str, Any]', runs).get(_WHY)} (so it was in an earlier process)")
            return by_inductor(self.module, arguments)
        if runs in PEERS:
            _LOG.info("%s: %s runs, as in an earlier process", self.kind, runs)
            self.fastest = runs
            return self.module.forward if runs == "eager" else by_inductor(self.module, arguments)
        try:
            captured = Captured.of(self.module, arguments)
            fastest = find_fastest(captured, captured.graph, self.kind, self.options)
            if not (why := fastest.why):
                self.fastest = self.fastest if fastest.runs == OURS else fastest.runs
                if fastest.runs != OURS and not captured.plain.draws:
                    known.keep(fastest.runs)
                return fastest.call(captured)
            if fastest.lasting and not captured.plain.draws:
                known.keep({_WHY: why})
        except Exception as error:
            why = said(error)
        self._left(why)
        return by_inductor(self.module, arguments)

    def _known(self, arguments: Sequence[Any]) -> Known:
        """What was faster than kernels in an earlier process."""
        remember = self.options.get("remember", True) and not self.flexible
        options = sorted((name, repr(value)) for name, value in self.options.items())
        return Known.of(self.module, f"fastest {self.kind} {sizes_of(arguments)} {options}", remember=remember)

    def _left(self, why: str) -> None:
        _LOG.warning("%s left to Inductor: %s", self.kind, why)


def _unwatched() -> AbstractContextManager[object]:
    """Without what sees each operator: compiled graphs have none, and AOTAutograd looks at its first call so."""
    disabled: Any = _disable_current_modes
    return disabled() if _is_watched() else nullcontext()


def _is_watched() -> bool:
    return torch._C._len_torch_dispatch_stack() > 0  # pyright: ignore[reportPrivateUsage]
