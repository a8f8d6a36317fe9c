"""Orders that modules write as computations: comparators of sorts, and reductions that look for an extreme.

Such a computation only compares numbers with each other and with zero, so what it does is decided by the order in which
they lie. All orders are tried: that is a proof, and whatever spelling a compiler chose is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from math import inf, isnan
from typing import Any

from rewright import ops
from rewright.frontends.hlo.context import Context, Value
from rewright.frontends.hlo.module import Computation, Instruction
from rewright.ir.errors import UnsupportedOperator
from rewright.ops.base import identity_value
from rewright.ops.reference import building as rb
from rewright.ops.reference.indexing import gather_along

_NUMBERS: tuple[int, ...] = (-2, -1, 0, 1, 2)
"""Two numbers of every order and sign are among them."""
_MOST_KEYS = 3
COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


def sort(c: Context, i: Instruction, operands: Sequence[int]) -> Value:
    """Arrays sorted along an axis by one or more of them; raises UnsupportedOperator for an order of another kind."""
    axes = i.integers("dimensions")
    keys = _keys(c.module.callee(i), len(operands))
    if keys is None or len(axes) != 1:
        raise UnsupportedOperator("its order is not that of some of its operands, up or down; sort by those")
    (axis,) = axes
    if len(operands) == 1:
        return c.b.add(ops.Sort(axis, keys[0][1], "values"), operands[0])
    if not i.attribute("is_stable"):
        c.assume("elements with equal keys keep their order where a sort does not say so")
    order: int | None = None
    for place, descending in reversed(keys):
        key = operands[place] if order is None else gather_along(c.b, operands[place], order, axis)
        step = c.b.add(ops.Sort(axis, descending, "indices"), key)
        order = step if order is None else gather_along(c.b, order, step, axis)
    assert order is not None
    return tuple(_move(c, operand, order, axis) for operand in operands)


def _move(c: Context, x: int, order: int, axis: int) -> int:
    form = c.b.affine(x)
    kind = c.b.type(x)
    own = form.coefficients if form is not None and form.constant == 0 else ()
    if [n for n in own if n] == [1] and own[axis] == 1:
        return rb.convert(c.b, order, kind.dtype)  # places of elements, sorted along: the order itself
    return gather_along(c.b, x, order, axis)


def extreme(c: Context, i: Instruction, operands: Sequence[int]) -> Value:
    """The largest (or smallest) element along an axis and the first place where it stands, in one reduction.

    Raises UnsupportedOperator for any other reduction of several arrays.
    """
    values, places = operands[:2]
    axes = i.integers("dimensions")
    largest = _looks_for(c.module.callee(i)) if len(operands) == 4 and len(axes) == 1 else None
    form = c.b.affine(places) if len(operands) == 4 else None
    start = c.b.uniform(operands[2]) if len(operands) == 4 else None
    if largest is None or form is None or start is None:
        raise UnsupportedOperator("a reduction of several arrays that does not look for an extreme; reduce them apart")
    (axis,) = axes
    if form.coefficients[axis] != 1 or form.constant or sum(map(abs, form.coefficients)) != 1:
        raise UnsupportedOperator("a search for an extreme that does not number places from zero; use an iota")
    kind = "maximum" if largest else "minimum"
    if start != identity_value(kind, c.b.type(values).dtype):
        raise UnsupportedOperator("a search for an extreme that starts with a number; start with an infinity")
    shape = [size for place, size in enumerate(c.b.type(values).shape) if place != axis]
    order = _extremes_first(c, values, axis, largest)
    first = rb.reshape(c.b, rb.slice_axis(c.b, order, axis, 0, 1), shape)
    found = rb.reduce(c.b, kind, values, [axis])
    return found, rb.convert(c.b, first, c.b.type(places).dtype)


def _extremes_first(c: Context, values: int, axis: int, largest: bool) -> int:
    """Places in the order in which a search for an extreme takes elements: what is no number comes first."""
    if largest or not c.b.type(values).dtype.is_float:
        return c.b.add(ops.Sort(axis, largest, "indices"), values)
    return c.b.add(ops.Sort(axis, True, "indices"), c.b.add(ops.Negate(), values))


def top_k(c: Context, i: Instruction, operands: Sequence[int]) -> Value:
    """``topk``: the largest elements of the last axis and their places."""
    size = i.shape.parts[0].sizes[-1] if i.shape.parts else 0
    largest = i.attribute("largest") if i.opcode == "topk" else "largest = false" not in i.word("backend_config")
    if not largest or not size:
        raise UnsupportedOperator("the smallest elements of an axis; negate it first")
    values, places = (c.b.add(ops.TopK(size, which), operands[0]) for which in ("values", "indices"))
    return values, rb.convert(c.b, places, i.shape.parts[1].type().dtype)


def _keys(computation: Computation, count: int) -> list[tuple[int, bool]] | None:
    """The operands that a comparator compares, most important first, and whether they descend."""
    if len(computation.parameters()) != 2 * count:
        return None
    read = _parameters_read(computation)
    own = sorted({place // 2 for place in read})
    if not 0 < len(own) <= _MOST_KEYS:
        return None
    given = [dict(zip(read, values, strict=True)) for values in product(_NUMBERS, repeat=len(read))]
    cases = [(values, _evaluate(computation, values)) for values in given]
    for order in _orders(own):
        if all(found is _before(values, order) for values, found in cases):
            return order
    return None


def _orders(operands: Sequence[int]) -> Iterator[list[tuple[int, bool]]]:
    for places in permutations(operands):
        for directions in product((False, True), repeat=len(places)):
            yield list(zip(places, directions, strict=True))


def _before(values: dict[int, int], order: Sequence[tuple[int, bool]]) -> bool:
    for place, descending in order:
        left, right = values.get(2 * place, 0), values.get(2 * place + 1, 0)
        if left != right:
            return (left > right) is descending
    return False


def _looks_for(computation: Computation) -> bool | None:
    """Whether a fold of pairs (value, place) keeps the largest value, or the smallest, with its first place."""
    if len(computation.parameters()) != 4:
        return None
    found = {True, False}
    for values in product(_NUMBERS, repeat=4):
        kept = _evaluate(computation, dict(enumerate(values)))
        (a, i), (b, j) = values[:2], values[2:]
        for largest in tuple(found):
            better = (a > b) if largest else (a < b)
            wanted = (a, i) if better or (a == b and i < j) else (b, j)
            if kept != wanted:
                found.discard(largest)
        if not found:
            return None
    return found.pop() if len(found) == 1 else None


def _parameters_read(computation: Computation) -> list[int]:
    used = {operand for instruction in computation.instructions.values() for operand in instruction.operands}
    used.add(computation.root)
    return [place for place, parameter in enumerate(computation.parameters()) if parameter.name in used]


def _evaluate(computation: Computation, given: dict[int, int]) -> Any:
    """What a computation gives for numbers; raises UnsupportedOperator where it does not just compare and choose."""
    values: dict[str, Any] = {p.name: given.get(place, 0) for place, p in enumerate(computation.parameters())}
    for instruction in computation.in_order:
        if instruction.name not in values:
            is_plain = instruction.opcode == "copy" or computation.is_plain_bitcast(instruction)
            operands = [values[name] for name in instruction.operands]
            values[instruction.name] = operands[0] if is_plain else _step(instruction, operands)
    return values[computation.root]


def _step(i: Instruction, operands: list[Any]) -> Any:
    if i.opcode == "constant":
        literal = i.literal
        if not literal or not (isnan(literal[0]) or literal[0] in (0, inf, -inf)):
            raise UnsupportedOperator("it compares with a number; compare elements with each other")
        return literal[0]
    if i.opcode == "compare":
        return COMPARES[i.word("direction")](*operands)
    if i.opcode == "select":
        return operands[1] if operands[0] else operands[2]
    if i.opcode in ("and", "or", "xor", "not") and i.shape.element == "pred":
        left, right = bool(operands[0]), bool(operands[-1])
        return {"and": left and right, "or": left or right, "xor": left is not right, "not": not left}[i.opcode]
    if i.opcode == "tuple":
        return tuple(operands)
    raise UnsupportedOperator(f"its computation has {i.opcode:.40}; compare and choose only")
