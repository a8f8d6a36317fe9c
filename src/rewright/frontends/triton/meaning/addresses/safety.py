"""What holds of indices for all sizes, instances, iterations and lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rewright.frontends.triton.meaning.addresses.indices import DATA, variables
from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.graph import Graph
from rewright.terms.claim import Claim
from rewright.terms.index import Index, Quotient, Remainder, Variable
from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.arithmetic.division import floor_quotient, floor_remainder
from rewright.terms.normal.decision.assumptions import Assumptions
from rewright.terms.normal.facts.context import Context, OutOfTime
from rewright.terms.normal.facts.guards import at_least_zero
from rewright.terms.normal.polynomials.atoms import ZERO, Polynomial, TooHard, symbol

_SECONDS = 10.0
"""Processor time that one question may take."""


class Ranges:
    """Proves inequalities between indices, from the ranges of variables and from conditions."""

    def __init__(self, conditions: Iterable[Index] = ()) -> None:
        self._conditions = tuple(conditions)
        """What is known of sizes."""
        self._known: dict[object, bool] = {}

    def assume(self, *parts: Index) -> None:
        """Take for granted that these are at least zero."""
        self._conditions = (*self._conditions, *parts)
        self._known = {key: value for key, value in self._known.items() if value}

    def implies(self, sizes: Mapping[str, Dim], given: Sequence[Index], wanted: Index) -> bool:
        """Whether ``wanted >= 0`` wherever all of ``given`` are at least zero; variables count up to their sizes."""
        own = {n: sizes[n] for part in (*given, wanted) for n in variables(part) if not n.startswith(DATA)}
        key = (tuple(sorted(own.items(), key=lambda item: item[0])), tuple(given), wanted)
        if key not in self._known:
            self._known[key] = self._decide(own, given, wanted)
        return self._known[key]

    def holds(self, sizes: Mapping[str, Dim], given: Sequence[Index], wanted: Iterable[Index]) -> bool:
        """Whether all of ``wanted`` are implied."""
        return all(self.implies(sizes, given, part) for part in wanted)

    def _decide(self, sizes: Mapping[str, Dim], given: Sequence[Index], wanted: Index) -> bool:
        context = new_context(_SECONDS)
        translator = _Translator(context)
        try:
            for name in _symbols((*sizes.values(), *_sizes((*given, wanted, *self._conditions)))):
                context.size(name, 1)
            for name, size in sizes.items():
                context.range(name, ZERO, translator.size(size))
            for part in (*self._conditions, *given):
                context.add(at_least_zero(translator.index(part)))
            return context.holds(at_least_zero(translator.index(wanted)))
        except (OutOfTime, TooHard):
            return False


class _Translator:
    """Sizes and indices as polynomials of the normal form."""

    def __init__(self, context: Context) -> None:
        self._context = context
        empty = Graph((), {}, {}, "")
        self.size = Assumptions(Claim(empty, empty), (), context).size

    def index(self, index: Index) -> Polynomial:
        total = self.size(index.constant)
        for atom, coefficient in index.terms:
            total = total + self._atom(atom) * self.size(coefficient)
        return total

    def _atom(self, atom: object) -> Polynomial:
        if isinstance(atom, Variable):
            return symbol(atom.name)
        if isinstance(atom, Quotient | Remainder):
            function = floor_quotient if isinstance(atom, Quotient) else floor_remainder
            return function(self._context, self.index(atom.numerator), self.size(atom.divisor))
        raise TooHard(f"the index {atom}")


def _sizes(parts: Iterable[Index]) -> Iterable[Dim]:
    for part in parts:
        yield part.constant
        for atom, coefficient in part.terms:
            yield coefficient
            if isinstance(atom, Quotient | Remainder):
                yield atom.divisor
                yield from _sizes((atom.numerator,))


def _symbols(sizes: Iterable[Dim]) -> list[str]:
    return sorted({name for size in sizes if isinstance(size, SizeExpr) for name in size.symbols()})
