"""The parts of the normal form put together: how every kind of atom is built again."""

from __future__ import annotations

import time

from rewright.terms.normal.atoms import Function, Polynomial, Product, polynomial, symbol
from rewright.terms.normal.binders import name_binders
from rewright.terms.normal.context import Context, Rebuilders, Values
from rewright.terms.normal.maxima import rebuild_largest
from rewright.terms.normal.products import rebuild_function
from rewright.terms.normal.ranged import Fold, Largest, PrefixSum
from rewright.terms.normal.substitution import PLAIN, substitute
from rewright.terms.normal.sums import rebuild_sum


def _rebuild_fold(context: Context, atom: Fold, values: Values) -> Polynomial:
    name = context.fresh("b")
    inner = {atom.variable: symbol(name)}
    merged = {**{key: value for key, value in values.items() if key != atom.variable}, **inner}
    body = substitute(context, atom.body, merged)
    size = substitute(context, atom.size, values)
    return polynomial(Fold(atom.kind, size, name_binders(context, [(name, polynomial(0), size)], (0,), body)))


REBUILD: Rebuilders = {
    **PLAIN,
    Function: rebuild_function,
    Product: rebuild_function,
    PrefixSum: rebuild_sum,
    Largest: rebuild_largest,
    Fold: _rebuild_fold,
}


def new_context(seconds: float) -> Context:
    """A context without facts, for a proof that may take this long."""
    return Context(time.process_time() + seconds, REBUILD)
