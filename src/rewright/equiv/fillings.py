"""Numbers that masks are filled with before a softmax, where programs fill them with several: each is minus infinity.

One program fills in ``-inf``, the next -1e9, or -1e4, or 0.7 times the most negative number. After the softmax all of
them leave nought, unless a score is as low. A number is taken for a filling where it is low, and all that is made of it
is compared with other scores by a softmax: it is moved, chosen where a mask says so, multiplied by truth values, or
added to scores, the largest element of its row is subtracted from it, and in the end its exponential is taken.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from rewright import ops
from rewright.equiv.bounds import Bound, bounds
from rewright.equiv.spans import is_by_own_row
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator
from rewright.ir.types import DType

HIGHEST = -1e4
"""What is above this may be a score."""
_FARTHER = 100
"""A filling is so many times as far from nought as every number that goes into the scores that it is added to."""
_BOUNDED = (ops.Cosine, ops.Sine, ops.Tanh, ops.Logistic)
_MOVED = (ops.BroadcastInDim, ops.Reshape, ops.Transpose, ops.Slice, ops.Concatenate, ops.Convert)


def fillings(graphs: Sequence[Graph], lowest: Collection[float]) -> tuple[dict[int, float], ...]:
    """By program the constants that masks are filled with, and their values; none where all fill in the same numbers.

    ``lowest`` are numbers that stand for minus infinity in any case, and are left out.
    """
    found = [_fillings(graph) for graph in graphs]
    plain = {frozenset(-math.inf if v in lowest else v for v in values.values()) for values in found if values}
    if len(plain) < 2:
        return tuple({} for _ in graphs)
    kept = {v for values in found for v in values.values() if math.isfinite(v) and v not in lowest}
    return tuple({p: v for p, v in values.items() if v in kept} for values in found)


def filling_assumption(value: float) -> str:
    """What is assumed of a number that stands for minus infinity."""
    return (
        f"{value:g}, which masks are filled with before a softmax, stands for -infinity: no score is as far from nought"
    )


def _fillings(graph: Graph) -> dict[int, float]:
    users, truths = graph.users(), truth_values(graph)
    return {
        position: float(node.op.values[0])
        for position, node in enumerate(graph.nodes)
        if isinstance(node.op, ops.Constant)
        and node.type.dtype.is_float
        and len(node.op.values) == 1
        and node.op.values[0] <= HIGHEST
        and _only_fills(graph, users, truths, position)
    }


def _values(graph: Graph, position: int) -> tuple[float, ...]:
    op = graph.nodes[position].op
    return tuple(map(float, op.values)) if isinstance(op, ops.Constant) else ()


def _only_fills(graph: Graph, users: Sequence[Sequence[int]], truths: Collection[int], constant: int) -> bool:
    """Whether all that is made of a constant ends in a softmax, and something does."""
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
            elif not _keeps(graph, truths, user, position, low):
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
            if node.operands[1] != position or not is_by_own_row(graph, node, "maximum"):
                return False
        elif not isinstance(node.op, (*_MOVED, ops.Maximum)) or not _is_only_subtracted(graph, users, user):
            return False
    return True


def _keeps(graph: Graph, truths: Collection[int], user: int, position: int, low: float) -> bool:
    """Whether a filling is still one behind an operator."""
    node = graph.nodes[user]
    if isinstance(node.op, ops.Select):
        return node.operands[0] != position
    if isinstance(node.op, ops.Multiply):
        return any(operand in truths for operand in node.operands)
    if isinstance(node.op, ops.Add):
        return all(p == position or not _may_cancel(graph, p, low) for p in node.operands)
    if isinstance(node.op, ops.Subtract):  # what remains is still to go into an exponential, as it is
        is_own = is_by_own_row(graph, node, "maximum") or _is_sum_of_exponentials(graph, *node.operands)
        return node.operands[0] == position and is_own
    return isinstance(node.op, (*_MOVED, ops.Minimum)) and node.type.dtype.is_float


def _is_sum_of_exponentials(graph: Graph, position: int, other: int) -> bool:
    """Whether a tensor is the logarithm of a sum of another one's exponentials."""
    for kind in (ops.Log, ops.Reduce, ops.Exponential):
        while isinstance(graph.nodes[other].op, _MOVED):
            other = graph.nodes[other].operands[0]
        op = graph.nodes[other].op
        if not isinstance(op, kind) or (isinstance(op, ops.Reduce) and op.kind != "sum"):
            return False
        other = graph.nodes[other].operands[0]
    one, two = graph.nodes[other], graph.nodes[position]
    return other == position or (one.op, one.operands) == (two.op, two.operands)


def _may_cancel(graph: Graph, position: int, low: float) -> bool:
    """Whether a number near a filling goes into what it is added to, which may bring a masked score back.

    A low number may as well, where its sign may change on the way; behind an exponential, where a softmax of other
    masked scores ends, it is a small one.
    """
    seen, stack, known = {(position, 1)}, [(position, 1)], bounds(graph)
    while stack:
        at, sign = stack.pop()
        node = graph.nodes[at]
        if _reaches(known[at], sign, -low / _FARTHER):
            return True
        if isinstance(node.op, ops.Constant):
            signs = (1, -1) if sign == 0 else (1 if sign == _UPWARDS else sign,)
            if any(math.isfinite(v) and s * v > -low / _FARTHER for v in map(float, node.op.values) for s in signs):
                return True
            continue
        if isinstance(node.op, ops.Log) and sign != _UPWARDS:
            return True  # of an exponential, it may be anything
        if isinstance(node.op, _BOUNDED):
            continue
        reads = node.operands[:1] if isinstance(node.op, ops.Gather) else node.operands
        fresh = [
            (p, _sign_of(node.op, number, sign))
            for number, p in enumerate(reads)
            if graph.nodes[p].type.dtype is not DType.BOOL
        ]
        fresh = [one for one in dict.fromkeys(fresh) if one not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return False


def _reaches(known: Bound | None, sign: int, far: float) -> bool:
    """Whether what is made of numbers alone may be as far above nought, counted with a sign."""
    if known is None or sign == _UPWARDS:
        return False  # of an exponential, its own bounds count, where it has some
    return (sign >= 0 and known[1] > far) or (sign <= 0 and -known[0] > far)


_UPWARDS = 2
"""The sign for what an exponential was taken of on the way: only its large numbers count."""


def _sign_of(op: Operator, operand: int, sign: int) -> int:
    """The sign with which an operand counts: as it is, turned, 0 for either, or ``_UPWARDS``."""
    if sign == _UPWARDS or isinstance(op, ops.Exponential):
        return _UPWARDS
    if isinstance(op, ops.Negate) or (isinstance(op, ops.Subtract) and operand == 1):
        return -sign
    kept = isinstance(op, (*_MOVED, ops.Add, ops.Subtract, ops.Select, ops.Maximum, ops.Minimum, ops.Gather))
    return sign if kept else 0


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


def splat(graph: Graph, position: int) -> float | None:
    """The number that all elements of a node are; None where they are not one."""
    source = number_of(graph, position)
    op = None if source is None else graph.nodes[source].op
    return float(op.values[0]) if isinstance(op, ops.Constant) else None


def number_of(graph: Graph, position: int) -> int | None:
    """The constant of one number that all elements of a node are; None where they are none."""
    node = graph.nodes[position]
    while isinstance(node.op, ops.BroadcastInDim | ops.Reshape | ops.Convert):
        position = node.operands[0]
        node = graph.nodes[position]
    return position if isinstance(node.op, ops.Constant) and len(node.op.values) == 1 else None
