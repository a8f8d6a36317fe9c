"""The store of normal-form terms: hash-consed tensors that are total functions of their indices.

A term has axes but no sizes: a slice is only a window of it, so all the windows of a program parallelised over ranks
are windows of one term. Constructors bring every term to one form: index frames are shifted so that the first read
of an axis has offset zero, commutative operands are ordered, sums and products are flat, coefficients move outwards.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import isfinite, prod
from typing import NamedTuple, cast

from rewright.claims.language import (
    Access,
    Accesses,
    Add,
    Addend,
    Apply,
    Content,
    Fold,
    Guard,
    Input,
    Layout,
    Number,
    Opaque,
    Position,
    Ranged,
    Table,
    Take,
    applies,
    folds,
)
from rewright.egraph import EGraph
from rewright.ir.dims import Dim, SizeExpr
from rewright.lifting.terms.forms import Rewrites
from rewright.lifting.terms.index import Frame, compose, identity
from rewright.lifting.terms.order import in_order, operand_key
from rewright.lifting.terms.regions import Box, Region, is_set
from rewright.lifting.terms.regions import add as add_regions
from rewright.lifting.terms.trace import Mark, Trace
from rewright.lifting.terms.value import Parts

ONE = Fraction(1)
NO_REWRITES = Rewrites()
Operand = tuple[int, Access]
"""A term and where it is read."""
Key = tuple[object, tuple[str, ...]]
"""An operator, or what stands for one, and the element types of its operands where these matter."""

COMMUTATIVE = frozenset({"multiply", "maximum", "minimum", "and", "or", "xor", "equal", "not_equal"})
POINTWISE = (Apply, Add, Guard)
"""Kinds of terms that read several operands at the same indices."""
_FINITE = frozenset({"exponential", "tanh", "reciprocal", "greater", "greater_or_equal", "equal", "not_equal"})
DIGITS = frozenset({"divide_integer", "remainder"})
"""Functions of a whole number that are sums of it where it is known to be in one block."""
_PLAIN = frozenset({Apply, Add, Take, Input, Position})
_NOTHING = frozenset[int]()
_LONGEST = 24
_MOST_PRODUCTS = 32
"""Products and sums longer than this are not flattened further, which costs proofs and never soundness."""


class Folded(NamedTuple):
    """A fold over variables: its term, box (in the body's frame), the access of the rest, variables in box order."""

    hole: int
    box: Box
    access: Access
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A name that hides what a term is made of."""


class Label:
    """The contents of a node but for its children, stored once: equal labels are one object."""

    __slots__ = ("arity", "content", "ordered")

    def __init__(self, content: Content | Named, arity: int) -> None:
        self.content = content
        self.arity = arity
        self.ordered = isinstance(content, Add) or (isinstance(content, Apply) and content.function in COMMUTATIVE)
        """Whether the children stand in the order of their numbers."""


class Terms:
    """Hash-consed terms over shared inputs; ``find`` identities of the e-graph name them.

    ``label`` tells what kind a term is. A conclusion from what it is *not* must hold for every term; whoever uses what
    it is reads it on with ``children``, ``accesses``, ``coefficients`` or ``region``, or calls ``see``: those readings
    are what a trace keeps, and what must be the same wherever the trace is used again.
    """

    def __init__(self, rewrites: Rewrites = NO_REWRITES, *, looks_into_data: bool = False) -> None:
        self._rewrites = rewrites
        self.graph = EGraph()
        self.horizon = 0
        """Terms with an identity below this one are the sequential program's; zero while that program is lifted."""
        self.looks_into_data = looks_into_data
        """Whether tests are decided in what is read at data."""
        self._trace: Trace | None = None
        self._labels: dict[tuple[Content | Named, int], Label] = {}
        self.arity: dict[int, int] = {}
        self.open: dict[int, frozenset[int]] = {}
        """The folds and guards inside a term that have no range yet."""
        self.anchors: set[int] = set()
        """Sums that other operators read: they stay whole inside longer sums."""
        self.inside: dict[int, frozenset[int]] = {}
        """The terms whose values guards inside a term test, or quotients and remainders there are of."""
        self.named: dict[int, int] = {}
        """Terms that have a name, and that name."""
        self.infinite: set[int] = set()
        """Terms that may be infinite: they never cancel."""
        self._window: tuple[Dim, ...] | None = None
        self.roots: dict[int, int] = {}
        """By term that is the root of a prime that prime."""
        self.masks: dict[int, list[int]] = {}
        """By term the guards of it."""
        self.tested: set[int] = set()
        """The values that guards of the sequential program test."""
        self.closings: dict[int, list[int]] = {}
        """By fold or guard the terms of it with a range."""
        self.products: dict[int, list[int]] = {}
        """By term the products that it is a factor of, as they were made."""
        self.users: dict[int, list[int]] = {}
        """By term the sums and functions of the sequential program whose last operand it is."""
        self.one = self._add(Number(1), (), 0)
        self.index = self._add(Position(), (), 1)

    def finish_sequential(self) -> None:
        """What is made from here on is the ranks'."""
        self.horizon = len(self.graph)

    @contextmanager
    def over(self, window: tuple[Dim, ...] | None) -> Generator[None]:
        """Make terms with variables that count so far; None for variables of no view."""
        before, self._window = self._window, window
        try:
            yield
        finally:
            self._window = before

    @property
    def window(self) -> tuple[Dim, ...] | None:
        """How far the variables of the view count that is being computed, where that may matter."""
        return self._window

    @contextmanager
    def traced(self, trace: Trace | None) -> Generator[Trace | None]:
        """Note in a trace, or nowhere, what is read and made; gives what was noted in before."""
        before, self._trace = self._trace, trace
        try:
            yield before
        finally:
            self._trace = before

    def _add(self, content: Content | Named, children: tuple[int, ...], arity: int) -> int:
        label = self._labels.get((content, arity))
        if label is None:
            label = self._labels[content, arity] = Label(content, arity)
        term = self.place(label, children)
        if self._trace is not None:
            self._trace.note_term(term, label, children)
        return self.name(term) if term in self.named else term

    def name(self, term: int) -> int:
        """The term by a name that hides what it is made of; from now on whoever makes the term gets the name."""
        return self._add(Named(), (term,), self.arity[term])

    def place(self, label: Label, children: tuple[int, ...]) -> int:
        """The term of a label and children."""
        term = self.graph.add(label, children)
        if term not in self.arity:
            self._describe(term, label, children)
            if not self.horizon and isinstance(label.content, POINTWISE) and len(children) > 1:
                self.users.setdefault(max(children), []).append(term)
        return term

    def _describe(self, term: int, label: Label, children: tuple[int, ...]) -> None:
        """Derive what is known of a new term."""
        content = label.content
        self.arity[term] = label.arity
        hidden = isinstance(content, Named)
        if hidden:
            self.named[children[0]] = term
        elif isinstance(content, Guard):
            self.masks.setdefault(children[1], []).append(term)
            if not self.horizon:
                self.tested.add(children[0])
        elif isinstance(content, Ranged):
            self.closings.setdefault(children[0], []).append(term)
        # Nobody decides the guards that a name hides.
        is_digit = isinstance(content, Apply) and content.function in DIGITS
        is_plain = not is_digit and type(content) in _PLAIN
        if hidden or (is_plain and all(not self.open[c] and not self.inside[c] for c in children)):
            self.open[term] = self.inside[term] = _NOTHING
            if not self.infinite.isdisjoint(children) and self._spreads_infinity(label, children):
                self.infinite.add(term)
            return
        holes = _union([self.open[c] for c in children])
        if isinstance(content, Fold | Guard):
            holes |= {term}
        elif isinstance(content, Ranged):
            holes -= {children[0]}
        self.open[term] = holes
        tested = _union([self.inside[c] for c in children])
        self.inside[term] = tested | {children[0]} if is_digit or isinstance(content, Guard) else tested
        is_infinite = isinstance(content, Number) and content.value != 1
        is_infinite |= isinstance(content, Table) and not _all_finite(content.values)
        if is_infinite or self._spreads_infinity(label, children):
            self.infinite.add(term)

    def _spreads_infinity(self, label: Label, children: tuple[int, ...]) -> bool:
        content = label.content
        if isinstance(content, Take | Guard):  # a place and what is tested are finite, whatever they are computed from
            children = children[:1] if isinstance(content, Take) else children[1:]
        if self.infinite.isdisjoint(children):
            return False
        if isinstance(content, Opaque) and getattr(content.op, "result", "values") == "indices":  # of what is ordered
            return False
        return not (isinstance(content, Apply) and content.function in _FINITE)

    def label(self, term: int) -> Content | Named:
        """The label of a term's first node."""
        return self.node_label(term).content

    def node_label(self, term: int) -> Label:
        """The same as the object that all nodes of that label share."""
        return cast("Label", self.graph.node(term)[0])

    def see(self, term: int) -> Content | Named:
        """The label of a term, to use what it says."""
        if self._trace is not None:
            self._trace.note_use(term)
        return self.node_label(term).content

    def look_into(self, term: int) -> Content | Named:
        """The label of an operator without laws, to use what it computes."""
        if self._trace is not None:
            self._trace.opened.add(term)
        return self.see(term)

    def mark(self, mark: Mark, term: int) -> None:
        """Ask or note something of a term, and of whichever stands for it where a trace is used again."""
        mark(term)
        if self._trace is not None:
            self._trace.marks.append((mark, term))

    def accesses(self, term: int) -> Accesses:
        """Where a node reads each of its children."""
        return cast("Apply", self.see(term)).accesses

    def coefficients(self, term: int) -> tuple[Fraction, ...]:
        """The coefficients of a sum."""
        return cast("Add", self.see(term)).coefficients

    def operands(self, operand: Operand) -> list[Operand]:
        """What a node reads where it is read itself."""
        term, access = operand
        pairs = zip(self.children(term), self.accesses(term), strict=True)
        return [(child, compose(own, access)) for child, own in pairs]

    def mask(self, operand: Operand) -> tuple[Operand, Operand, Region] | None:
        """For what is another tensor where an integer lies in a set, and zero elsewhere: integer, tensor and set."""
        term, access = operand
        hole = self.children(term)[0] if isinstance(self.label(term), Ranged) else None
        if hole is None or not isinstance(self.label(hole), Guard):
            return None
        value, body = self.operands((hole, access))
        return value, body, self.region(term)

    def remake(self, term: int, found: Sequence[Addend]) -> Addend:
        """A sum or a function of other operands, all of them closed."""
        label = self.label(term)
        if isinstance(label, Add):
            parts = [(c * a.coefficient, a.term, a.access) for c, a in zip(self.coefficients(term), found, strict=True)]
            return self.add(parts) or Addend(Fraction(0), self.one, ())
        if applies(label, "multiply"):
            scale = prod((a.coefficient for a in found), start=ONE)
            return Addend(scale, *self.multiply([(a.term, a.access) for a in found]))
        return Addend(ONE, *self.apply(cast("Apply", label).function, [self.freeze(a) for a in found]))

    def region(self, term: int) -> Region:
        """The region of a ranged fold or guard."""
        return cast("Ranged", self.see(term)).region

    def axes(self, term: int) -> tuple[int, ...]:
        """The axes of a fold."""
        return cast("Fold", self.see(term)).axes

    def children(self, term: int) -> tuple[int, ...]:
        """The terms that a term reads."""
        if self._trace is not None:
            self._trace.note_use(term)
        return self.graph.node(term)[1]

    def find_closed(self, hole: int, region: Region) -> int | None:
        """The term of a fold or guard with its range if it exists."""
        label = self._labels.get((Ranged(region), self.arity[hole]))
        found = None if label is None else self.graph.lookup(label, (hole,))
        return None if found is None else self.named.get(found, found)

    def input(self, name: str, rank: int) -> int:
        """A program input."""
        return self._add(Input(name), (), rank)

    def number(self, value: float) -> int:
        """A number that is no rational multiple of one: an infinity or not-a-number."""
        return self._add(Number(repr(value)), (), 0)

    def table(self, shape: tuple[int, ...], values: tuple[object, ...]) -> int:
        """A constant tensor."""
        return self._add(Table(shape, values), (), len(shape))

    def make(self, kind: Callable[[Accesses], Content], operands: Sequence[Operand]) -> Operand:
        """A pointwise node over operands that share variables; returns the term and where those variables read it."""
        frame = Frame()
        accesses = tuple(tuple(frame.place(index) for index in access) for _, access in operands)
        term = self._add(kind(accesses), tuple(t for t, _ in operands), len(frame.shift))
        return term, frame.access()

    def apply(self, function: str, operands: Sequence[Operand]) -> Operand:
        """A scalar function of the operands; a function of one operand keeps that operand's axes."""
        ordered = in_order(operands) if function in COMMUTATIVE else list(operands)
        wide = [k for k, (term, _) in enumerate(ordered) if self.arity[term]]
        if len(wide) == 1:
            term, access = ordered[wide[0]]
            ordered[wide[0]] = (term, identity(self.arity[term]))
            return self.make(partial(Apply, function), ordered)[0], access
        return self._known(self.make(partial(Apply, function), ordered))

    def multiply(self, operands: Sequence[Operand]) -> Operand:
        """The flat product."""
        factors: list[Operand] = []
        for term, access in operands:
            if term == self.one:
                continue
            label = self.label(term)
            if applies(label, "multiply") and len(factors) + len(self.children(term)) <= _LONGEST:
                factors += self.operands((term, access))
            else:
                factors.append((term, access))
        factors = self._rewrites.cancel(self, factors)
        if not factors:
            return self.one, ()
        if len(factors) == 1:
            return factors[0]
        found = self.apply("multiply", factors)
        for term in {term for term, _ in factors}:
            known = self.products.setdefault(term, [])
            if found[0] not in known[-1:]:
                known.append(found[0])
        return found

    def strides(self, term: int, other: int) -> set[tuple[int, Dim]]:
        """How products of two terms read the first: along which of its axes with which strides."""
        found: set[tuple[int, Dim]] = set()
        for made in self.products.get(term, ())[:_MOST_PRODUCTS]:
            children = self.children(made)
            if other not in children:
                continue
            for child, access in zip(children, self.accesses(made), strict=True):
                if child == term:
                    found.update((place, stride) for place, (_, strides) in enumerate(access) for _, stride in strides)
        return found

    def add(self, addends: Sequence[tuple[Fraction, int, Access]]) -> Addend | None:
        """The flat sum with its leading coefficient moved outwards; None where it is zero."""
        total: dict[tuple[Operand, bool], Fraction] = {}
        for coefficient, term, access in addends:
            for factor, operand in self.summands(term, access):
                number = coefficient * factor
                # An infinity minus itself is no number: what may be infinite keeps positive and negative apart.
                key = operand, number < 0 and not self._cancels(operand)
                total[key] = total.get(key, Fraction(0)) + number
        kept = [(operand, negative, c) for (operand, negative), c in total.items() if c]
        items = [(operand, c) for operand, _, c in sorted(kept, key=lambda item: (operand_key(item[0]), item[1]))]
        if not items:
            return None
        if len(items) == 1:
            (term, access), coefficient = items[0]
            return Addend(coefficient, term, access)
        leading = next(c for (term, _), c in items if term != self.one)
        coefficients = tuple(c / leading for _, c in items)
        made = Addend(leading, *self.make(partial(Add, coefficients), [o for o, _ in items]))
        return self._instance(made) or made

    def _instance(self, made: Addend) -> Addend | None:
        return self._rewrites.instance(self, made) if made.term >= self.horizon > 0 else None

    def _cancels(self, operand: Operand) -> bool:
        return operand[0] not in self.infinite or self._rewrites.is_finite(self, operand)

    def summands(self, term: int, access: Access) -> list[tuple[Fraction, Operand]]:
        """The addends of a sum that is no anchor, else the term alone."""
        if term in self.anchors or not isinstance(self.label(term), Add) or len(self.children(term)) > _LONGEST:
            return [(ONE, (term, access))]
        return self.expand(term, access)

    def expand(self, term: int, access: Access) -> list[tuple[Fraction, Operand]]:
        """The addends of a sum, whoever else reads it."""
        label = self.label(term)
        if not isinstance(label, Add):
            return [(ONE, (term, access))]
        return list(zip(self.coefficients(term), self.operands((term, access)), strict=True))

    def freeze(self, addend: Addend) -> Operand:
        """The addend as a term of its own, its coefficient inside."""
        if addend.coefficient == 1:
            return addend.term, addend.access
        if addend.term == self.one:
            return self._add(Add((addend.coefficient,), ((),)), (self.one,), 0), ()
        axes = identity(self.arity[addend.term])
        term, _ = self.make(partial(Add, (addend.coefficient,)), [(addend.term, axes)])
        return term, addend.access

    def fold(self, kind: str, body: int, axes: tuple[int, ...]) -> int:
        """The family of sums (or maxima, ..) of a term over ranges of some axes that are not yet given."""
        return self._add(Fold(kind, axes), (body,), self.arity[body] - len(axes))

    def fold_over(self, kind: str, operand: Operand, ranges: Mapping[int, tuple[Dim, Dim]]) -> Folded:
        """Fold an operand over some of its variables.

        Every variable of ``ranges`` must occur in the operand's access.
        """
        term, access = operand
        axes = _lone_axes(access, ranges)
        if axes is None:
            term, access = self.make(partial(Apply, "identity"), [operand])
            axes = _lone_axes(access, ranges)
            assert axes is not None
        box: list[tuple[Dim, Dim]] = []
        order: list[int] = []
        for axis in axes:
            constant, ((var, _),) = access[axis]
            low, high = ranges[var]
            box.append((low + constant, high + constant))
            order.append(var)
        rest = tuple(index for axis, index in enumerate(access) if axis not in axes)
        return Folded(self.fold(kind, term, tuple(axes)), tuple(box), rest, tuple(order))

    def flat(self, fold: int, region: Region) -> tuple[int, Region]:
        """A sum over a region of sums over another one as one sum over both; any other fold as it is."""
        if not folds(self.label(fold), "sum"):
            return fold, region
        (body,) = self.children(fold)
        if not isinstance(self.label(body), Ranged):
            return fold, region
        (hole,) = self.children(body)[:1]
        if not folds(self.label(hole), "sum"):
            return fold, region
        return self.nest(hole, self.region(body), self.axes(fold), region)

    def nest(self, hole: int, inner: Region, axes: tuple[int, ...], outer: Region) -> tuple[int, Region]:
        """The sum over some axes of what a sum over a region leaves, as one sum over the axes of both."""
        own = self.axes(hole)
        (body,) = self.children(hole)
        left = [axis for axis in range(self.arity[body]) if axis not in own]
        places = (*own, *(left[axis] for axis in axes))
        order = sorted(range(len(places)), key=places.__getitem__)
        boxes = [((*a, *b), c * d) for a, c in inner for b, d in outer]
        region = add_regions([tuple((tuple(box[k] for k in order), c) for box, c in boxes)])
        return self.fold("sum", body, tuple(places[k] for k in order)), region

    def set_range(self, fold: int, region: Region) -> int:
        """A fold or guard with its range."""
        return self._add(Ranged(region), (fold,), self.arity[fold])

    def guard(self, value: Operand, body: Operand) -> Operand:
        """``body`` where the integer ``value`` lies in a set that is not yet given, else zero."""
        if not self.arity[body[0]] or body[0] == self.one:
            term, access = value
            return self.make(Guard, [(term, identity(self.arity[term])), body])[0], access
        return self._known(self.make(Guard, [value, body]))

    def _known(self, operand: Operand) -> Operand:
        """The same as an instance of a term that is known, where there is one."""
        found = self._instance(Addend(ONE, *operand))
        return operand if found is None else (found.term, found.access)

    def take(self, operands: Sequence[Operand]) -> Operand:
        """The first operand read where variable ``-k`` stands for the value of operand ``k``."""
        return self.make(Take, operands)

    def opaque(
        self, key: Key, layout: Layout, operands: Sequence[Operand], bound: Mapping[int, Dim], own: int
    ) -> Operand:
        """A function known by its key alone, of windows of its operands.

        Variables in ``bound`` run over the given lengths inside of the function; the others are axes of the result,
        followed by ``own`` axes that the function makes.
        """
        frame = Frame()
        opened = [frame.open(access) if len(operands) == 1 else access for _, access in operands]
        accesses = tuple(tuple(frame.place(index) for index in access) for access in opened)
        order = list(frame.shift)
        # One that does not occur keeps its place: a repeated row is not a repeated column.
        windows = tuple((order.index(v), frame.shift[v], n) if v in frame.shift else None for v, n in bound.items())
        inner = {window[0] for window in windows if window is not None}
        content = Opaque(*key, layout, own, windows, accesses)
        term = self._add(content, tuple(t for t, _ in operands), len(order) - len(inner) + own)
        outer = [frame.outer(v) for k, v in enumerate(order) if k not in inner]
        return term, tuple(outer)

    def size(self, value: SizeExpr) -> Operand:
        """A size symbol expression as a number: the one at that place of an index."""
        return self.index, ((value, ()),)

    def reads_named(self, term: int) -> bool:
        """Whether a term is made of something that has a name."""
        return bool(self.named) and any(isinstance(self.label(t), Named) for t in self._below(term))

    def inputs(self, term: int) -> set[str]:
        """The names of the program inputs that a term reads."""
        return {content.name for t in self._below(term) if isinstance(content := self.label(t), Input)}

    def _below(self, term: int) -> set[int]:
        """A term and all that it is made of."""
        stack, seen = [term], {term}
        while stack:
            for child in self.graph.node(stack.pop())[1]:
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return seen

    def tests(self, term: int, value: int) -> list[Region]:
        """The sets that guards on a value directly in a term, or in its addends, test."""
        found: list[Region] = []
        children = self.children(term)
        if len(children) == 1 and isinstance(self.label(term), Add):  # a multiple of a sum
            children = (*children, *self.children(children[0]))
        for child in (term, *children):
            masked = self.mask((child, identity(self.arity[child])))
            if masked is not None and masked[0][0] == value and masked[2] not in found and is_set(masked[2]):
                found.append(masked[2])
        return found

    def predicate(self, term: int) -> tuple[Operand, Region] | None:
        """For an indicator ``value in set``: the value, read at the indicator's axes, and the set."""
        masked = self.mask((term, identity(self.arity[term])))
        if masked is None or masked[1][0] != self.one or not is_set(masked[2]):
            return None
        return masked[0], masked[2]

    def parts_kind(self, parts: Parts) -> str:
        """The reduction of the folds in ``parts``: sum unless one of them is another."""
        for hole, _ in parts:
            label = self.see(hole)
            if isinstance(label, Fold) and label.kind != "sum":
                return label.kind
        return "sum"


def _union(sets: Sequence[frozenset[int]]) -> frozenset[int]:
    """The union, as one of the sets where that is possible: most terms have what their operands have."""
    largest = max(sets, key=len, default=frozenset[int]())
    return largest if all(s <= largest for s in sets) else largest.union(*sets)


def _all_finite(values: object) -> bool:
    return isinstance(values, tuple) and all(isfinite(v) for v in cast("tuple[float, ...]", values))


def _lone_axes(access: Access, variables: Container[int]) -> list[int] | None:
    """The axes that read the variables, where each is read alone, once and with stride one; else None."""
    found: dict[int, int] = {}
    for axis, (_, terms) in enumerate(access):
        for var, stride in terms:
            if var in variables:
                if len(terms) > 1 or stride != 1 or var in found:
                    return None
                found[var] = axis
    return sorted(found.values())
