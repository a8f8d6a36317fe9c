"""Where every node of a trace comes from: the user's line and module path, for backward nodes too.

The tracer creates nodes deep inside PyTorch. The user's line is the innermost frame that is not PyTorch's. Backward
nodes run under the autograd engine, where no such frame exists; autograd gives every forward operation a sequence
number and its backward node carries the same one, so a backward node gets the place of its forward operation. What
belongs to no forward operation (gradients that are accumulated, the hooks that reduce them) gets the line that calls
``backward``.
"""

from __future__ import annotations

import inspect
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any

import torch
import torch.fx

from rewright.frontends.torch.messages import is_library
from rewright.ir.graph import NO_SPAN
from rewright.ir.types import SourceSpan

_ENGINE = "_engine_run_backward"


class SourceRecorder:
    """Notes a source span for every node that a tracer creates while :meth:`record` is active."""

    def __init__(self, boundary: CodeType) -> None:
        """``boundary`` is the code of the traced program: frames outside of it are the caller's, not the model's."""
        self._boundary = boundary
        self._spans: dict[torch.fx.Node, SourceSpan] = {}
        self._numbers: list[int] = []
        self._places: list[SourceSpan] = []  # of the first node that was made when these numbers were the last
        self._modules: list[str] = []
        self._library: dict[CodeType, bool] = {}
        self._followed: SourceSpan | None = None

    def span(self, node: torch.fx.Node) -> SourceSpan:
        """The place that a node comes from; empty where none is known."""
        return self._spans.get(node, NO_SPAN)

    def follow(self, span: SourceSpan | None) -> None:
        """Give the next forward nodes this span instead of looking at the stack: the program is a graph itself."""
        self._followed = span

    @property
    def module_path(self) -> str:
        """The path of the module whose forward is running, or an empty string."""
        return self._modules[-1] if self._modules else ""

    @contextmanager
    def record(self, tracer: Any, modules: Iterable[tuple[str, torch.nn.Module]]) -> Generator[None]:
        """Note spans of the nodes that ``tracer`` creates, and the module that is running among ``modules``."""
        create: Callable[..., torch.fx.Node] = tracer.create_node

        def create_node(*args: Any, **kwargs: Any) -> torch.fx.Node:
            node = create(*args, **kwargs)
            if node.op in ("call_function", "get_attr"):
                self._note(node)
            return node

        handles = [handle for path, module in modules for handle in self._follow(path, module)]
        tracer.create_node = create_node
        try:
            yield
        finally:
            del tracer.create_node
            for handle in handles:
                handle.remove()

    def _follow(self, path: str, module: torch.nn.Module) -> list[Any]:
        def enter(*_: object) -> None:
            self._modules.append(path)

        def leave(*_: object) -> None:
            self._modules.pop()

        before = module.register_forward_pre_hook(enter, prepend=True)
        return [before, module.register_forward_hook(leave, always_call=True)]

    def _note(self, node: torch.fx.Node) -> None:
        running, frame = _current_autograd_node(), inspect.currentframe()
        if running is not None:
            span = replace(self._locate(frame, self._forward(running) or self._caller(frame)), backward=True)
        else:
            span = self._followed or self._locate(frame, SourceSpan(module_path=self.module_path))
            caller = NO_SPAN if span.file else self._caller(frame)
            if caller.file:  # what the engine does last, such as reading buckets of gradients
                span = replace(caller, backward=True)
            else:
                self._number(_next_sequence_number() - 1, span)
        self._spans[node] = span

    def _number(self, last: int, span: SourceSpan) -> None:
        """Later nodes with the same number are not differentiated."""
        if not self._numbers or self._numbers[-1] < last:
            self._numbers.append(last)
            self._places.append(span)

    def _forward(self, running: Any) -> SourceSpan | None:
        """The place of the operation that a backward node is of.

        An operation takes its number before it makes nodes, and some take several: the place is that of the first node
        made at its number or at a later one.
        """
        index = bisect_left(self._numbers, running._sequence_nr())
        return self._places[index] if index < len(self._places) else None

    def _caller(self, frame: FrameType | None) -> SourceSpan:
        """The line that called the autograd engine."""
        while frame is not None and frame.f_code.co_name != _ENGINE:
            frame = frame.f_back
        return NO_SPAN if frame is None else self._locate(frame.f_back, NO_SPAN)

    def _locate(self, frame: FrameType | None, otherwise: SourceSpan) -> SourceSpan:
        """The innermost user frame inside the program, else ``otherwise``, whose module path is kept."""
        while frame is not None:
            code = frame.f_code
            known = self._library.get(code)
            if known is None:
                known = self._library[code] = is_library(code)
            if not known:
                return SourceSpan(code.co_filename, frame.f_lineno, code.co_name, otherwise.module_path)
            if code is self._boundary or code.co_name == _ENGINE:
                break
            frame = frame.f_back
        return otherwise


_torch: Any = torch


def _current_autograd_node() -> Any:
    return _torch._C._current_autograd_node()


def _next_sequence_number() -> int:
    return _torch.autograd._get_sequence_nr()
