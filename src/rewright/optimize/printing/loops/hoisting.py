"""Values that are computed once for a tile and not for each of its elements.

That are values that no row changes, and those that only tell how far apart a row and an element of the lane are: a
bias by distance, ``decay ** (i - j)``. A tile of 48 rows and 64 lanes has 111 distances and 3,072 elements.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from rewright.ir.types import DType
from rewright.ops.functions import FUNCTIONS
from rewright.optimize.kernel import Sweep
from rewright.optimize.phases import Work
from rewright.optimize.printing.loops.context import BEGIN, COLUMN, COLUMNS, FIRST, ROW, ROWS, Context
from rewright.optimize.printing.loops.packing import PLAIN, fill, lane_counter, row_counter
from rewright.optimize.printing.loops.scopes import Scope
from rewright.optimize.printing.loops.states import is_state
from rewright.optimize.printing.loops.values import value
from rewright.optimize.printing.places import offset
from rewright.optimize.printing.statements import Assign, Element, Let, Loop, Name, element_at, total
from rewright.optimize.scalars.expressions import Expression, walk
from rewright.terms.index import Index, Quotient, Remainder, Variable

COSTLY = frozenset(name for name, record in FUNCTIONS.items() if record.code.cost > 1)
"""Functions that are worth computing once for a lane or a row."""
Factors = Mapping[int, tuple[Expression, Expression]]
"""Weights and items of sums over features, by the number of the sum."""
_NARROW = (DType.F16, DType.BF16, DType.I16, DType.I8, DType.U8, DType.BOOL)
_APART = Name("d")
"""The counter of distances."""


def hoist_values(
    k: Context, body: Scope, sweep: Sweep, work: Work, weights: Factors, lanes: int
) -> tuple[Work, Factors, dict[int, Element]]:
    """The work of a tile after its values that are computed once, and where these are.

    A quotient by a value that no row changes is a product with its inverse.
    """
    lane, table = sweep.lane.name, k.table

    def is_fixed(e: Expression) -> bool:
        return lane in e.free and k.kernel.row.name not in e.free and not any(map(is_state, walk(e)))

    def inverse(e: Expression) -> Expression | None:
        if is_state(e):
            return e  # it is known as it is
        if e.op != "divide" or not e.dtype.is_float or not is_fixed(e.arguments[1]) or is_fixed(e.arguments[0]):
            return None
        top, bottom = table.replace(e.arguments[0], inverse), e.arguments[1]
        return table.plain("multiply", (top, table.plain("divide", (table.constant(1.0, e.dtype), bottom))))

    feature = k.kernel.features.name if k.kernel.features is not None else ""
    work = work.map_expressions(lambda e: table.replace(e, inverse))
    found = {n: (table.replace(w, inverse), item) for n, (w, item) in weights.items()}
    places: dict[int, Element] = {}
    stack = [*work.values(), *(w for w, _ in found.values())]
    seen: set[int] = set()
    while stack and k.kernel.row.size != 1:
        e = stack.pop()
        if e.number in seen:
            continue
        seen.add(e.number)
        if is_fixed(e) and feature not in e.free and any(x.op in COSTLY for x in walk(e)):
            places[e.number] = Element(k.buffer("lane", lanes, k.computed(e.dtype)), COLUMN)
            body.add(fill(k, [lane_counter(sweep)], e, places[e.number]))
        elif (sign := _distance(k, e, lane)) and feature not in e.free:
            places[e.number] = _by_distance(k, body, sweep, e, lanes, sign)
        elif e.op == "load" and not k.is_across and not is_state(e) and _runs_across(k, e, lane):
            places[e.number] = element_at(
                k.buffer("across", k.block * lanes, k.computed(e.dtype)), (ROW, lanes), COLUMN
            )
            body.add(fill(k, [lane_counter(sweep), row_counter(k)], e, places[e.number]))
        elif e.op != "reduce":
            stack.extend(e.arguments)
    return work, found, places


def _runs_across(k: Context, e: Expression, lane: str) -> bool:
    """Whether neighbours in memory are rows, and not lanes: such a tile is turned before it is used."""
    if any(a.op not in PLAIN for a in e.arguments):
        return False
    place = offset(k.table, e.arguments, k.shape(e.tensor))
    steps = {str(atom): factor for atom, factor in place.terms}
    return steps.get(k.kernel.row.name) == 1 and steps.get(lane, 0) not in (0, 1)


def gather_narrow(
    k: Context, row: Scope, sweep: Sweep, values: Sequence[Expression], lanes: int, known: Container[int]
) -> dict[int, Element]:
    """Numbers of 8 and 16 bits that a row reads here and there, put side by side: no machine gathers such as a vector.

    A compiler would do all that a loop does with them one by one. ``known`` are values that are in memory already.
    """
    found: dict[int, Element] = {}
    stack, seen = [] if k.is_across else list(values), set[int]()
    while stack:
        e = stack.pop()
        if e.number in seen or e.number in known or e.op == "reduce":
            continue
        seen.add(e.number)
        if e.op == "load" and e.tensor >= 0 and _is_scattered(k, e, sweep.lane.name):
            found[e.number] = Element(k.buffer("gathered", lanes, k.computed(e.dtype)), COLUMN)
            with k.scopes.block(sweep.lane.name) as loop:
                loop.add(Let(sweep.lane.name, total(BEGIN, COLUMN), DType.I64))
                loop.add(Assign(found[e.number], value(k, e)))
            row.add(Loop("c", COLUMNS, loop.body))
        else:
            stack.extend(e.arguments)
    return found


def _is_scattered(k: Context, e: Expression, lane: str) -> bool:
    """Whether neighbours on the lane are numbers of few bits that are not side by side in memory."""
    if lane not in e.free or k.graph.nodes[e.tensor].type.dtype not in _NARROW:
        return False
    place = offset(k.table, e.arguments, k.shape(e.tensor))
    rest = Index(place.constant, tuple((a, n) for a, n in place.terms if (str(a), n) != (lane, 1)))
    return lane in k.table.free_of(rest)


def _by_distance(k: Context, body: Scope, sweep: Sweep, e: Expression, lanes: int, sign: int) -> Element:
    """A value of ``row + sign * lane``, computed once for each such number of a tile."""
    memory = k.buffer("apart", k.block + lanes, k.computed(e.dtype))
    start = total(BEGIN, (ROWS, -1), 1) if sign < 0 else BEGIN  # with the first row, so that all numbers are met
    with k.scopes.block(k.kernel.row.name, sweep.lane.name) as scope:
        scope.add(Let(k.kernel.row.name, FIRST, DType.I64), Let(sweep.lane.name, total(start, _APART), DType.I64))
        scope.add(Assign(Element(memory, _APART), value(k, e)))
    body.add(Loop("d", total(ROWS, COLUMNS, -1), scope.body))
    return element_at(memory, COLUMN, (ROW, sign), *([(ROWS, 1), -1] if sign < 0 else []))


def _distance(k: Context, e: Expression, lane: str) -> int:
    """1 or -1 for a value that is worth it and depends on rows and lanes by ``row + lane`` or ``row - lane`` alone."""
    both = {k.kernel.row.name, lane}
    if not both <= e.free or any(map(is_state, walk(e))) or not any(map(_is_worth, walk(e))):
        return 0
    found: set[int] = set()
    for index in (x.index for x in walk(e) if x.index is not None):
        found |= _signs(index, k.kernel.row.name, lane)
    return found.pop() if len(found) == 1 else 0


def _is_worth(e: Expression) -> bool:
    """Whether one function, or a look-up at a place that is computed, is worth to be done once."""
    return e.op in COSTLY or (e.op == "load" and any(a.op not in PLAIN for a in e.arguments))


def _signs(index: Index, row: str, lane: str) -> set[int]:
    """By which sums of a row and a lane an index depends on both: 0 stands for any other."""
    steps = {atom.name: factor for atom, factor in index.terms if isinstance(atom, Variable)}
    own, other = steps.get(row, 0), steps.get(lane, 0)
    found = {1 if own == other else -1 if own == -other else 0} - ({1} if own == other == 0 else set())
    for atom, _ in index.terms:
        if isinstance(atom, (Quotient, Remainder)):
            found |= _signs(atom.numerator, row, lane)
        elif not isinstance(atom, Variable):
            found.add(0)
    return found
