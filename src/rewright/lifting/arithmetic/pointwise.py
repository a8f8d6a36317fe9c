"""Elementwise operators on views with common digits, one normal form for each: the table of their laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rewright.claims.language import View
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.lifting.arithmetic import choices, exponentials, powers, rational
from rewright.lifting.arithmetic.functions import function
from rewright.lifting.masks import truths
from rewright.lifting.terms.algebra import Algebra

LAWS: Mapping[type[Operator], Callable[..., View]] = {
    **rational.LAWS,
    **powers.LAWS,
    **exponentials.LAWS,
    **choices.LAWS,
    **truths.LAWS,
}


def pointwise(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The view of an elementwise operator's result; operands have common digits."""
    law = LAWS.get(type(op))
    if law is not None:
        with algebra.over(views[0].dims):
            return law(algebra, op, views, types)
    return function(algebra, op.name, views)
