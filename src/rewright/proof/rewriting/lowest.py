"""The most negative number of a type, which stands for minus infinity unless a usual number is made of it.

``-3.4e38 + x`` is minus infinity for every score x, and ``-3.4e38 / 1e30`` is none, nor is ``(x - -3.4e38) / 1e30``
infinite. So the number is followed through the program with its sign and its size, as long as it stands for infinity.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rewright import ops
from rewright.analysis.ends import Bound
from rewright.analysis.rows import is_by_own_row, is_sum_of_exponentials
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.proof.rewriting.numbers.taken import as_infinity
from rewright.proof.rewriting.program import Program, passes_on

FARTHER = 100
"""A filling is this many times as far from zero as every number in the scores that it is added to."""


class _Far(NamedTuple):
    """Elements may stand for infinity of a sign, 0 for either."""

    sign: int
    size: float
    """They are at least as far from zero then."""
    least: float
    """What is nearer to zero is a usual number."""


_USUAL = _Far(0, 0.0, math.inf)
"""What may be made of such elements is a usual number, which infinity would not give."""


def meeting(program: Program, lowest: Collection[int]) -> int | None:
    """The operator that makes a usual number of the most negative one; None where there is none.

    It is followed through what moves elements and what computes element by element, and no further. ``lowest`` are the
    nodes that hold it, all of which stand for minus infinity.
    """
    sizes = {position: _size(program, position) for position in lowest}
    found = {position: _Far(-1, size, math.sqrt(size)) for position, size in sizes.items()}
    for position, node in enumerate(program.graph.nodes):
        made = [found[position]] if position in sizes else list(_made(program, found, node))
        if any(not far.least <= far.size for far in made):
            return position
        if made:
            signs, least = {far.sign for far in made}, max(far.least for far in made)
            found[position] = _Far(signs.pop() if len(signs) == 1 else 0, min(far.size for far in made), least)
    return None


def _size(program: Program, lowest: int) -> float:
    """How far from zero what stands for infinity is at least; NaN where it is not known."""
    node, bound = program.graph.nodes[lowest], program.bounds[lowest]
    values = node.op.values if isinstance(node.op, ops.Constant) else ()
    known = [-float(value) for value in values if as_infinity(value, node.type.dtype) != value]
    size = min(known, default=math.inf if bound is None else -bound[0])
    return size if size < math.inf else math.nan


def _made(program: Program, found: Mapping[int, _Far], node: Node) -> Iterator[_Far]:
    """What an operator makes of each operand that stands for infinity, as far as that still does."""
    op = node.op
    for number, position in enumerate(node.operands):
        far = found.get(position)
        if far is None:
            continue
        if passes_on(node, position):
            if node.type.dtype is not DType.BOOL:
                yield far if node.type.dtype.is_float else _USUAL
        elif isinstance(op, ops.Limiting):
            yield far
        elif isinstance(op, ops.Elementwise) and len(node.operands) == 1:
            yield from _applied(op, far)
        elif isinstance(op, ops.Elementwise):
            yield from _combined(program, found, node, number)


def _applied(op: ops.Elementwise, far: _Far) -> Iterator[_Far]:
    """What a function of one operand makes of both; nothing where it makes the same."""
    for sign in (far.sign,) if far.sign else (1, -1):
        value, limit = op.execute([np.array([sign * far.size, sign * math.inf])]).astype(np.float64)
        if math.isinf(limit) and value * limit > 0:
            yield _Far(1 if limit > 0 else -1, abs(value), far.least)
        elif value != limit:
            yield _USUAL


def _combined(program: Program, found: Mapping[int, _Far], node: Node, number: int) -> Iterator[_Far]:
    """What a function of two operands makes of one that stands for infinity; nothing where it makes the same."""
    far, other = found[node.operands[number]], node.operands[1 - number]
    bounds = program.bounds[other], program.at_zero[other]
    if isinstance(node.op, ops.Subtract) and is_softmax(program.graph, node):
        yield from [far] * (number == 0)
    elif isinstance(node.op, ops.Additive):
        turns = isinstance(node.op, ops.Subtract)
        side = far.sign if turns else -far.sign
        is_lost = other in found and (turns or found[other].sign * far.sign != 1)
        is_lost = is_lost or any(_reaches(bound, side, far.size / FARTHER) for bound in bounds)
        yield _USUAL if is_lost else far._replace(sign=-far.sign if turns and number == 1 else far.sign)
    elif isinstance(node.op, ops.Multiply) or (isinstance(node.op, ops.Divide) and number == 0 and other not in found):
        yield far._replace(sign=far.sign * _sign_of(bounds[0]), size=_scaled(node.op, far.size, bounds))
    elif isinstance(node.op, ops.Compare) and other in found:
        yield from [_USUAL] * (found[other][:2] != far[:2])
    elif not isinstance(node.op, ops.Compare) or any(_reaches(bound, far.sign, far.size) for bound in bounds):
        yield _USUAL


def _scaled(op: ops.Multiply | ops.Divide, size: float, bounds: Sequence[Bound | None]) -> float:
    """The size of what is multiplied or divided by a number of which bounds are known, in general and at zero."""
    sizes = [max(abs(low), abs(high)) for low, high in (bound for bound in bounds if bound is not None)]
    sizes = [n for n in sizes if n or bounds[0] == (0, 0)]  # a score is no zero because it may be
    if not isinstance(op, ops.Multiply):
        return size / max(sizes, default=1.0) if any(sizes) else size
    return size * min(sizes, default=1.0)


def _reaches(bound: Bound | None, sign: int, size: float) -> bool:
    """Whether what is known to have these bounds may be as far from zero, on the side of a sign, 0 for both."""
    if bound is None:
        return False
    return (sign >= 0 and bound[1] >= size) or (sign <= 0 and -bound[0] >= size)


def _sign_of(bound: Bound | None) -> int:
    """The sign of what lies between two numbers, 0 where it may have either."""
    return 0 if bound is None else 1 if bound[0] >= 0 else -1 if bound[1] <= 0 else 0


def is_softmax(graph: Graph, node: Node) -> bool:
    """Whether what a node subtracts is the largest of the row, or the logarithm of the sum of its exponentials."""
    return is_by_own_row(graph, node, "maximum") or is_sum_of_exponentials(graph, *node.operands)
