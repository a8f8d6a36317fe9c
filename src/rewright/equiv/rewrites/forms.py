"""The forms of a program that a proof begins with, each a function of that program alone.

    >>> rewrite(draft, REAL)  # all writings of a softmax are one
    >>> rewrite(draft, REAL, proposed=True)  # and convolutions by few elements are sums

A rewrite is a row of a table: what it does, how, and the operators without which there is nothing to do. One loop
applies the rows in their order. Nothing here looks at the program that another one is compared with, so that what is
proved of a pair never depends on what the other side happens to hold. Some forms cost more than they are worth where
both programs are written alike, or are harder to prove than what they stand for: those rows are *proposed*, which means
that they are tried where values agree and the proof without them fails.

Most rows are laws of the checker (:mod:`rewright.proof.rewriting.laws`), and nothing but their name is needed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rewright import ops
from rewright.equiv.rewrites.byte_tables import with_tables
from rewright.equiv.rewrites.canonical_softmax import with_softmax
from rewright.equiv.rewrites.gather_to_sum import with_cases
from rewright.equiv.rewrites.integer_casts import without_casts
from rewright.equiv.rewrites.integer_tables import with_wholes
from rewright.equiv.rewrites.local import with_rules
from rewright.equiv.rewrites.mask_choices import with_masks_chosen
from rewright.ir.digest import digest
from rewright.ir.operator import Operator
from rewright.refine.rewriting.drafts import Draft


@dataclass(frozen=True)
class Rewrite:
    """A program in another form; it is returned as it is where it has that form."""

    name: str
    does: str
    apply: Callable[[Draft], Draft]
    about: type[Operator] = Operator
    """Programs without an operator of this class have the form already."""
    proposed: bool = False
    """Whether it is tried only where there is no proof without it."""


def _law(name: str, does: str, about: type[Operator], *, proposed: bool = False) -> Rewrite:
    """What a law of the checker makes of all nodes that it says something of."""
    return Rewrite(name, does, partial(Draft.by_law, name=name), about, proposed)


def before_counting(*, counts: bool) -> Sequence[Rewrite]:
    """Before arithmetic of short integers is written out, with which they count from the other end, or it is not."""
    return (
        Rewrite("masks", "masks computed from truth values are choices between two numbers", with_masks_chosen),
        Rewrite("bytes", "functions of one byte are what their tables hold", partial(with_tables, counts=counts)),
    )


WHOLE: Sequence[Rewrite] = (Rewrite("whole", "whole numbers that are made of no input are tables", with_wholes),)
"""Before numbers are those of the reals."""
REAL: Sequence[Rewrite] = (
    _law("convolutions", "convolutions by few elements are sums of shifted products", ops.Convolution, proposed=True),
    Rewrite("casts", "casts of whole numbers to integers and back are none", without_casts, ops.Convert),
    _law("orders", "absolute values are below maxima, and clamps behind what rounds", ops.Elementwise),
    Rewrite("rules", "maxima with minus infinity, and of what is not below zero with zero, are none", with_rules),
    _law("fillings", "what a choice never chooses is minus infinity", ops.TopK, proposed=True),
    _law("places", "what is written into zeros at the places of a choice is a sum", ops.Scatter),
    _law("picked", "what is looked up at the places of a choice is what it chose", ops.Gather),
    _law("growing", "choices are in front of functions that keep the order", ops.TopK, proposed=True),
    Rewrite("softmax", "quotients by the sum of their own row are softmax", with_softmax, ops.Divide),
    Rewrite("rows", "what is computed with chosen rows is a sum over all rows", with_cases, ops.Gather, proposed=True),
)
"""Of programs over the reals."""


def rewrite(draft: Draft, table: Sequence[Rewrite], *, proposed: bool = False) -> Draft:
    """The program after the rewrites of a table, those that are ``proposed`` among them if so asked."""
    for row in table:
        if (proposed or not row.proposed) and any(isinstance(node.op, row.about) for node in draft.graph.nodes):
            made = row.apply(draft)
            draft = draft if made is draft or digest(made.graph) == digest(draft.graph) else made
    return draft
