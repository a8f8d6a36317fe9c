"""The parts of the normal form put together: how every kind of atom is built again."""

from __future__ import annotations

import time

from rewright.terms.normal.arithmetic.binders import name_binders
from rewright.terms.normal.arithmetic.division import floor_quotient
from rewright.terms.normal.arithmetic.substitution import indicated, substitute, substitute_guard
from rewright.terms.normal.facts.context import Context, Rebuilders, Values
from rewright.terms.normal.folds.items import rebuild_largest
from rewright.terms.normal.folds.products import rebuild_function
from rewright.terms.normal.folds.sums import rebuild_sum
from rewright.terms.normal.polynomials.atoms import (
    Element,
    Exponential,
    Floor,
    Function,
    Indicator,
    Polynomial,
    Product,
    polynomial,
    symbol,
)
from rewright.terms.normal.polynomials.powers import exponential
from rewright.terms.normal.polynomials.ranged import Fold, Largest, PrefixSum


def _rebuild_fold(context: Context, atom: Fold, values: Values) -> Polynomial:
    name = context.fresh("b")
    inner = {atom.variable: symbol(name)}
    merged = {**{key: value for key, value in values.items() if key != atom.variable}, **inner}
    body = substitute(context, atom.body, merged)
    size = substitute(context, atom.size, values)
    return polynomial(Fold(atom.kind, size, name_binders(context, [(name, polynomial(0), size)], (0,), body)))


def _element(context: Context, atom: Element, values: Values) -> Polynomial:
    index = tuple(substitute(context, i, values) for i in atom.index)
    return polynomial(Element(atom.tensor, index, atom.integer))


def _floor(context: Context, atom: Floor, values: Values) -> Polynomial:
    numerator = substitute(context, atom.numerator, values)
    return floor_quotient(context, numerator, substitute(context, atom.divisor, values))


def _exponential(context: Context, atom: Exponential, values: Values) -> Polynomial:
    return exponential(substitute(context, atom.exponent, values))


def _indicator(context: Context, atom: Indicator, values: Values) -> Polynomial:
    return indicated(context, substitute_guard(context, atom.guard, values))


REBUILD: Rebuilders = {
    Element: _element,
    Floor: _floor,
    Exponential: _exponential,
    Indicator: _indicator,
    Function: rebuild_function,
    Product: rebuild_function,
    PrefixSum: rebuild_sum,
    Largest: rebuild_largest,
    Fold: _rebuild_fold,
}


def new_context(seconds: float) -> Context:
    """A context without facts, for a proof that may take this long."""
    return Context(time.process_time() + seconds, REBUILD)
