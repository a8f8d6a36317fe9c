"""Facts about integer inputs: what a look-up of the sequential program needs, or else it reads out of range."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph
from rewright.proof.certificate import RangeFact
from rewright.proof.language import Definition
from rewright.proof.lemma import allowed, size_of
from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.atoms import ZERO, Element, Polynomial, TooHard, polynomial, symbol
from rewright.terms.normal.context import Context, OutOfTime
from rewright.terms.normal.denote import Denoter, Place
from rewright.terms.normal.guards import Guard, Value, at_least_zero
from rewright.terms.normal.needs import Need

Window = tuple[tuple[Dim, Dim], ...]


def assumption(fact: RangeFact, definition: Definition) -> str:
    """A fact in words."""
    sets = " or ".join(_interval(box[0]) for box, _ in fact.allowed)
    return f"the values of {definition.data[0]} lie in {sets}, or the sequential program reads out of range"


def known_where(sequential: Graph, fact: RangeFact, terms: Sequence[Definition], seconds: float) -> Window | str | None:
    """Where a fact holds: start and length by axis, None for everywhere; a text that says why it does not follow.

    An input is nothing outside of its own shape, so that a fact about all of it holds everywhere.
    """
    if not 0 <= fact.term < len(terms) or terms[fact.term].kind != "input" or not terms[fact.term].data:
        return f"term {fact.term} is no input"
    name = str(terms[fact.term].data[0])
    if name not in sequential.inputs or not 0 <= fact.position < len(sequential.nodes):
        return f"there is no input {name!r} that %{fact.position} looks up with"
    kind = sequential.nodes[sequential.inputs[name]].type
    if kind.dtype.is_float:
        return f"input {name!r} has values that are no integers"
    try:
        window = _window(sequential, fact, name, seconds)
    except (TooHard, OutOfTime) as error:
        return f"the look-up at %{fact.position} is too hard: {error}"
    whole = tuple((0, n) for n in kind.shape)
    return None if window == whole else window


class _Integers(Denoter):
    """Denotes the integer part of a program; what is computed in floats is not looked into."""

    def _denote(self, position: int, index: Place) -> Value:
        kind = self.graph.nodes[position].type
        is_input = isinstance(self.graph.nodes[position].op, ops.Input)
        if kind.dtype.is_float and not is_input:
            return polynomial(Element(f"%{position}", index, False))
        return super()._denote(position, index)


def _window(sequential: Graph, fact: RangeFact, name: str, seconds: float) -> Window | str:
    node = sequential.nodes[fact.position]
    context = new_context(seconds)
    denoter = _Integers(context, sequential, size_of)
    binders = [(context.fresh("k"), ZERO, size) for size in denoter.shape(fact.position)]
    for binder, low, high in binders:
        context.range(binder, low, high)
    needs = denoter.lookups_of(fact.position, binders, node)
    elements = {a.key: a for need in needs for a in need.value.atoms() if isinstance(a, Element) and a.tensor == name}
    for element in elements.values():
        window = _read(element, {binder: size for (binder, _, _), size in zip(binders, node.type.shape, strict=True)})
        if window is not None and all(
            _follows(context, guard, needs) for guard in allowed(polynomial(element), fact.allowed, size_of)
        ):
            return window
    return f"%{fact.position} ({node.op.name}) needs no such thing of {name!r}"


def _read(element: Element, lengths: dict[str, Dim]) -> Window | None:
    """The window that an element runs over, where each of its indices is a number or one variable plus a number."""
    window: list[tuple[Dim, Dim]] = []
    seen: set[str] = set()
    for index in element.index:
        free = [name for name in index.free if name in lengths]
        if len(free) > 1 or (free and free[0] in seen):
            return None
        rest = index - symbol(free[0]) if free else index
        start = rest.constant()
        if not isinstance(start, int):
            return None
        seen.update(free)
        window.append((start, lengths[free[0]] if free else 1))
    return tuple(window)


def _follows(context: Context, guard: Guard | bool, needs: Sequence[Need]) -> bool:
    """Whether a guard must hold for all that is needed to hold."""
    if isinstance(guard, bool):
        return guard
    with context.scope():
        context.add(guard, False)
        for need in needs:
            if need.kind == "not negative" and all(context.decide(g) is polarity for g, polarity in need.path):
                context.add(at_least_zero(need.value), True)
        return context.contradictory()


def _interval(ends: tuple[Dim | None, Dim | None]) -> str:
    low, high = ends
    if isinstance(low, int) and isinstance(high, int) and high == low + 1:
        return f"{{{low}}}"
    return f"[{'-inf' if low is None else low}, {'inf' if high is None else high})"


__all__ = ["Polynomial", "assumption", "known_where"]
