"""Numbers that stand for minus infinity where masks are filled with them, and whether they do what it does.

One program fills in ``-inf``, the next -1e9, or -1e4, or 0.7 times the most negative number. After the softmax all of
them leave zero, unless a score is as low. A number is taken for a filling where it is low, and all that is made of it
is compared with other scores by a softmax: it is moved, chosen where a mask says so, multiplied by truth values, or
added to scores, the largest element of its row is subtracted from it, and in the end its exponential is taken. The most
negative number of a type may be used in other ways too (``lowest``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.analysis.ends import Bound
from rewright.analysis.rows import is_by_own_row
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.facts import REAL
from rewright.proof.rewriting.lowest import FARTHER, is_softmax, meeting
from rewright.proof.rewriting.numbers.taken import Taken
from rewright.proof.rewriting.program import Program, passes_on
from rewright.proof.rewriting.splices import Stage

_MINUS_INFINITY = (-math.inf, -math.inf)


def why_not(graph: Graph, stage: Stage, taken: Mapping[str, tuple[Taken, ...]]) -> str | None:
    """Why a number that a stage takes for minus infinity is none in a program; None where each one is.

    ``taken`` is what the lemmas take for granted, by their keys.
    """
    program = Program(graph)
    lowest = [s.position for s in stage.splices if any(one.kind == "mask" for one in taken.get(s.lemma, ()))]
    if lowest and (met := meeting(program, lowest)) is not None:
        return f"what is made of the most negative number at node {met} may be another number"
    for splice in stage.splices:
        for one in taken.get(splice.lemma, ()):
            if one.kind == "filling" and not only_fills(program, splice.position, *one.numbers):
                return f"what is made of {one.numbers[0]:g} at node {splice.position} is not left out by a softmax"
    return None


def only_fills(program: Program, filling: int, low: float) -> bool:
    """Whether all that is made of a node that holds a low number ends in a softmax, and something does."""
    graph, users = program.graph, program.users
    outputs = set(graph.outputs.values())
    seen, stack, ends = {filling}, [filling], False
    while stack:
        position = stack.pop()
        if position in outputs:
            return False
        for user in users[position]:
            if _ends(graph, users, user, position):
                ends = True
            elif not _keeps(program, user, position, low):
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
            is_kept = isinstance(node.op, ops.Extremum) or passes_on(node, position)
            is_fine = is_kept and _is_only_subtracted(graph, users, user)
        if not is_fine:
            return False
    return True


def _keeps(program: Program, user: int, position: int, low: float) -> bool:
    """Whether a filling is still one behind an operator."""
    graph = program.graph
    node = graph.nodes[user]
    if isinstance(node.op, ops.Multiply):
        return any(operand in program.truths for operand in node.operands)
    if isinstance(node.op, ops.Add):
        return all(p == position or not _may_cancel(program, p, low) for p in node.operands)
    if isinstance(node.op, ops.Subtract):  # what remains is still to go into an exponential, as it is
        return node.operands[0] == position and is_softmax(graph, node)
    return (passes_on(node, position) or isinstance(node.op, ops.Minimum)) and node.type.dtype.is_float


def _may_cancel(program: Program, position: int, low: float) -> bool:
    """Whether a number near a filling goes into what it is added to, which may bring a masked score back.

    A low number may as well, where its sign may change on the way; behind an exponential, where a softmax of other
    masked scores ends, it is a small one. What is made of numbers, places and truth values alone is no score: where
    nothing is known of how large it is, it may be as large as that; and so is what is as large without any score.
    """
    graph, far = program.graph, -low / FARTHER
    seen, stack = {(position, 1)}, [(position, 1)]
    alone = program.at_zero[position]
    if alone is not None and _reaches(alone, 1, far):
        return True
    while stack:
        at, sign = stack.pop()
        node = graph.nodes[at]
        bound = program.bounds[at]
        if bound is not None:
            if bound != _MINUS_INFINITY and _reaches(bound, sign, far):
                return True
            continue
        if program.closed[at] or (isinstance(node.op, ops.Log) and sign != _UPWARDS):
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


def _reaches(known: Bound, sign: int, far: float) -> bool:
    """Whether what has these bounds may be as far above zero, counted with a sign."""
    return (sign >= 0 and known[1] > far) or (sign <= 0 and -known[0] > far)


_UPWARDS = 2
"""The sign for what an exponential was taken of on the way: only its large numbers count."""


def _sign_of(node: Node, operand: int, sign: int) -> int:
    """The sign with which an operand counts: as it is, turned, 0 for either, or ``_UPWARDS``."""
    op = node.op
    if sign == _UPWARDS or isinstance(op, ops.Exponential):
        return _UPWARDS
    if isinstance(op, ops.Elementwise) and operand in op.falls_with:
        return -sign
    grows = isinstance(op, ops.Elementwise) and operand in op.grows_with([REAL] * len(node.operands))
    return sign if grows or isinstance(op, ops.Limiting) or passes_on(node, node.operands[operand]) else 0
