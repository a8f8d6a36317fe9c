"""Folds and contractions: a sum over a slice is an open fold, whole once the ranks' slices add up."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from rewright import ops
from rewright.claims.language import Access, Addend, Index, Ranged, View, applies, folds
from rewright.ir.dims import Dim, SizeExpr, divide
from rewright.ir.types import DType
from rewright.lifting.arithmetic.functions import function
from rewright.lifting.arithmetic.products import multiply
from rewright.lifting.masks.inactive import under_mask
from rewright.lifting.masks.one_hot import collapse
from rewright.lifting.masks.positions import find_masked_term, is_lowest
from rewright.lifting.moves.layout import assemble, lengthwise, slice_rows
from rewright.lifting.recognition.shifts import standing
from rewright.lifting.recognition.unit_axes import open_axes, plain, plain_view, recognise
from rewright.lifting.terms import regions
from rewright.lifting.terms.algebra import Algebra, align
from rewright.lifting.terms.index import at_zero, rename, variables_in
from rewright.lifting.terms.order import in_order
from rewright.lifting.terms.store import ONE, Folded, Operand
from rewright.lifting.terms.value import (
    Digits,
    NotAView,
    Pieces,
    Value,
    common_digits,
    refine,
    variables_of,
    with_digits,
)

_MOST_OPENED = 2
"""Axes of which a value holds one element that are folded over at most: its expert and the rank that it came from."""

IDEMPOTENT = frozenset({"maximum", "minimum", "and", "or"})


def among_numbers(kind: str, dtype: DType) -> str:
    """How a reduction of truth values reads where they are zero and one: an or is their largest, an and their least.

    So it is one value with the maximum over ranks of what each of them turned into a number.
    """
    return {"or": "maximum", "and": "minimum"}.get(kind, kind) if dtype is DType.BOOL else kind


def reduce(algebra: Algebra, kind: str, value: Value, axes: Sequence[int], *, part: bool = False) -> Value:
    """Fold a value over some axes; a ``part`` is one of several pieces along them."""
    if isinstance(value, Pieces):
        inside = part or value.axis in axes
        pieces = [plain(one) for one in value.parts] if algebra.forms.plain else value.parts
        parts = [reduce(algebra, kind, one, axes, part=inside) for one in pieces]
        if value.axis in axes:
            return combine(algebra, kind, parts)
        return assemble(parts, value.axis - sum(1 for a in axes if a < value.axis), value.outer)
    found = recognise(algebra, lambda views: _reduce_view(algebra, kind, views[0], axes, part), [value])
    if algebra.sequential or algebra.is_familiar(found) or algebra.is_strange(value):
        return found
    if kind == "maximum":
        masked = under_mask(algebra, value, lambda one: _reduce_view(algebra, kind, one, axes, part))
        if masked is not None:
            return masked
    return _at_one(algebra, kind, value, axes, part, found)


def _at_one(algebra: Algebra, kind: str, value: View, axes: Sequence[int], part: bool, found: View) -> View:
    """The same fold, of a value that is read at one index of an axis or two, as a part of a fold over those too."""
    ways = list(dict.fromkeys((value, plain_view(value))))
    for _ in range(_MOST_OPENED):
        ways = [one for way in ways for (one,) in open_axes([way])]
        for one in ways:
            other = _reduce_view(algebra, kind, one, (*axes, *range(len(value.dims), len(one.dims))), part)
            if algebra.is_familiar(other):
                return other
    return found


def _reduce_view(algebra: Algebra, kind: str, value: View, axes: Sequence[int], part: bool = False) -> View:
    with algebra.over(value.dims):
        return _reduce(algebra, kind, value, axes, part)


def sum_over(algebra: Algebra, value: View, axes: Sequence[int]) -> View:
    """The sum over some axes, as it is."""
    return _reduce_view(algebra, "sum", value, axes)


def _reduce(algebra: Algebra, kind: str, value: View, axes: Sequence[int], part: bool) -> View:
    names = variables_of(value.dims)
    folded = {v: n for axis in axes for v, n in zip(names[axis], value.dims[axis], strict=True)}
    kept = [axis for axis in range(len(names)) if axis not in axes]
    positions = {v: k for k, v in enumerate(v for axis in kept for v in names[axis])}
    lengths = [n for digits in value.dims for n in digits]
    addends: list[Addend] = []
    if kind == "sum":
        sources = algebra.solid(value, linear=True)
    elif value.addends:
        sources = (Addend(ONE, *algebra.operand(value)),)
    else:
        sources = (Addend(Fraction(0), algebra.terms.one, ()),)
    for a in sources:
        still = _standing(algebra, a, folded) if algebra.forms.quotients and kind == "sum" else None
        if still is not None:
            a, factor = still
            for done in _folds(algebra, kind, a, folded, lengths, part):
                term, access = algebra.terms.multiply([(done.term, done.access), factor])
                access = tuple(rename(i, positions) for i in at_zero(access, folded))
                addends.append(Addend(done.coefficient, term, access, done.parts))
            continue
        for done in _folds(algebra, kind, a, folded, lengths, part):
            access = tuple(rename(i, positions) for i in at_zero(done.access, folded))
            addends.append(Addend(done.coefficient, done.term, access, done.parts))
    return algebra.settle(tuple(value.dims[axis] for axis in kept), addends)


def _standing(algebra: Algebra, addend: Addend, folded: dict[int, Dim]) -> tuple[Addend, Operand] | None:
    """What a sum runs over and the factors that stand still, also under a guard."""
    guard = algebra.guards.guard_of(addend)
    if guard is None:
        return standing(algebra.terms, addend, folded)
    value, region, body = guard
    inner = standing(algebra.terms, body, folded)
    return None if inner is None else (algebra.guards.guard(value, region, inner[0]), inner[1])


def _folds(
    algebra: Algebra, kind: str, addend: Addend, folded: dict[int, Dim], lengths: Sequence[Dim], part: bool
) -> list[Addend]:
    """The fold of one addend, indicators of a position resolved first."""
    if kind == "sum":
        for var, length in folded.items():
            found = collapse(algebra, addend, var, length, lengths)
            if found is not None:
                rest = {v: n for v, n in folded.items() if v != var}
                return [b for a in found for b in (_folds(algebra, kind, a, rest, lengths, part) if rest else [a])]
        guard = algebra.guards.guard_of(addend)
        if guard is not None and _is_invariant(algebra, guard[0], folded):
            return _under_guard(algebra, addend, guard, folded, lengths, part)
        several = [] if addend.parts else algebra.terms.expand(addend.term, addend.access)
        addends = [Addend(addend.coefficient * c, *operand) for c, operand in several]
        if len(addends) > 1 and any(collapse(algebra, a, v, n, lengths) for a in addends for v, n in folded.items()):
            return [b for a in addends for b in _folds(algebra, kind, a, folded, lengths, part)]
        apart = _apart(algebra, addends, folded) if algebra.forms.quotients else []
        if len(apart) > 1:
            return [b for a in apart for b in _folds(algebra, kind, a, folded, lengths, part)]
    return [_fold(algebra, kind, addend, folded, lengths, part)]


def _is_invariant(algebra: Algebra, value: Operand, folded: Container[int]) -> bool:
    """Whether a test is one that ranks alone have, as of what is theirs, and the same for all that is summed.

    Those of the sequential program stay where it has them.
    """
    is_own = not algebra.sequential and value[0] not in algebra.terms.tested
    return is_own and not any(v in folded for v in variables_in(value[1]))


def _under_guard(
    algebra: Algebra,
    addend: Addend,
    guard: tuple[Operand, regions.Region, Addend],
    folded: dict[int, Dim],
    lengths: Sequence[Dim],
    part: bool,
) -> list[Addend]:
    """A loop-invariant test stands outside of a sum; one whose set is still open keeps it so, and the sum is closed."""
    value, region, body = guard
    is_open = any(hole == addend.term for hole, _ in addend.parts)
    found = _folds(algebra, "sum", body, folded, lengths, part)
    if is_open:
        found = [algebra.folds.close(one) for one in found]
    return [algebra.guards.guard(value, region, one) for one in found]


def _apart(algebra: Algebra, addends: Sequence[Addend], folded: Container[int]) -> list[Addend]:
    """The addends of a sum by which of the folded variables they are read at: the others count how often they stand.

    The mean of ``z - log s`` over a vocabulary is the mean of ``z``, and the logarithm.
    """
    groups: dict[frozenset[int], list[tuple[Fraction, int, Access]]] = {}
    for a in addends:
        groups.setdefault(frozenset(v for v in variables_in(a.access) if v in folded), []).append(
            (a.coefficient, a.term, a.access)
        )
    return [total for group in groups.values() if (total := algebra.terms.add(group)) is not None]


def _fold(
    algebra: Algebra, kind: str, addend: Addend, folded: dict[int, Dim], lengths: Sequence[Dim], part: bool
) -> Addend:
    occurring = variables_in(addend.access)
    coefficient = addend.coefficient
    term, access = addend.term, addend.access
    for var, length in folded.items():
        if var in occurring or kind in IDEMPOTENT:
            continue
        if kind != "sum":
            raise NotAView("a product over an axis that does not occur")
        if isinstance(length, SizeExpr):
            term, access = algebra.terms.multiply([(term, access), algebra.terms.size(length)])
        else:
            coefficient = coefficient * length
    ranges: dict[int, tuple[Dim, Dim]] = {v: (0, n) for v, n in folded.items() if v in occurring}
    # One element of several that are added up is a part of a sum, also where it is alone in its piece. What has open
    # parts is never the sequential program's own, so that it cannot tell.
    alone = not part or kind != "sum" or not (algebra.sequential or addend.parts)
    single = [v for v in sorted(occurring) if lengths[v] == 1] if alone else []
    found = _family(algebra, kind, (term, access), ranges, single)
    if not isinstance(found, Folded):
        return Addend(coefficient, *found, addend.parts)
    if algebra.forms.quotients and not algebra.sequential and kind == "sum" and not addend.parts:
        other = find_masked_term(algebra.terms, Addend(coefficient, term, access), lengths)
        if other is not None:
            return _fold(algebra, kind, other, {v: n for v, n in folded.items() if v in occurring}, lengths, part)
    hole, region = algebra.terms.flat(found.hole, regions.whole(found.box))
    inner = _sum(algebra, addend) if kind == "sum" else None
    if inner is not None and algebra.terms.children(hole) == inner[:1]:
        axes = algebra.terms.axes(hole)
        return algebra.part(coefficient, *algebra.terms.nest(*inner, axes, region), found.access)
    if addend.parts or kind == "product":
        return Addend(coefficient, algebra.terms.set_range(hole, region), found.access, addend.parts)
    return algebra.part(coefficient, hole, region, found.access)


def _sum(algebra: Algebra, addend: Addend) -> tuple[int, regions.Region] | None:
    """The sum that an addend is a part of, and over which region, where it is nothing else."""
    if len(addend.parts) != 1 or addend.parts[0][0] != addend.term:
        return None
    return addend.parts[0] if folds(algebra.terms.see(addend.term), "sum") else None


def _family(
    algebra: Algebra, kind: str, operand: Operand, ranges: Mapping[int, tuple[Dim, Dim]], single: Sequence[int]
) -> Folded | Operand:
    """The fold over variables, those of one value left alone.

    They take part where the sequential program folds over them: a rank may hold one head of a sum over heads. Where it
    has several such folds, the first is the one over what the rank folds over, be indices of one value read or not.
    """
    rest = {v: r for v, r in ranges.items() if v not in single}
    if not algebra.sequential and single:
        asked = tuple(v for v in single if v in ranges)
        several = (kept for count in range(len(single), 0, -1) for kept in combinations(single, count))
        for kept in dict.fromkeys((asked, (), *several)):
            fold = _fold_beside(algebra, kind, operand, {**dict.fromkeys(kept, (0, 1)), **rest}, single, kept)
            if isinstance(fold, Folded) and fold.hole < algebra.horizon:
                return fold
    return _fold_beside(algebra, kind, operand, rest, single, ()) if rest else operand


def _fold_beside(
    algebra: Algebra,
    kind: str,
    operand: Operand,
    ranges: Mapping[int, tuple[Dim, Dim]],
    single: Sequence[int],
    kept: Sequence[int],
) -> Folded | Operand:
    """The fold over variables beside which those of one value are not read."""
    if not ranges:
        return operand
    if kept:
        return algebra.terms.fold_over(kind, operand, ranges)
    term, access = operand
    beside = tuple(at_zero((i,), single)[0] if any(v in ranges for v, _ in i[1]) else i for i in access)
    return algebra.terms.fold_over(kind, (term, beside), ranges)


def combine(algebra: Algebra, kind: str, values: Sequence[Value]) -> Value:
    """The elementwise reduction of several values of one shape, as an all-reduce computes it."""
    cut = split_alike(values)
    if cut is not None:
        return cut.join([combine(algebra, kind, row) for row in cut.rows])
    views = align([v for v in values if isinstance(v, View)])
    if kind == "sum":
        return _whole(algebra, algebra.add(views, [ONE] * len(views)))
    if kind in IDEMPOTENT:
        joined = _unite(algebra, kind, views)
        if joined is not None:
            return joined
        return _extreme(algebra, kind, views)
    total = views[0]
    name = {"sum": "add", "product": "multiply"}.get(kind, kind)
    for view in views[1:]:
        total = multiply(algebra, total, view) if kind == "product" else function(algebra, name, [total, view])
    return total


def _whole(algebra: Algebra, total: View) -> View:
    """A sum with its folds closed, where that is a term of the sequential program, and it is none with them open."""
    if algebra.sequential or not any(a.parts for a in total.addends) or algebra.is_familiar(total):
        return total
    closed = algebra.settle(total.dims, [algebra.folds.close(a) for a in total.addends])
    (one, *others) = closed.addends or total.addends
    return closed if not others and one.term < algebra.horizon else total


def _unite(algebra: Algebra, kind: str, views: Sequence[View]) -> View | None:
    """The maximum of maxima over parts of one range is the maximum over their union."""
    first = views[0].addends[0] if views[0].addends else None
    if first is None or len(first.parts) != 1 or first.parts[0][0] != first.term:
        return None
    found: list[regions.Region] = []
    for view in views:
        if len(view.addends) != 1:
            return None
        a = view.addends[0]
        if (a.coefficient, a.term, a.access) != (ONE, first.term, first.access):
            return None
        if not a.parts or algebra.terms.parts_kind(a.parts) != kind:
            return None
        found.append(a.parts[0][1])
    return View(views[0].dims, (algebra.part(ONE, first.term, regions.union(found), first.access),))


def _extreme(algebra: Algebra, kind: str, views: Sequence[View]) -> View:
    """The maximum of several values, flat and in one order; folds of parts of one range are one fold of their union."""
    if all(v == views[0] for v in views):
        return views[0]
    terms = algebra.terms
    parts: dict[Operand, list[regions.Region]] = {}
    members: list[Operand] = []
    lowest: list[Operand] = []
    for term, access in _members(algebra, kind, views):
        if kind == "maximum" and is_lowest(terms, term):
            lowest.append((term, access))  # nothing is below it
            continue
        label = terms.see(term)
        hole = terms.children(term)[0] if isinstance(label, Ranged) else term
        if isinstance(label, Ranged) and folds(terms.label(hole), kind):
            parts.setdefault((hole, access), []).append(terms.region(term))
        else:
            members.append((term, access))
    for (hole, access), several in parts.items():
        done = algebra.folds.close(algebra.part(ONE, hole, regions.union(several), access))
        members.append(terms.freeze(done))
    first, *rest = in_order(list(dict.fromkeys(members or lowest)))
    for member in rest:
        first = terms.apply(kind, [first, member])
    return View(views[0].dims, (Addend(ONE, *first),))


def _members(algebra: Algebra, kind: str, views: Sequence[View]) -> Iterator[Operand]:
    """The operands of nested maxima."""
    terms = algebra.terms
    left = [algebra.operand(view) for view in reversed(views)]
    while left:
        operand = left.pop()
        if applies(terms.see(operand[0]), kind):
            left += terms.operands(operand)
        else:
            yield operand


@dataclass(frozen=True)
class Cut:
    """Values cut at the same places: one row of values for each part."""

    axis: int
    outer: Dim
    rows: list[list[Value]]

    @property
    def is_stack(self) -> bool:
        """Whether every part is one element long."""
        return all(_row_length(row[0], self.axis, self.outer) == 1 for row in self.rows)

    def join(self, results: Sequence[Value]) -> Value:
        """One value from a result for each part."""
        return assemble(results, self.axis, self.outer)


def split_alike(values: Sequence[Value]) -> Cut | None:
    """Cut all values where any of them is in pieces; None where all are single windows."""
    pieces = next((v for v in values if isinstance(v, Pieces)), None)
    if pieces is None:
        return None
    axis, outer = pieces.axis, pieces.outer
    cuts: set[int] = set()
    for v in values:
        if isinstance(v, Pieces) and (v.axis, v.outer) == (axis, outer):
            position = 0
            for part in v.parts:
                cuts.add(position)
                position += _row_length(part, axis, outer)
    bounds = [*sorted(cuts), _row_length(pieces, axis, outer)]
    if len(bounds) > 130:
        raise NotAView("too many pieces")
    pairs = list(zip(bounds, bounds[1:], strict=False))
    return Cut(axis, outer, [[slice_rows(v, pieces, axis, low, high) for v in values] for low, high in pairs])


def _row_length(value: Value, axis: int, outer: Dim) -> int:
    length = divide(value.shape[axis], outer)
    if not isinstance(length, int):
        raise NotAView("pieces of symbolic size")
    return length


def dot_general(algebra: Algebra, op: ops.DotGeneral, left: Value, right: Value, *, part: bool = False) -> Value:
    """A contraction: the product over all axes, folded over the contracted ones, or a ``part`` of these."""
    roles = DotRoles(op, len(left.shape), len(right.shape))
    for side, value in ((0, left), (1, right)):
        if isinstance(value, Pieces):
            return _dot_pieces(algebra, op, roles, (left, right), side, value, part)
    assert isinstance(left, View) and isinstance(right, View)
    return recognise(algebra, lambda views: _dot_views(algebra, roles, *views, part=part), [left, right])


def _dot_views(algebra: Algebra, roles: DotRoles, left: View, right: View, *, part: bool = False) -> View:
    dims = roles.digits(left, right)
    a = _spread(left, roles.left, dims)
    b = _spread(right, roles.right, dims)
    product = multiply(algebra, a, b)
    if (
        not algebra.sequential
        and algebra.is_familiar(a)
        and algebra.is_familiar(b)
        and not algebra.is_familiar(product)
    ):
        # A rank that holds one head may have no axis for it where the sequential program sums over heads.
        longer = multiply(algebra, *(View((*dims, (1,)), v.addends) for v in (a, b)))
        product = longer if algebra.is_familiar(longer) else product
    found = _reduce_view(algebra, "sum", product, range(roles.result_rank, len(product.dims)), part)
    if algebra.sequential or algebra.is_familiar(found) or algebra.is_strange(left, right):
        return found
    # or their product is read at one head
    return _at_one(algebra, "sum", product, range(roles.result_rank, len(product.dims)), part, found)


class DotRoles:
    """For every operand axis of a contraction its axis in (batch, left free, right free, contracted)."""

    def __init__(self, op: ops.DotGeneral, left_rank: int, right_rank: int) -> None:
        left_free = [a for a in range(left_rank) if a not in (*op.lhs_batch, *op.lhs_contracting)]
        right_free = [a for a in range(right_rank) if a not in (*op.rhs_batch, *op.rhs_contracting)]
        batch = len(op.lhs_batch)
        self.result_rank = batch + len(left_free) + len(right_free)
        self.left = {a: k for k, a in enumerate(op.lhs_batch)}
        self.left |= {a: batch + k for k, a in enumerate(left_free)}
        self.left |= {a: self.result_rank + k for k, a in enumerate(op.lhs_contracting)}
        self.right = {a: k for k, a in enumerate(op.rhs_batch)}
        self.right |= {a: batch + len(left_free) + k for k, a in enumerate(right_free)}
        self.right |= {a: self.result_rank + k for k, a in enumerate(op.rhs_contracting)}

    def digits(self, left: View, right: View) -> tuple[Digits, ...]:
        """Common digits of all the axes."""
        total = 1 + max((*self.left.values(), *self.right.values()), default=-1)
        found: list[list[Digits]] = [[] for _ in range(total)]
        for view, roles in ((left, self.left), (right, self.right)):
            for axis, role in roles.items():
                found[role].append(view.dims[axis])
        return tuple(common_digits(many) for many in found)


def _spread(view: View, roles: dict[int, int], dims: tuple[Digits, ...]) -> View:
    """The view over more axes: its own axes take the places that roles say, others do not occur."""
    fine = refine(view, [dims[roles[axis]] for axis in range(len(view.dims))])
    names, target = variables_of(fine.dims), variables_of(dims)
    replacements: list[Index] = [(0, ())] * sum(len(d) for d in fine.dims)
    for axis, mine in enumerate(names):
        for old, new in zip(mine, target[roles[axis]], strict=True):
            replacements[old] = (0, ((new, 1),))
    return with_digits(fine, dims, replacements)


def _dot_pieces(
    algebra: Algebra,
    op: ops.DotGeneral,
    roles: DotRoles,
    values: tuple[Value, Value],
    side: int,
    mine: Pieces,
    inside: bool,
) -> Value:
    axis, outer = mine.axis, mine.outer
    role = (roles.left, roles.right)[side][axis]
    shared = {r: a for a, r in (roles.right, roles.left)[side].items()}
    other_axis, other = shared.get(role), values[1 - side]
    results: list[Value] = []
    for part, start, length in lengthwise(mine):
        cut = other if other_axis is None else slice_rows(other, mine, other_axis, start, start + length)
        pair = (part, cut) if side == 0 else (cut, part)
        pair = (plain(pair[0]), plain(pair[1])) if algebra.forms.plain else pair
        results.append(dot_general(algebra, op, *pair, part=inside or role >= roles.result_rank))
    if role >= roles.result_rank:
        return combine(algebra, "sum", results)
    return assemble(results, role, outer)
