"""What claims mean: the elements of tensors of the certificate's language, in the normal form of scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Union, cast

from rewright.claims import language
from rewright.claims.language import Access, Definition, Index, Pieces, Region, Tensor, View
from rewright.ir.dims import Dim, product
from rewright.ir.dims import symbol as size_symbol
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.proof.denoting import ApplicationAt, Reading
from rewright.proof.forms import holes
from rewright.proof.programs import Applied
from rewright.terms.normal.arithmetic.cases import branch, each, finite, only_where
from rewright.terms.normal.arithmetic.division import floor_quotient, floor_remainder
from rewright.terms.normal.decision.regrouping import with_atom
from rewright.terms.normal.denoting.casts import truncate
from rewright.terms.normal.denoting.denote import Denoter, Place
from rewright.terms.normal.denoting.tables import fixed
from rewright.terms.normal.facts.context import Context, Universal
from rewright.terms.normal.facts.guards import (
    MINUS_INFINITY,
    MISSING,
    PLUS_INFINITY,
    Choice,
    Guard,
    Infinite,
    Leaf,
    Value,
    at_least,
    at_least_zero,
    is_zero,
    less_than,
)
from rewright.terms.normal.folds.sums import sum_over
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Atom,
    Element,
    Floor,
    Function,
    Number,
    Polynomial,
    TooHard,
    polynomial,
    symbol,
)
from rewright.terms.normal.polynomials.ranged import Fold as FoldAtom

Parts = Mapping[int, Region]

_COMPARISONS = {
    "greater": "compare_GT",
    "greater_or_equal": "compare_GE",
    "equal": "compare_EQ",
    "not_equal": "compare_NE",
}


_Window = Union[tuple[int, Dim, Dim], None]
_Slot = Union[int, list[tuple[_Window, Dim]]]


Known = Callable[[Place, Polynomial], Iterable[tuple[Union[Guard, bool], bool]]]
"""What is known of the value that a term has at an index."""


_EXTREMES: dict[str, Value] = {"maximum": MINUS_INFINITY, "minimum": PLUS_INFINITY, "or": ZERO, "and": ONE}
"""What folds that take the largest or the smallest value give for no values."""

BITWISE = "bitwise_"
"""Before the names of functions of the bits of integers, which have the names of functions of truth values."""


class Meaning:
    """Elements of claimed tensors; a term without a definition is a free tensor, known by name alone.

    With ``named`` the elements of inputs are those that a program reads; else a term is known by its number alone.
    """

    def __init__(
        self,
        denoter: Denoter,
        definitions: Mapping[int, Definition],
        integers: frozenset[int],
        *,
        named: bool = False,
    ) -> None:
        self._named = named
        self._denoter = denoter
        self._context: Context = denoter.context
        self.definitions = definitions
        self._integers = integers
        self._inside: dict[int, frozenset[int]] = {}
        self._known: dict[int, list[Known]] = {}
        self._laid: dict[tuple[Dim, ...], tuple[list[Polynomial], list[Polynomial]]] = {}

    def element(self, tensor: Tensor, place: Place) -> Value:
        """The element of a tensor; raises TooHard where the normal form has no rules for it."""
        if isinstance(tensor, View):
            return self.at_digits(
                tensor, [d for i, n in zip(place, tensor.dims, strict=True) for d in self._digits(i, n)]
            )
        index, width = place[tensor.axis], self.total(tensor.lengths)
        row, position = ZERO, index
        if tensor.rows != 1:
            row, position = self.divide(index, width)

        lengths, starts = self._laid_out(tensor.lengths)

        def among(first: int, last: int) -> Value:
            if last - first > 1:
                middle = (first + last) // 2
                lower = less_than(position, starts[middle])
                return branch(self._context, lower, lambda: among(first, middle), lambda: among(middle, last))
            if lengths[first] != ONE:
                return self._of_part(tensor, first, place, row, position - starts[first])
            there = _known(place, position, starts[first])
            return self._of_part(tensor, first, there, row, ZERO)

        return among(0, len(lengths))

    def _laid_out(self, sizes: tuple[Dim, ...]) -> tuple[list[Polynomial], list[Polynomial]]:
        """The lengths of parts, and where each starts."""
        found = self._laid.get(sizes)
        if found is None:
            lengths = [self.size(length) for length in sizes]
            found = self._laid[sizes] = lengths, list(accumulate(lengths, initial=ZERO))
        return found

    def _of_part(self, pieces: Pieces, number: int, place: Place, row: Polynomial, position: Polynomial) -> Value:
        """An element of one piece, at a position along a row."""
        part, axis, length = pieces.parts[number], pieces.axis, pieces.lengths[number]
        if isinstance(part, View) and pieces.rows != 1:
            # Where the digits of the part tell rows from positions there is nothing to merge and divide again.
            for cut in range(1, len(part.dims[axis])):
                if product(part.dims[axis][cut:]) == length:
                    whole = [self._digits(i, n) for i, n in zip(place, part.dims, strict=True)]
                    outer, inner = part.dims[axis][:cut], part.dims[axis][cut:]
                    whole[axis] = [*self._digits(row, outer), *self._digits(position, inner)]
                    return self.at_digits(part, [digit for own in whole for digit in own])
        inner = row * self.size(length) + position
        return self.element(part, (*place[:axis], inner, *place[axis + 1 :]))

    def at_digits(self, view: View, digits: Sequence[Polynomial]) -> Value:
        """The element of a view at values of its digits."""
        total: Value = ZERO
        for addend in view.addends:
            value = self._at(addend.term, self._access(addend.access, digits), dict(addend.parts))
            total = self._plus(total, self._scale(value, addend.coefficient))
        return total

    def term(self, term: int, place: Place) -> Value:
        """The element of a term."""
        return self._at(term, place, {})

    def size(self, size: Dim) -> Polynomial:
        """A size as a number of the normal form."""
        return self._denoter.sizes(size)

    def total(self, sizes: Sequence[Dim]) -> Polynomial:
        """The sum of sizes."""
        return self._laid_out(tuple(sizes))[1][-1]

    def divide(self, value: Polynomial, by: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Quotient and remainder of an index."""
        return floor_quotient(self._context, value, by), floor_remainder(self._context, value, by)

    def _digits(self, index: Polynomial, lengths: Sequence[Dim]) -> list[Polynomial]:
        found: list[Polynomial] = []
        for number, length in enumerate(reversed(lengths)):
            if number == len(lengths) - 1:
                found.append(ZERO if length == 1 else index)
                break
            index, digit = self.divide(index, self.size(length))
            found.append(digit)
        return found[::-1]

    def _access(self, access: Access, values: Mapping[int, Value] | Sequence[Value]) -> tuple[Value, ...]:
        return tuple(self._index(index, values) for index in access)

    def _index(self, index: Index, values: Mapping[int, Value] | Sequence[Value]) -> Value:
        constant, terms = index
        total: Value = self.size(constant)
        for variable, stride in terms:
            value, factor = values[variable], self.size(stride)
            if isinstance(total, Polynomial) and isinstance(value, Polynomial):
                total = total + factor * value
            else:
                total = each(self._context, _plus_times(factor), total, value)
        return total

    def _plus(self, left: Value, right: Value) -> Value:
        return right if left == ZERO else self._denoter.apply("add", (left, right), True)

    def _scale(self, value: Value, factor: Fraction | int) -> Value:
        return value if factor == 1 else each(self._context, _times(factor), value)

    def _at(self, term: int, place: tuple[Value, ...], parts: Parts) -> Value:
        """The element of a term; ``parts`` are the ranges of the folds and guards inside it that have none."""
        if all(isinstance(i, Polynomial) for i in place):
            index = cast("Place", place)
            key = ("term", term, index, tuple(sorted(parts.items())))
            found = self._context.memo(key)
            if found is None:
                found = self._define(term, index, parts)
                if term in self._integers:
                    _check_integer(found)
                if term in self._known and isinstance(found, Polynomial):
                    self._tell(term, index, found)
                self._context.remember(key, found)
            return found
        return each(self._context, lambda *leaves: self._at(term, tuple(finite(i) for i in leaves), parts), *place)

    def learn(self, term: int, known: Known) -> None:
        """Use what is known of a term that has a definition, wherever it is read."""
        self._known.setdefault(term, []).append(known)

    def _tell(self, term: int, index: Place, value: Polynomial) -> None:
        """Enter what is known of a term's value, now and where the same element is met again."""
        element = value.atom()
        for known in self._known[term]:
            if isinstance(element, Element):
                self._context.universal.setdefault(element.tensor, []).append(_of_one(element, index, known))
            for guard, polarity in known(index, value):
                self._context.add(guard, polarity)

    def _define(self, term: int, index: Place, parts: Parts) -> Value:
        definition = self.definitions.get(term)
        content = None if definition is None else definition.content
        if definition is None or content is None or isinstance(content, language.Input | language.Table):
            if parts:
                raise TooHard("a range for a term that takes none")
            entry = _entry(content, index) if isinstance(content, language.Table) else None
            # Where inputs have their own names none of them is that of a term.
            own = f"\0t{term}" if self._named else f"t{term}"
            name = content.name if self._named and isinstance(content, language.Input) else own
            return polynomial(Element(name, index, term in self._integers)) if entry is None else entry
        if isinstance(content, language.Fold | language.Guard):
            return self._range(definition, index, parts[term], {k: v for k, v in parts.items() if k != term})
        if isinstance(content, language.Number):
            return ONE if content.value == 1 else fixed(float(content.value))
        if isinstance(content, language.Position):
            return index[0]
        if isinstance(content, language.Size):
            return self.size(content.value)
        if isinstance(content, language.Ranged):
            return self._range(self.definitions[definition.operands[0]], index, content.region, parts)
        if isinstance(content, language.Opaque):
            return self._opaque(definition, content, index)
        if isinstance(content, language.Take):
            return self._take(definition, index, parts)
        assert isinstance(content, language.Add | language.Apply)
        values = self._operands(definition, index, parts)
        if isinstance(content, language.Apply):
            return self._function(content.function, values)
        return self._sum(content, values)

    def _operands(self, definition: Definition, index: Place, parts: Parts) -> list[Value]:
        return [
            self._at(operand, self._access(access, index), self._open(operand, parts))
            for operand, access in zip(definition.operands, definition.accesses, strict=True)
        ]

    def _open(self, term: int, parts: Parts) -> Parts:
        """Those of the ranges that a term needs."""
        return {hole: region for hole, region in parts.items() if hole in self._holes(term)} if parts else parts

    def _holes(self, term: int) -> frozenset[int]:
        """The folds and guards inside a term that have no range."""
        found = self._inside.get(term)
        if found is None:
            definition = self.definitions.get(term)
            inner = [self._holes(operand) for operand in definition.operands] if definition is not None else []
            found = self._inside[term] = holes(term, definition, inner)
        return found

    def _sum(self, content: language.Add, values: Sequence[Value]) -> Value:
        total: Value = ZERO
        for coefficient, value in zip(content.coefficients, values, strict=True):
            total = self._plus(total, self._scale(value, coefficient))
        return total

    def _function(self, name: str, arguments: list[Value]) -> Value:
        first = arguments[0]
        if name == "identity":
            return first
        if name == "reciprocal":
            return self._denoter.apply("divide", (ONE, first), True)
        if name in ("where", "where_not"):
            chosen, other = (arguments[1], ZERO) if name == "where" else (ZERO, arguments[1])
            return self._denoter.choose(first, lambda: chosen, lambda: other)
        if name in ("not", "and", "or", "xor"):
            return self._denoter.logical(name, tuple(arguments))
        if name.startswith("convert to ") and name != "convert to i1":
            return each(self._context, truncate, first)
        if name.startswith(BITWISE):
            return self._denoter.bitwise(name.removeprefix(BITWISE), tuple(arguments))
        real = not all(isinstance(value, Polynomial) and value.integer for value in arguments)
        while len(arguments) > 2 and name in ("multiply", "maximum", "minimum"):
            arguments = [self._denoter.apply(name, (arguments[0], arguments[1]), real), *arguments[2:]]
        return self._denoter.apply(_COMPARISONS.get(name, name), tuple(arguments), real)

    def _take(self, definition: Definition, index: Place, parts: Parts) -> Value:
        values: dict[int, Value] = dict(enumerate(index))
        for number, operand in enumerate(definition.operands[1:], start=1):
            place = self._at(operand, self._access(definition.accesses[number], index), {})
            # Terms are functions of integers: elsewhere nothing is known of them.
            _check_integer(place)
            values[-number] = place
        source = definition.operands[0]
        return self._at(source, self._access(definition.accesses[0], values), self._open(source, parts))

    def _opaque(self, definition: Definition, content: language.Opaque, index: Place) -> Value:
        """An operator applied to windows of the operands, by its own denotation.

        ``layout`` has for every axis of every operand the axis of the result that it is read at, or the digits of an
        axis that is read as a whole; ``windows`` place the variables of those in the operands' accesses.
        """
        op, types, readers, place = self._apply(definition, content, index)
        graph = Applied(op, types).graph()
        readings = dict(zip(graph.inputs.values(), readers, strict=True))
        return Reading(self._context, graph, self._denoter.sizes, readings).value(graph.outputs["result"], place)

    def operands(
        self, view: View, digits: Sequence[Polynomial], subject: Applied, place: Place
    ) -> Sequence[Callable[[Place], Value]] | None:
        """What a subject's operands must be for a view to be the subject at a place; None where it is none such.

        A view is that where it is one term, the same operator on whole tensors of the same types. A function gives
        equal results for equal operands, however hard it is to say what it computes.
        """
        term = view.addends[0].term if len(view.addends) == 1 else None
        definition = None if term is None else self.definitions.get(term)
        content = None if definition is None else definition.content
        if definition is None or not isinstance(content, language.Opaque) or content.op != subject.op:
            return None
        (addend,) = view.addends
        if addend.coefficient != 1 or addend.parts:
            return None
        index = tuple([i for i in self._access(addend.access, digits) if isinstance(i, Polynomial)])
        if len(index) != definition.rank:
            return None
        _, types, readers, own = self._apply(definition, content, index)
        kinds = tuple(replace(t, dtype=DType.F32) if t.dtype.is_float else t for t in subject.types)
        return readers if types == kinds and own == place else None

    def applied_at(self, view: View, place: Place) -> tuple[ApplicationAt, Fraction] | None:
        """The one operator that a view applies at a place, and the number that it adds to it; None for other views."""
        if any(a.parts for a in view.addends):
            return None
        digits = [d for i, n in zip(place, view.dims, strict=True) for d in self._digits(i, n)]
        added, others = Fraction(0), list[tuple[Definition, language.Opaque, Place]]()
        stack = [(a.coefficient, a.term, self._access(a.access, digits)) for a in view.addends]
        for coefficient, term, values in stack:
            index = tuple([i for i in values if isinstance(i, Polynomial)])
            definition = self.definitions.get(term)
            if definition is None or len(index) < len(values):
                return None
            content = definition.content
            number = self._at(term, index, {}) if isinstance(content, language.Number | language.Position) else None
            constant = number.constant() if isinstance(number, Polynomial) else None
            if constant is not None:
                added += coefficient * Fraction(constant)
            elif isinstance(content, language.Add):
                read = [self._access(access, index) for access in content.accesses]
                triples = zip(content.coefficients, definition.operands, read, strict=True)
                stack += [(coefficient * c, o, r) for c, o, r in triples]
            elif not isinstance(content, language.Opaque) or coefficient != 1 or len(index) != definition.rank:
                return None
            else:
                others.append((definition, content, index))
        return (self._apply(*others[0]), added) if len(others) == 1 else None

    def _apply(self, definition: Definition, content: language.Opaque, index: Place) -> ApplicationAt:
        """The operator of an opaque term, what it is applied to, and where its result is read."""
        op, kinds, layout = cast("Operator", content.op), content.kinds, content.layout
        own, windows = content.own, content.windows
        inner = {window[0] for window in windows if window is not None}
        outer = iter(index[: len(index) - own])
        frame: dict[int, Value] = {k: next(outer) for k in range(len(index) - own + len(inner)) if k not in inner}
        shared = sorted({axis for axes in layout for axis in axes if isinstance(axis, int)})
        roles = {axis: symbol(self._context.fresh("r")) for axis in shared}
        numbers = iter(windows)
        readers: list[Callable[[Place], Value]] = []
        types: list[TensorType] = []
        for operand, (axes, access) in enumerate(zip(layout, definition.accesses, strict=True)):
            slots = [axis if isinstance(axis, int) else [(next(numbers), n) for n in axis] for axis in axes]
            readers.append(self._window(definition.operands[operand], access, slots, roles, frame))
            shape = tuple(_role_size(axis) if isinstance(axis, int) else product(axis) for axis in axes)
            kind = kinds[operand] if kinds else "float"
            types.append(TensorType(shape, DType.F32 if kind == "float" else DType(kind)))
        owns = iter(index[len(index) - own :])
        place = tuple(roles[a] if a in roles else next(owns) for a in range(len(roles) + own))
        return op, tuple(types), readers, place

    def _window(
        self,
        term: int,
        access: Access,
        slots: Sequence[_Slot],
        roles: Mapping[int, Polynomial],
        frame: Mapping[int, Value],
    ) -> Callable[[Place], Value]:
        """Reads a term at the indices of the operand that it stands for."""

        def read(place: Place) -> Value:
            values = dict(frame)
            for index, slot in zip(place, slots, strict=True):
                if isinstance(slot, int):
                    if index != roles[slot]:
                        raise TooHard("an operator that does not treat an axis one by one")
                    continue
                for digit, (window, _) in zip(self._digits(index, [n for _, n in slot]), slot, strict=True):
                    if window is not None:
                        values[window[0]] = digit + self.size(window[1])
            return self._at(term, self._access(access, values), {})

        return read

    def _range(self, hole: Definition, index: Place, region: Region, parts: Parts) -> Value:
        fold = hole.content
        if not isinstance(fold, language.Fold):
            return self._guard(hole, index, region, parts)
        kind, axes = fold.kind, fold.axes
        total: Value | None = None
        for box, count in region:
            value = self._fold(hole, kind, axes, box, index, parts)
            if kind == "sum":
                value = self._scale(value, count)
                total = value if total is None else self._plus(total, value)
            elif kind in _EXTREMES and count == 1:
                name = "maximum" if kind in ("maximum", "or") else "minimum"
                total = value if total is None else self._denoter.apply(name, (total, value), True)
            else:
                raise TooHard(f"a {kind} that counts a range {count} times")
        return ZERO if total is None else total

    def _fold(
        self, hole: Definition, kind: str, axes: Sequence[int], box: Sequence[object], index: Place, parts: Parts
    ) -> Value:
        """A fold over one box, the innermost binder last."""
        body = hole.operands[0]

        def nest(number: int, bound: dict[int, Polynomial]) -> Value:
            if number == len(axes):
                rest = iter(index)
                full = tuple(bound[a] if a in bound else next(rest) for a in range(len(index) + len(axes)))
                return self._at(body, full, self._open(body, parts))
            low, high = cast("tuple[Dim, Dim]", box[number])
            start, count = self.size(low), self.size(high) - self.size(low)
            if not self._context.holds(at_least_zero(count)):
                raise TooHard("a fold over a range that may run backwards")
            name = self._context.fresh("k")
            with self._context.ranges([(name, ZERO, count)]):
                inner = nest(number + 1, {**bound, axes[number]: symbol(name) + start})
                if kind == "sum":
                    inner = each(self._context, self._denoter.settle, inner)
            if kind == "sum":
                return sum_over(self._context, name, count, inner)
            if kind in _EXTREMES:
                return self._denoter.extreme(kind, _EXTREMES[kind], name, count, inner)
            raise TooHard(f"a fold of kind {kind}")

        return nest(0, {})

    def _guard(self, hole: Definition, index: Place, region: Region, parts: Parts) -> Value:
        (tested, inner), (where, inside) = hole.operands, hole.accesses
        value = self._at(tested, self._access(where, index), {})

        def body(count: Fraction) -> Callable[[], Value]:
            return lambda: self._scale(self._at(inner, self._access(inside, index), self._open(inner, parts)), count)

        total: Value = ZERO
        for ((low, high),), count in region:

            def leaf(one: Leaf, low: Dim | None = low, high: Dim | None = high, count: Fraction = count) -> Value:
                here = body(count)
                number = finite(one)
                if not number.integer:
                    raise TooHard("a guard on a value that may be no integer")
                if low is not None and high is not None and low + 1 == high:
                    return self._where(is_zero(number - self.size(low)), here)()
                if high is not None:
                    here = self._where(less_than(number, self.size(high)), here)
                if low is not None:
                    here = self._where(at_least(number, self.size(low)), here)
                return here()

            total = self._plus(total, each(self._context, leaf, value))
        return total

    def _where(self, guard: Guard | bool, body: Callable[[], Value]) -> Callable[[], Value]:
        return lambda: only_where(self._context, guard, True, body)


def _entry(table: language.Table, index: Place) -> Value | None:
    """The entry of a table at an index of numbers, which must be inside."""
    shape, values = table.shape, cast("tuple[float, ...]", table.values)
    flat = 0
    for place, length in zip(index, shape, strict=True):
        number = place.constant()
        if not isinstance(number, int) or not 0 <= number < length:
            return None
        flat = flat * length + number
    return fixed(values[flat])


def _check_integer(value: Value) -> None:
    """Raise TooHard for what may be no integer: a term that is said to be one is one by its definition."""
    if isinstance(value, Choice):
        _check_integer(value.yes)
        _check_integer(value.no)
    elif not (isinstance(value, Polynomial) and (value.integer or _is_of_integers(value))):
        raise TooHard(f"an integer that is {value}")


def _is_of_integers(value: Polynomial) -> bool:
    """Whether a polynomial is one over integers, or over the last of some; what is absent may be taken for one."""
    return all(
        isinstance(c, int) and all(_is_integer_atom(a) and isinstance(e, int) and e > 0 for a, e in monomial)
        for monomial, c in value.terms.items()
    )


def _is_integer_atom(atom: Atom) -> bool:
    absent = isinstance(atom, Function) and atom.name == f"={MISSING}"
    return atom.integer or absent or (isinstance(atom, FoldAtom) and atom.kind == "last" and _is_of_integers(atom.body))


def _known(place: Place, position: Polynomial, value: Polynomial) -> Place:
    """A place where a position, if that is a quotient and a number, is known to have a value."""
    quotients = [atom for atom in position.atoms() if isinstance(atom, Floor)]
    if len(quotients) != 1:
        return place
    rest = position - polynomial(quotients[0])
    if rest.constant() is None:
        return place
    return tuple(with_atom(index, quotients[0], value - rest) for index in place)


def _role_size(axis: int) -> Dim:
    """The size of an axis that is treated one by one: any."""
    return size_symbol(f"role{axis}")


def _plus_times(factor: Polynomial) -> Callable[[Leaf, Leaf], Value]:
    return lambda left, right: finite(left) + factor * finite(right)


def _times(factor: Number) -> Callable[[Leaf], Value]:
    def times(leaf: Leaf) -> Value:
        if isinstance(leaf, Infinite) and factor:
            return leaf if factor > 0 else Infinite(1 if leaf.sign < 0 else -1)
        return finite(leaf) * factor

    return times


def of_elements(known: Known) -> Universal:
    """What is known of a tensor as what is known of each of its elements."""
    return lambda element: known(element.index, polynomial(element))


def _of_one(element: Element, index: Place, known: Known) -> Universal:
    return lambda other: known(index, polynomial(element)) if other == element else ()
