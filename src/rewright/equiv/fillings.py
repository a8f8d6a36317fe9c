"""Numbers that masks are filled with before a softmax, where programs fill them with several: each is minus infinity.

One program fills in ``-inf``, the next -1e9, or -1e4, or 0.7 times the most negative number. After the softmax all of
them leave nought, unless a score is as low. A number is taken for a filling where it is low, and all that is made of it
is compared with other scores by a softmax: it is moved, chosen where a mask says so, multiplied by truth values, or
added to scores, the largest element of its row is subtracted from it, and in the end its exponential is taken.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.analysis.ends import Bound, ends
from rewright.analysis.moving import laid_out, moved
from rewright.analysis.rows import is_by_own_row
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.facts import REAL
from rewright.proof.rewriting.numbers.taken import HIGHEST
from rewright.proof.rewriting.parts import splat

_FARTHER = 100
"""A filling is so many times as far from nought as every number that goes into the scores that it is added to."""
_ENDLESS = (-math.inf, -math.inf)


def fillings(graphs: Sequence[Graph], lowest: Collection[float]) -> tuple[dict[int, float], ...]:
    """By program the constants that masks are filled with, and their values.

    None where all fill in the same numbers in the same ways: a number that is added to a score is not the one that is
    chosen instead of it. ``lowest`` are numbers that stand for minus infinity in any case, and are left out.
    """
    found = [_fillings(graph) for graph in graphs]
    plain = {
        frozenset((-math.inf if v in lowest else v, _is_added(graph, p)) for p, v in values.items())
        for graph, values in zip(graphs, found, strict=True)
        if values
    }
    if len(plain) < 2:
        return tuple({} for _ in graphs)
    kept = {v for values in found for v in values.values() if math.isfinite(v) and v not in lowest}
    return tuple({p: v for p, v in values.items() if v in kept} for values in found)


def _is_added(graph: Graph, constant: int) -> bool:
    """Whether a filling is added to scores, and not chosen instead of them."""
    users, seen, stack = graph.users(), {constant}, [constant]
    while stack:
        position = stack.pop()
        for user in users[position]:
            node = graph.nodes[user]
            if isinstance(node.op, ops.Add):
                return True
            is_kept = isinstance(node.op, ops.Multiply | ops.Extremum) or passes_on(node, position)
            if user not in seen and is_kept:
                seen.add(user)
                stack.append(user)
    return False


def passes_on(node: Node, position: int) -> bool:
    """Whether the elements of an operand may be elements of the result, as they are or in another type."""
    return isinstance(node.op, ops.Convert) or position in moved(node)


@dataclass(frozen=True)
class _Facts:
    """A program, and what is known of its nodes."""

    graph: Graph
    users: Sequence[Sequence[int]]
    truths: Collection[int]
    bounds: Sequence[Bound | None]
    at_nought: Sequence[Bound | None]
    """Bounds where all floats that the program is given are nought."""
    closed: Sequence[bool]
    """Whether no float that the program is given, and no integer that may be any, goes into a node."""


def _fillings(graph: Graph) -> dict[int, float]:
    low = {
        position: float(node.op.values[0])
        for position, node in enumerate(graph.nodes)
        if isinstance(node.op, ops.Constant)
        and node.type.dtype.is_float
        and len(node.op.values) == 1
        and node.op.values[0] <= HIGHEST
    }
    if not low:
        return {}
    known = ends(graph)
    facts = _Facts(graph, graph.users(), truth_values(graph), known, ends(graph, at_zero=True), _closed(graph, known))
    return {position: value for position, value in low.items() if _only_fills(facts, position)}


def _values(graph: Graph, position: int) -> tuple[float, ...]:
    op = graph.nodes[position].op
    return tuple(map(float, op.values)) if isinstance(op, ops.Constant) else ()


def _only_fills(facts: _Facts, constant: int) -> bool:
    """Whether all that is made of a constant ends in a softmax, and something does."""
    graph, users = facts.graph, facts.users
    outputs = set(graph.outputs.values())
    seen, stack, ends = {constant}, [constant], False
    (low,) = _values(graph, constant)
    while stack:
        position = stack.pop()
        if position in outputs:
            return False
        for user in users[position]:
            if _ends(graph, users, user, position):
                ends = True
            elif not _keeps(facts, user, position, low):
                return False
            elif user not in seen:
                seen.add(user)
                stack.append(user)
    return ends


def _ends(graph: Graph, users: Sequence[Sequence[int]], user: int, position: int) -> bool:
    node = graph.nodes[user]
    if isinstance(node.op, ops.Reduce):
        return node.op.kind == "maximum" and _is_only_subtracted(graph, users, user)
    return isinstance(node.op, ops.Exponential)


def _is_only_subtracted(graph: Graph, users: Sequence[Sequence[int]], position: int) -> bool:
    """Whether the largest elements of rows serve for nothing but to be subtracted from these rows."""
    if position in graph.outputs.values():
        return False
    for user in users[position]:
        node = graph.nodes[user]
        if isinstance(node.op, ops.Subtract):
            is_fine = node.operands[1] == position and is_by_own_row(graph, node, "maximum")
        else:
            is_kept = isinstance(node.op, ops.Maximum) or passes_on(node, position)
            is_fine = is_kept and _is_only_subtracted(graph, users, user)
        if not is_fine:
            return False
    return True


def _keeps(facts: _Facts, user: int, position: int, low: float) -> bool:
    """Whether a filling is still one behind an operator."""
    graph = facts.graph
    node = graph.nodes[user]
    if isinstance(node.op, ops.Multiply):
        return any(operand in facts.truths for operand in node.operands)
    if isinstance(node.op, ops.Add):
        return all(p == position or not _may_cancel(facts, p, low) for p in node.operands)
    if isinstance(node.op, ops.Subtract):  # what remains is still to go into an exponential, as it is
        is_own = is_by_own_row(graph, node, "maximum") or _is_sum_of_exponentials(graph, *node.operands)
        return node.operands[0] == position and is_own
    return (passes_on(node, position) or isinstance(node.op, ops.Minimum)) and node.type.dtype.is_float


def _is_sum_of_exponentials(graph: Graph, position: int, other: int) -> bool:
    """Whether a tensor is the logarithm of a sum of another one's exponentials."""
    logarithm = graph.nodes[laid_out(graph, other)]
    if not isinstance(logarithm.op, ops.Log):
        return False
    total = graph.nodes[laid_out(graph, logarithm.operands[0])]
    if not isinstance(total.op, ops.Reduce) or total.op.kind != "sum":
        return False
    power = graph.nodes[laid_out(graph, total.operands[0])]
    if not isinstance(power.op, ops.Exponential):
        return False
    one, two = graph.nodes[power.operands[0]], graph.nodes[position]
    return power.operands[0] == position or (one.op, one.operands) == (two.op, two.operands)


def _may_cancel(facts: _Facts, position: int, low: float) -> bool:
    """Whether a number near a filling goes into what it is added to, which may bring a masked score back.

    A low number may as well, where its sign may change on the way; behind an exponential, where a softmax of other
    masked scores ends, it is a small one. What is made of numbers, places and truth values alone is no score: where
    nothing is known of how large it is, it may be as large as that; and so is what is as large without any score.
    """
    graph, far = facts.graph, -low / _FARTHER
    seen, stack = {(position, 1)}, [(position, 1)]
    alone = facts.at_nought[position]
    if alone is not None and _reaches(alone, 1, far):
        return True
    while stack:
        at, sign = stack.pop()
        node = graph.nodes[at]
        bound = facts.bounds[at]
        if bound is not None:
            if bound != _ENDLESS and _reaches(bound, sign, far):
                return True
            continue
        if facts.closed[at] or (isinstance(node.op, ops.Log) and sign != _UPWARDS):
            return True  # the logarithm of an exponential may be anything
        places = {k for k, _ in node.op.indexed(len(node.operands))} if isinstance(node.op, ops.TensorOperator) else ()
        fresh = [
            (p, _sign_of(node, number, sign))
            for number, p in enumerate(node.operands)
            if number not in places and graph.nodes[p].type.dtype is not DType.BOOL
        ]
        fresh = [one for one in dict.fromkeys(fresh) if one not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return False


def _closed(graph: Graph, known: Sequence[Bound | None]) -> list[bool]:
    found: list[bool] = []
    for node, bound in zip(graph.nodes, known, strict=True):
        is_given = isinstance(node.op, ops.Input)
        found.append(bound is not None or (not is_given and all(found[p] for p in node.operands)))
    return found


def _reaches(known: Bound, sign: int, far: float) -> bool:
    """Whether what has these bounds may be as far above nought, counted with a sign."""
    return (sign >= 0 and known[1] > far) or (sign <= 0 and -known[0] > far)


_UPWARDS = 2
"""The sign for what an exponential was taken of on the way: only its large numbers count."""


def _sign_of(node: Node, operand: int, sign: int) -> int:
    """The sign with which an operand counts: as it is, turned, 0 for either, or ``_UPWARDS``."""
    op = node.op
    if sign == _UPWARDS or isinstance(op, ops.Exponential):
        return _UPWARDS
    if isinstance(op, ops.Negate) or (isinstance(op, ops.Subtract) and operand == 1):
        return -sign
    grows = isinstance(op, ops.Elementwise) and operand in op.grows_with([REAL] * len(node.operands))
    is_kept = grows or isinstance(op, ops.Extremum | ops.Clamp) or passes_on(node, node.operands[operand])
    return sign if is_kept else 0


def truth_values(graph: Graph) -> dict[int, tuple[int, bool]]:
    """Float nodes that are one where a condition holds, or where it does not, and zero elsewhere."""
    found: dict[int, tuple[int, bool]] = {}
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Convert) and graph.nodes[node.operands[0]].type.dtype.value == "i1":
            found[position] = node.operands[0], True
        elif isinstance(node.op, ops.Convert) and node.operands[0] in found:
            found[position] = found[node.operands[0]]
        elif isinstance(node.op, ops.Subtract) and node.operands[1] in found and splat(graph, node.operands[0]) == 1:
            condition, holds = found[node.operands[1]]
            found[position] = condition, not holds
    return found
