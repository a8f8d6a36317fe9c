"""How what is not looked into enters a proof: by its sort.

A polynomial is finite, always, so that ``t - t = 0``, ``0 t = 0`` and ``t / t = 1`` need no question. What may be
infinite or not a number is a guarded value: where an unknown truth value says so it is an infinity or not a number,
and elsewhere the polynomial of its atom. So no law about numbers ever meets anything else, and equal terms are
infinite, and not numbers, at the same places. The one atom that may be minus infinity itself is a maximum that may be
of nothing (:mod:`rewright.terms.normal.folds.presence`), which is settled before a law takes it.
"""

from __future__ import annotations

from rewright.ops.functions.record import Sort
from rewright.terms.normal.arithmetic.cases import branch, leaves
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import (
    MINUS_INFINITY,
    MISSING,
    NOT_A_NUMBER,
    PLUS_INFINITY,
    Infinite,
    NotANumber,
    Value,
)
from rewright.terms.normal.polynomials.atoms import Atom, Element, Function, Guard, Polynomial, polynomial

_KINDS: dict[Sort, tuple[Infinite | NotANumber, ...]] = {
    "finite": (),
    "extended": (PLUS_INFINITY, MINUS_INFINITY),
    "partial": (NOT_A_NUMBER, PLUS_INFINITY, MINUS_INFINITY),
}
"""What a value of a sort may be besides a number, in the order in which it is asked."""


def of_sort(context: Context, atom: Atom, sort: Sort) -> Value:
    """The value of an atom that is a number, or may be infinite or not a number as well."""
    return _besides(context, atom, _KINDS[sort])


def read(context: Context, tensor: str, index: tuple[Polynomial, ...], integer: bool) -> Value:
    """The element of a tensor that is not looked into, of the sort that the context has for the tensor's elements."""
    sort = "finite" if integer else context.sorts.get(tensor, "finite")
    return of_sort(context, Element(tensor, index, integer), sort)


def _besides(context: Context, atom: Atom, kinds: tuple[Infinite | NotANumber, ...]) -> Value:
    if not kinds:
        return polynomial(atom)
    return branch(context, _is(atom, kinds[0]), lambda: kinds[0], lambda: _besides(context, atom, kinds[1:]))


def _is(atom: Atom, kind: Infinite | NotANumber) -> Guard:
    """That what an atom stands for is an infinity, or not a number: of elements an element of a tensor of its own."""
    if isinstance(atom, Element):
        return Guard("true", polynomial(Element(f"\0{kind} {atom.tensor}", atom.index, True)))
    return Guard("true", polynomial(Function(f"is {kind}", (polynomial(atom),), True)))


def sort_of(value: Value) -> Sort:
    """The sort of a guarded value: finite where every leaf is a number or absent."""
    return "finite" if all(isinstance(leaf, Polynomial) or leaf == MISSING for leaf in leaves(value)) else "partial"
