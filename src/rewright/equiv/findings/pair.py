"""The finding of a refuted pair: where the programs part, what differs there, and what makes them equal again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewright.blame.diagnosis import Diagnosis, diagnose, is_turned
from rewright.blame.exchanges import Exchange, Parting, Search, apply_exchanges
from rewright.blame.layouts import Numbers
from rewright.blame.wording import describe_node
from rewright.equiv.inputs.weights import MAP_SPAN
from rewright.ir.graph import NO_SPAN, Graph, Node
from rewright.ir.operator import call_operator
from rewright.ir.types import SourceSpan
from rewright.refine.verdict import Counterexample, Finding


def explain_difference(
    left: Graph,
    right: Graph,
    numbers: Numbers,
    example: Counterexample | None,
    unread: Sequence[str],
    proves: Callable[[Graph], bool],
    deadline: float | None,
) -> Finding | None:
    """The first place where the programs part; None where no output differs on the numbers.

    ``proves`` says whether a right program is proved equal to the left one: only an edit that makes the programs
    equal is told.
    """
    given = {position for position, node in enumerate(right.nodes) if node.span == MAP_SPAN}
    parting = Search(left, right, numbers, given).run(deadline)
    if parting is None:
        return None
    if not parting.exchanges:
        again = Search(left, right, numbers, given, loosely=True).run(deadline)
        parting = again if again is not None and again.exchanges else parting
    mine = left.nodes[parting.left] if parting.left is not None else None
    theirs = right.nodes[parting.right]
    told = _diagnosis(left, right, parting, unread)
    suggestion = _suggestion(left, right, parting, proves)
    where = f"{_place(mine)} against {_place(theirs)}" if mine is not None else _place(theirs)
    values = f" ({parting.values[0]:.6g} left, {parting.values[1]:.6g} right)" if parting.values else ""
    return Finding(
        told.kind,
        f"{told.text}: {where}{values}",
        _span(mine),
        _span(theirs),
        "" if mine is None or mine.op.name == theirs.op.name else call_operator(mine.op),
        "" if mine is not None and mine.op.name == theirs.op.name else call_operator(theirs.op),
        suggestion,
        example,
    )


def _diagnosis(left: Graph, right: Graph, parting: Parting, unread: Sequence[str]) -> Diagnosis:
    """The first of the exchanges that says something."""
    found = [diagnose(left, right, exchange, unread) for exchange in parting.exchanges]
    telling = [told for told in found if told.kind != "other_operator"]
    if telling:
        return telling[0]
    if found:
        return found[0]
    if parting.left is not None and is_turned(left, parting.left) and is_turned(right, parting.right):
        return Diagnosis("rotary", "the rotary embedding is another one from here on")
    return Diagnosis("other_operator", "the programs compute something else from here on")


def _suggestion(left: Graph, right: Graph, parting: Parting, proves: Callable[[Graph], bool]) -> str | None:
    """What makes the right program equal to the left one, said only where that is proved or runs right."""
    if not parting.is_mended:
        return None
    repaired = apply_exchanges(right, parting.exchanges)
    if repaired is None:
        return None
    lines = list(dict.fromkeys(_line(left, right, exchange) for exchange in parting.exchanges))
    shown = "; ".join(lines[:3]) + (f"; and {len(lines) - 3} more places" if len(lines) > 3 else "")
    known = "with that the programs are proved equal" if proves(repaired) else "with that the values agree"
    return f"{shown} ({known})"


def _line(left: Graph, right: Graph, exchange: Exchange) -> str:
    mine, theirs = left.nodes[exchange.left], right.nodes[exchange.right]
    return f"compute the {describe_node(theirs)} as the {describe_node(mine)}"


def _place(node: Node) -> str:
    module = f" in {node.span.module_path}" if node.span.module_path else ""
    return f"{describe_node(node)}{module}"


def _span(node: Node | None) -> SourceSpan | None:
    return None if node is None or node.span == NO_SPAN else node.span
