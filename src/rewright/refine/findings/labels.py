"""Programs that differ only where an integer input holds a value that one of them tests for: a label such as -100."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rewright import ops
from rewright.analysis.moving import LAYING_OUT
from rewright.interp.adversarial import Draws, IntegerRange
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement
from rewright.refine.case import Case, Ran
from rewright.refine.twin.twin import Twin
from rewright.refine.verdict import Where

_LEAST_TRIALS = 4


@dataclass(frozen=True)
class Label:
    """A value of an integer input at which two programs part, and the nodes that tell."""

    text: str
    """That the programs agree but where the input holds the value."""
    how: str
    """Which side leaves these elements out; empty where that is not all that differs."""
    where: Where

    @property
    def message(self) -> str:
        """All of it in one sentence."""
        return f"{self.text}: {self.how}"


def deciding_label(case: Case, ran: Ran) -> Label | None:
    """The value outside of an input's range without which the programs agree on as many draws as before."""
    if ran.twin is None or not ran.is_different:
        return None
    draws, expected = ran.twin.draws, {n: p for n, p in case.expected.items() if n in case.sequential.outputs}
    for name, value in ((n, v) for n, known in draws.integers.items() for v in _outside(known)):
        without = replace(ran.twin, draws=_drawn_without(draws, name, value))
        if _agree(without, expected, max(draws.trials, _LEAST_TRIALS)):
            return _told(case, name, value)
    return None


def _outside(known: IntegerRange) -> list[int]:
    """The values that are drawn although they are no index: those that a program tests for."""
    return [v for v in dict.fromkeys((*known.special, *known.ignored)) if not known.low <= v < known.high]


def _drawn_without(draws: Draws, name: str, value: int) -> Draws:
    known = draws.integers[name]
    special, ignored = (tuple(v for v in values if v != value) for values in (known.special, known.ignored))
    return replace(draws, integers={**draws.integers, name: replace(known, special=special, ignored=ignored)})


def _agree(twin: Twin, expected: Mapping[str, Placement], trials: int) -> bool:
    found = twin.compare(expect=expected, trials=trials, stop_early=True)
    added = [name for name, p in found.placements.items() if p is not None and p.partial and name not in expected]
    return found.agrees is True and not added  # addends that nobody asked for are a bug of their own


def _told(case: Case, name: str, value: int) -> Label | None:
    alone, rank = case.sequential, case.program.graphs[0]
    tests = _test(alone, name, value), _test(rank, name, value)
    reader = _reader(rank, name) if tests[1] is None else tests[1]
    if reader is None:
        return None
    where = Where(_reader(alone, name) if tests[0] is None else tests[0], 0, reader)
    match [test is not None for test in tests]:
        case [True, False]:
            span = alone.nodes[tests[0] or 0].span.forward
            how = f"one device leaves these elements out ({span}), and the ranks do not"
        case [False, True]:
            span = rank.nodes[tests[1] or 0].span.forward
            how = f"the ranks leave these elements out ({span}), and one device does not"
        case _:
            how = ""
    return Label(f"the programs agree but where {name} is {value}", how, where)


def _test(graph: Graph, name: str, value: int) -> int | None:
    """The first comparison of an input, or of what only moves its elements, with a value."""
    held = _moved(graph, name)
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Compare) and any(p in held for p in node.operands):
            others = (graph.nodes[p] for p in node.operands if p not in held)
            if any(_splat(graph, other.op, other.operands) == value for other in others):
                return position
    return None


def _splat(graph: Graph, op: object, operands: tuple[int, ...]) -> object:
    while isinstance(op, ops.BroadcastInDim | ops.Convert):
        node = graph.nodes[operands[0]]
        op, operands = node.op, node.operands
    return ops.splat(op) if isinstance(op, ops.Constant) else None


def _reader(graph: Graph, name: str) -> int | None:
    """The first operator that computes something of an input."""
    held = _moved(graph, name)
    found = (p for p, node in enumerate(graph.nodes) if p not in held and any(o in held for o in node.operands))
    return next(found, None)


def _moved(graph: Graph, name: str) -> set[int]:
    held = {graph.inputs[name]} if name in graph.inputs else set[int]()
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, (*LAYING_OUT, ops.Convert)) and node.operands and node.operands[0] in held:
            held.add(position)
    return held
