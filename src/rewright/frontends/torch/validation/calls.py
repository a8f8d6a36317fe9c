"""All distinct calls of traces, each checked once: in this process, and by this user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import torch
import torch.fx

from rewright.frontends.aten import collectives, tables
from rewright.frontends.torch.fakes import new_mode
from rewright.frontends.torch.lower.nodes import operator_name
from rewright.frontends.torch.trace import quiet
from rewright.frontends.torch.traced import TracedProgram
from rewright.frontends.torch.validation import eager
from rewright.frontends.torch.validation.checking import NOTHING, NotRun, Wrong, check
from rewright.frontends.torch.validation.cuts import Cut, cut
from rewright.frontends.torch.validation.shrinking import shrink_call
from rewright.frontends.validation.record import Validation
from rewright.frontends.validation.store import Outcome, Store, open_store
from rewright.ir.errors import CaptureError, UnsupportedOperator

_NOT_RUN = {*tables.IGNORED, "rewright_random.drawn.default"}
"""Calls without a value, and random numbers, which are an input."""
_TOO_LARGE = "it fits no smaller sizes, and is large"


class Calls:
    """Checks the calls of traces, and remembers those that were met."""

    def __init__(self, *, guards_queries: bool = False, store: Store | None = None) -> None:
        self._guards = guards_queries
        self._store = store or open_store(f"torch {torch.__version__}")
        self._mode = new_mode()
        self._met: dict[str, None] = {}
        self._checked: dict[str, float] = {}
        self._skipped: dict[tuple[str, str], None] = {}

    def add(self, program: TracedProgram, nodes: Iterable[torch.fx.Node] | None = None) -> None:
        """Check the calls of a trace, or those of some nodes of it.

        Raises CaptureError at the first whose lowering gives something else.
        """
        chosen = program.module.graph.nodes if nodes is None else nodes
        with eager.undisturbed(), torch.no_grad(), quiet():
            for node in _calls(program.module, chosen):
                self._node(node, program)
        self._store.save()

    def record(self) -> Validation:
        """What was checked so far."""
        return Validation(tuple(self._checked), max(self._checked.values(), default=0.0), tuple(self._skipped))

    def _node(self, node: torch.fx.Node, program: TracedProgram) -> None:
        name = operator_name(node)
        try:
            why = _not_checked(node, name)
            if why:
                raise UnsupportedOperator(why)
            call = cut(node)
        except UnsupportedOperator as error:
            self._skipped[name, str(error)] = None
            return
        text = str(call)
        if text in self._met:
            return
        self._met[text] = None
        try:
            self._call(call)
        except NotRun as error:
            if str(error) != NOTHING:
                self._skipped[name, str(error)] = None
        except Wrong as error:
            raise CaptureError(
                f"operator {name} at {program.spans(node)}: the capture is not the program: {error}; report this line, "
                "and capture with validate=False to go on without this check"
            ) from None

    def _call(self, call: Cut) -> None:
        """Check a call at the first smaller sizes that it fits."""
        why = _TOO_LARGE
        for candidate in shrink_call(call):
            signature = str(candidate)
            if signature in self._checked:
                return
            found = self._outcome(candidate, f"{signature} {self._guards}")
            if found.difference is not None:
                self._checked[signature] = found.difference
                if found.why:
                    self._skipped[call.name, found.why] = None
                return
            why = found.why
        raise NotRun(why)

    def _outcome(self, call: Cut, key: str) -> Outcome:
        found = self._store.get(key)
        if found is None:
            try:
                found = check(call, self._mode, guards_queries=self._guards)
            except NotRun as error:
                found = Outcome(None, str(error))
            except Wrong:
                raise
            except Exception as error:  # a check that fails must not keep anybody from capturing
                found = Outcome(None, f"its check fails: {type(error).__name__}: {error}")
            self._store.put(key, found)
        return found


def _calls(module: torch.fx.GraphModule, nodes: Iterable[torch.fx.Node]) -> Iterator[torch.fx.Node]:
    """The calls of operators that mean something, inside of graphs that are arguments too."""
    for node in nodes:
        if node.op == "call_function" and hasattr(node.target, "_schema") and operator_name(node) not in _NOT_RUN:
            yield node
        inner = [a for a in node.args if isinstance(a, torch.fx.Node) and a.op == "get_attr"]
        for attribute in inner if node.op == "call_function" else ():
            found: Any = getattr(module, str(attribute.target), None)
            if isinstance(found, torch.fx.GraphModule):
                yield from _calls(found, found.graph.nodes)


def _not_checked(node: torch.fx.Node, name: str) -> str:
    """Why a call is none that can be run alone; empty where it may be."""
    kind: type = cast("Any", torch)._ops.OpOverload
    if name in collectives.TABLE or name.startswith(("_c10d_functional", "c10d", "_dtensor")):
        return "it exchanges values between ranks"
    if type(node.target) is not kind:
        return "it is no operator of PyTorch"
    return ""
