"""A graph that Dynamo guards, with symbols for its sizes: one plan for all of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.backend.captured import Captured
from rewright.optimize.backend.known import Known
from rewright.optimize.backend.symbols import OpenArguments
from rewright.optimize.sizes.alike import NotAlike, choose_samples
from rewright.optimize.sizes.fitting import fit_graph, is_at
from rewright.optimize.sizes.inputs import numbers_of

if TYPE_CHECKING:
    from rewright.optimize.backend.kernels import Call, Fastest

    Find = Callable[[Captured, Graph], Fastest]

_FAKE = logging.getLogger("torch._subclasses.fake_tensor")


@dataclass(frozen=True)
class Fitted:
    """A graph with symbols for its sizes, and what is fastest for it."""

    module: torch.fx.GraphModule
    graph: Graph
    fastest: Fastest

    @staticmethod
    def of(module: torch.fx.GraphModule, arguments: Sequence[Any], find: Find, known: Known) -> tuple[Fitted, Captured]:
        """Kernels for all sizes, or for all but the width of rows, and the graph at those of the arguments.

        ``find`` says what is fastest for a graph. Raises RewrightError where the graph is not one program at these.
        """
        inputs = OpenArguments.of(module, arguments)
        if why := known.recall_refusal(inputs.hints):
            raise NotAlike(why)
        if (graph := known.recall_graph()) is not None:
            captured = Captured.of(module, arguments)
            if _is_captured(graph, captured) and not (fastest := find(captured, graph)).why:
                return Fitted(module, graph, fastest), captured
        try:
            found, captured = Fitted._new(module, inputs, find)
        except NotAlike as error:  # which no more time would change
            known.keep_refusal(inputs.hints, str(error))
            raise
        known.keep_graph(found.graph)
        return found, captured

    @staticmethod
    def _new(module: torch.fx.GraphModule, inputs: OpenArguments, find: Find) -> tuple[Fitted, Captured]:
        errors: list[RewrightError] = []
        for way in _ways(inputs):
            try:
                return _fitted(module, way, find)
            except RewrightError as error:
                errors.append(error)
        raise next((error for error in errors if not isinstance(error, NotAlike)), errors[0])

    def call(self, arguments: Sequence[Any]) -> Call | None:
        """What runs for arguments of some sizes; None where the graph is another program at these."""
        captured = Captured.of(self.module, arguments)
        return self.fastest.call(captured) if _is_captured(self.graph, captured) else None


def _ways(inputs: OpenArguments) -> Iterator[OpenArguments]:
    """The arguments, and with numbers for the sizes of last axes: a kernel may need that of a head to be known."""
    yield inputs
    fewer = inputs.without(inputs.last())
    if 0 < len(fewer.hints) < len(inputs.hints):
        yield fewer


def _fitted(module: torch.fx.GraphModule, inputs: OpenArguments, find: Find) -> tuple[Fitted, Captured]:
    samples = choose_samples(inputs.hints, inputs.taken)
    with _unheard():
        graph = fit_graph(samples, lambda sizes: _graph_of(Captured.of(module, inputs.at(sizes))))
    captured = Captured.of(module, inputs.arguments)
    if not _is_captured(graph, captured):
        raise NotAlike("at the sizes that it is called with it is another program")
    fastest = find(captured, graph)
    if fastest.why:
        raise RewrightError(fastest.why)
    return Fitted(module, graph, fastest), captured


@contextmanager
def _unheard() -> Generator[None]:
    """Without what PyTorch says of a graph that is none at other sizes: it is asked, and the answer may be no."""
    thread = threading.get_ident()

    def is_heard(record: logging.LogRecord) -> bool:
        return record.thread != thread

    _FAKE.addFilter(is_heard)
    try:
        yield
    finally:
        _FAKE.removeFilter(is_heard)


def _graph_of(captured: Captured) -> Graph:
    if captured.graph is None:
        raise NotAlike("it computes nothing")
    return captured.graph


def _is_captured(graph: Graph, captured: Captured) -> bool:
    """Whether a graph with symbols is what was captured, at its sizes."""
    if captured.graph is None or list(captured.graph.inputs) != list(graph.inputs):
        return False
    try:
        sizes = numbers_of(graph, captured.given)
    except RewrightError:
        return False
    return is_at(graph, sizes, captured.graph)


__all__ = ["Fitted"]
