"""One step of a proof as a statement of its own: what an operator makes of claimed operands is what is claimed.

A statement speaks of terms by local numbers and holds for all tensors in the place of those that it does not define,
so that steps which differ in their terms alone are one lemma, and a lemma is proved once.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import cast

from rewright import ops
from rewright.claims.language import Opaque, Pieces, Region, Tensor, View, views
from rewright.ir.dims import Dim, Rounded, SizeExpr, divide, product
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.proof.denoting import Reading, splits
from rewright.proof.forms import Malformed, shape_of
from rewright.proof.meaning import Known, Meaning, Place, of_elements
from rewright.proof.programs import Applied, Collective, NoMeaning, Subject
from rewright.proof.statement import Fact, Statement
from rewright.proof.winners import FirstOfAll
from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.decision.equality import difference
from rewright.terms.normal.denoting.tables import fixed
from rewright.terms.normal.facts.context import TOO_DEEP, Context, OutOfTime
from rewright.terms.normal.facts.guards import Guard, Value, at_least, at_least_zero, less_than
from rewright.terms.normal.polynomials.atoms import ONE, ZERO, Polynomial, TooHard, polynomial, symbol

_MOST_ENTRIES = 65_536
_MANY_PARTS = 8
"""Up to this many parts of an operand are compared one by one, where a digit of the index selects the part."""
_FEW_RANKS = 16
"""Up to this many ranks a sum of what they hold is written out first, for more only after differences of sums."""


def prove(statement: Statement, seconds: float) -> str | None:
    """Why a statement could not be proved within a time; None where it is proved for all tensors.

    Parts of sums that ranks hold meet as differences of longer sums, or term by term where a rank holds few.
    """
    deadline = time.monotonic() + seconds
    why: str | None = None
    for written_out, digits in itertools.product(_written_out(statement.subject), _digits(statement)):
        context = new_context(deadline - time.monotonic())
        context.written_out = written_out
        found = _prove(statement, context, digits)
        if found is None:
            return None
        why = why or found
    return why


def _digits(statement: Statement) -> Sequence[Mapping[Dim, tuple[Dim, ...]]]:
    """By which digits sums over axes that are made of these are summed, in the order in which that is tried.

    Where a claim is the operator itself on other tensors it is not, and both sides should count alike.
    """
    known, subject = splits(statement.operands), statement.subject
    if not known:
        return ({},)
    said = [own.content.op for _, own in statement.definitions if isinstance(own.content, Opaque)]
    return ({}, known) if isinstance(subject, Applied) and subject.op in said else (known, {})


def _written_out(subject: Subject) -> tuple[int, ...]:
    """How many terms of a sum are written out, in the order in which that is tried."""
    held = len(subject.types) if isinstance(subject, Collective) else 0
    return (max(4, held), 1, 64) if held <= _FEW_RANKS else (1, held, 64)


def _prove(statement: Statement, context: Context, digits: Mapping[Dim, tuple[Dim, ...]]) -> str | None:
    try:
        return _Proof(statement, statement.subject.graph(), context, digits).run()
    except (NoMeaning, Malformed, RewrightError) as error:
        return str(error)
    except TooHard as error:
        return f"no rules for {error}"
    except OutOfTime:
        return "the time for one step is used up"
    except (TypeError, ValueError, IndexError, KeyError) as error:
        # A function of too few or too many operands, an index of too few digits: such a term means nothing.
        return f"a term that has no meaning: {str(error) or type(error).__name__}"
    except (ZeroDivisionError, *TOO_DEEP, OverflowError) as error:
        return f"the term is too hard: {type(error).__name__}"


def size_of(dim: Dim) -> Polynomial:
    """A size as a polynomial."""
    if not isinstance(dim, SizeExpr):
        return polynomial(dim)
    total = ZERO
    for names, coefficient in dim.terms:
        factors = polynomial(coefficient)
        for name in names:
            if isinstance(name, Rounded):
                raise TooHard("a rounded quotient of sizes")
            factors = factors * symbol(name)
        total = total + factors
    return total


class _Proof:
    def __init__(
        self, statement: Statement, graph: Graph, context: Context, digits: Mapping[Dim, tuple[Dim, ...]]
    ) -> None:
        self._statement = statement
        self._graph = graph
        self._context = context
        for name in sorted(_symbols(statement, graph)):
            context.size(name, 1)
        readers = {
            position: partial(self._operand, operand)
            for position, operand in zip(graph.inputs.values(), statement.operands, strict=True)
        }
        self._denoter = Reading(context, graph, size_of, readers, digits)
        self._meaning = Meaning(self._denoter, dict(statement.definitions), statement.integers)
        self._first = FirstOfAll(context, self._meaning.applied_at, self._denoter, self._is_same)
        for term, fact in statement.facts:
            known = known_of(context, fact, self._meaning.size)
            if term in self._meaning.definitions:
                self._meaning.learn(term, known)
            else:
                context.universal.setdefault(f"t{term}", []).append(of_elements(known))

    def _operand(self, operand: Tensor, place: Place) -> Value:
        return self._meaning.element(operand, place)

    def run(self) -> str | None:
        statement = self._statement
        nodes = self._graph.nodes
        claims = [
            (nodes[p].type.shape, t) for p, t in zip(self._graph.inputs.values(), statement.operands, strict=True)
        ]
        if statement.result is not None:
            claims.append((nodes[next(iter(self._graph.outputs.values()))].type.shape, statement.result))
        for shape, claim in claims:
            # What is compared are the elements of a claim, which must be those of the tensor.
            if shape_of(claim) != shape:
                return f"it has the shape {shape} and is claimed to have {shape_of(claim)}"
        first, *second = self._graph.outputs.values()
        shape = self._graph.nodes[first].type.shape
        op = statement.subject.op if isinstance(statement.subject, Applied) else None
        if isinstance(op, ops.Constant) and len(op.values) > 1 and statement.result is not None:
            return self._enumerate(op, statement.result)
        if statement.result is not None:
            return self._against(statement.result, first, lambda place: place)
        likely = next((v for o in statement.operands for v in views(o) if len(v.dims) == len(shape)), None)
        dims = likely.dims if likely is not None and _fits(likely, shape) else tuple((n,) for n in shape)
        with self._context.scope():
            _, place = self._index(dims)
            return self._compare(self._denoter.value(first, place), self._denoter.value(second[0], place))

    def _against(
        self, result: Tensor, position: int, whole: Callable[[Place], Place], rows: Sequence[tuple[int, Dim]] = ()
    ) -> str | None:
        """Compare with a claim part by part; ``whole`` turns an index of this part into one of the result.

        ``rows`` are the axes that run through rows of the whole, with how many: a digit tells in which row an index is.
        """
        if isinstance(result, View):
            dims = list(result.dims)
            for axis, count in rows:
                dims[axis] = _cut_in(dims[axis], count)
            return next(
                (why for n in self._outermost(dims) if (why := self._view(result, dims, n, position, whole))), None
            )
        start = ZERO
        more = rows if result.rows == 1 else (*rows, (result.axis, result.rows))
        for part, length in zip(result.parts, result.lengths, strict=True):
            found = self._against(part, position, self._of_part(result, length, start, whole), more)
            if found is not None:
                return found
            start = start + self._meaning.size(length)
        return None

    def _view(
        self,
        result: View,
        dims: Sequence[tuple[Dim, ...]],
        outermost: int | None,
        position: int,
        whole: Callable[[Place], Place],
    ) -> str | None:
        """Compare with a view at an index of these digits; the outermost may be a number."""
        with self._context.scope():
            digits, place = self._index(dims, outermost)
            if self._is_empty(dims):
                return None
            same = tuple(dims) == result.dims
            if same and self._is_applied_alike(result, digits, whole(place)):
                return None
            if self._first.holds(self._statement.subject, self._statement.operands, result, place, whole(place)):
                return None
            claimed = self._meaning.at_digits(result, digits) if same else self._meaning.element(result, place)
            return self._compare(self._denoter.value(position, whole(place)), claimed)

    def _is_applied_alike(self, result: View, digits: Sequence[Polynomial], place: Place) -> bool:
        """Whether a claim is the same operator on tensors whose every element is the operand's."""
        subject = self._statement.subject
        if not isinstance(subject, Applied):
            return False
        readers = self._meaning.operands(result, digits, subject, place)
        if readers is None:
            return False
        for tensor, kind, reader in zip(self._statement.operands, subject.types, readers, strict=True):
            dims = tensor.dims if isinstance(tensor, View) else tuple((n,) for n in kind.shape)
            with self._context.scope():
                _, at = self._index(dims)
                if (
                    not self._is_empty(dims)
                    and self._compare(self._meaning.element(tensor, at), reader(at)) is not None
                ):
                    return False
        return True

    def _outermost(self, dims: Sequence[tuple[Dim, ...]]) -> Sequence[int | None]:
        """The values of the outermost digit where it tells in which of many parts of an operand it is, or no value."""
        length = next((n for own in dims for n in own if n != 1), None)
        parts = max((len(o.parts) for o in self._statement.operands if isinstance(o, Pieces)), default=0)
        if isinstance(length, int) and _MANY_PARTS <= length <= parts and parts % length == 0:
            return range(length)
        return [None]

    def _of_part(
        self, result: Pieces, length: Dim, start: Polynomial, whole: Callable[[Place], Place]
    ) -> Callable[[Place], Place]:
        """From the index of a part to that of the whole."""
        own, width, axis = self._meaning.size(length), self._meaning.total(result.lengths), result.axis

        def moved(place: Place) -> Place:
            index = place[axis]
            if result.rows != 1:
                row, index = self._meaning.divide(index, own)
                index = row * width + index
            return whole((*place[:axis], index + start, *place[axis + 1 :]))

        return moved

    def _enumerate(self, constant: ops.Constant, result: Tensor) -> str | None:
        """Compare a table with a claim entry by entry."""
        shape = [n for n in constant.tensor.shape if isinstance(n, int)]
        if len(constant.values) > _MOST_ENTRIES:
            return f"a table of {len(constant.values)} entries"
        for place, entry in zip(itertools.product(*map(range, shape)), constant.values, strict=True):
            value = self._meaning.element(result, tuple(polynomial(i) for i in place))
            found = self._compare(fixed(entry), value)
            if found is not None:
                return found
        return None

    def _index(self, dims: Sequence[Sequence[Dim]], outermost: int | None = None) -> tuple[list[Polynomial], Place]:
        """A fresh index in range, whose outermost digit may be given: its digits, and the indices they make."""
        digits: list[Polynomial] = []
        place: list[Polynomial] = []
        for lengths in dims:
            index = ZERO
            for length in lengths:
                size, digit = self._meaning.size(length), ZERO
                if size != ONE and outermost is not None:
                    digit, outermost = polynomial(outermost), None
                elif size != ONE:
                    name = self._context.fresh("i")
                    self._context.range(name, ZERO, size)
                    digit = symbol(name)
                digits.append(digit)
                index = index * size + digit
            place.append(index)
        return digits, tuple(place)

    def _is_empty(self, dims: Sequence[Sequence[Dim]]) -> bool:
        """Whether there is no index at all."""
        lengths = [length for own in dims for length in own]
        if all(isinstance(length, int) for length in lengths):
            return any(isinstance(length, int) and length < 1 for length in lengths)
        return self._context.contradictory()

    def _is_same(self, left: Value, right: Value) -> bool:
        return self._compare(left, right) is None

    def _compare(self, left: Value, right: Value) -> str | None:
        found = difference(self._context, left, right)
        if found is None:
            return None
        return f"it is {_short(found.left)} and is claimed to be {_short(found.right)}"


def known_of(context: Context, fact: Fact, size: Callable[[Dim], Polynomial]) -> Known:
    """What a fact says of a term's value at an index, which must lie in its window."""

    def is_inside(index: Place) -> bool:
        decide = context.decide_cheaply
        for place, (start, length) in zip(index, fact.window or (), strict=fact.window is not None):
            if not (decide(at_least(place, size(start))) and decide(less_than(place, size(start) + size(length)))):
                return False
        return True

    def of(index: Place, value: Polynomial) -> Iterator[tuple[Guard | bool, bool]]:
        if is_inside(index):
            yield from ((guard, True) for guard in allowed_guards(value, fact.allowed, size))

    return of


def allowed_guards(value: Polynomial, region: Region, size: Callable[[Dim], Polynomial]) -> Iterator[Guard | bool]:
    """That an integer lies in a set of intervals in ascending order: the ends, and that it is in none of the gaps."""
    ranges = [box[0] for box, _ in region]
    if not ranges:
        yield False
        return
    (first, _), (_, last) = ranges[0], ranges[-1]
    if first is not None:
        yield at_least(value, size(first))
    if last is not None:
        yield less_than(value, size(last))
    for (_, stop), (start, _) in zip(ranges, ranges[1:], strict=False):
        if stop is not None and start is not None:
            yield at_least_zero((value - size(stop) + 1) * (value - size(start)))


def _cut_in(digits: tuple[Dim, ...], count: Dim) -> tuple[Dim, ...]:
    """The digits of an index, one of them cut in two if that makes the first digits an index below ``count``."""
    rest = count
    for number, length in enumerate(digits):
        inner = divide(length, rest)
        if inner is not None:
            return digits if inner == 1 else (*digits[:number], rest, inner, *digits[number + 1 :])
        fewer = divide(rest, length)
        if fewer is None:
            inner = divide(product(digits), count)
            return digits if inner is None else (count, inner)
        rest = fewer
    return digits


def _fits(view: View, shape: Sequence[Dim]) -> bool:
    return all(product(digits) == size for digits, size in zip(view.dims, shape, strict=True))


def _symbols(statement: Statement, graph: Graph) -> frozenset[str]:
    """The size symbols of a statement, wherever they stand."""
    found: set[str] = set()
    stack: list[object] = [statement.operands, statement.result, statement.definitions, statement.facts]
    stack += [(node.type.shape, node.op) for node in graph.nodes]
    while stack:
        value = stack.pop()
        kind = type(value)
        # Nearly all that there is are integers in tuples.
        if kind is tuple:
            stack.extend([one for one in cast("tuple[object, ...]", value) if type(one) is not int])
        elif isinstance(value, SizeExpr):
            found |= value.symbols()
        else:
            stack.extend([getattr(value, name) for name in _parts(kind)])
    return frozenset(found)


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The names of what values of a class are made of; none where it is no record."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
