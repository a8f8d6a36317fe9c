"""Facts about integer inputs: what a look-up of the sequential program needs, or else it reads out of range."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rewright import ops
from rewright.claims.language import Definition, Index, Input, Opaque, Table
from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.graph import Graph, Node
from rewright.proof.certificate import RangeFact
from rewright.proof.conditions import REALS, Claims, Open, conditions, is_of_type, known_inputs, open_obligations
from rewright.proof.forms import at_least
from rewright.proof.lemma import allowed_guards, known_of, size_of
from rewright.proof.meaning import Meaning, of_elements
from rewright.proof.statement import Fact
from rewright.proof.theory import integer_inputs, integer_terms
from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.denoting.denote import Denoter, Place
from rewright.terms.normal.denoting.needs import Need
from rewright.terms.normal.facts.context import Context, OutOfTime
from rewright.terms.normal.facts.guards import Choice, Guard, Value, at_least_zero, less_than
from rewright.terms.normal.polynomials.atoms import Element, Polynomial, TooHard, polynomial, symbol

RANKS_IN_RANGE = "look-ups of the ranks stay in range"


def assumptions(
    graphs: Sequence[Graph],
    facts: Sequence[RangeFact],
    terms: Sequence[Definition],
    claims: Claims,
    summed: Collection[str],
    asked: Open | None = None,
) -> tuple[str, ...]:
    """What a proof about a sequential program and those of ranks rests on, in words.

    ``claims`` says what each node holds, and ``summed`` are the inputs whose ranks hold addends;
    ``asked`` are the programs' obligations where they are known already.
    """
    known = known_inputs(facts, terms, graphs[0])
    if asked is None or not asked.is_about(graphs, known, summed):
        asked = open_obligations(graphs, known, summed)
    said = [fact for fact in facts if not is_of_type(graphs[0], terms[fact.term].content, fact.allowed)]
    wanted = [REALS, *(assumption(fact, terms) for fact in said), *conditions(asked, claims)]
    if any(_looks(node) for graph in graphs[1:] for node in graph.nodes):
        wanted.append(RANKS_IN_RANGE)
    for graph in graphs:
        wanted += [text for text in graph.metadata.get("assumptions", "").split("; ") if text]
    return tuple(dict.fromkeys(wanted))


def _looks(node: Node) -> bool:
    """Whether a node reads, or writes, at places that operands hold."""
    return isinstance(node.op, ops.TensorOperator) and bool(node.op.indexed(len(node.operands)))


def assumption(fact: RangeFact, terms: Sequence[Definition]) -> str:
    """A fact in words."""
    sets = " or ".join(_interval(box[0]) for box, _ in fact.allowed)
    names = ", ".join(sorted(_inputs(fact.term, terms)))
    what = names if isinstance(terms[fact.term].content, Input) else f"an index made of {names}"
    return f"the values of {what} lie in {sets}, or the sequential program reads out of range"


def why_not(
    sequential: Graph,
    fact: RangeFact,
    terms: Sequence[Definition],
    seconds: float,
    before: Sequence[RangeFact] = (),
) -> str | None:
    """Why a fact does not follow, with those that were verified ``before`` it; None where it does."""
    if not 0 <= fact.term < len(terms) or not 0 <= fact.position < len(sequential.nodes):
        return f"there is no term {fact.term} that %{fact.position} looks up with"
    node = sequential.nodes[fact.position]
    if len(fact.window) != terms[fact.term].rank or len(fact.place) != node.type.rank:
        return f"term {fact.term} or the look-up at %{fact.position} is of another rank"
    variables = (variable for _, strides in fact.place for variable, _ in strides)
    if any(not 0 <= variable < len(fact.window) for variable in variables) or not all(
        len(b) == 1 for b, _ in fact.allowed
    ):
        return f"the look-up at %{fact.position} is not one by an index in the window, or its values are no set"
    try:
        if _looks_up(sequential, fact, terms, _knowing(sequential, before, terms, new_context(seconds))):
            return None
    except (TooHard, OutOfTime, KeyError) as error:
        return f"the look-up at %{fact.position} is too hard: {error}"
    return f"%{fact.position} ({node.op.name}) needs no such thing"


def as_fact(sequential: Graph, fact: RangeFact, terms: Sequence[Definition]) -> Fact:
    """What lemmas may use of a fact that was verified."""
    return Fact(fact.allowed, None if holds_everywhere(sequential, fact, terms) else fact.window)


def holds_everywhere(sequential: Graph, fact: RangeFact, terms: Sequence[Definition]) -> bool:
    """Whether a fact is about all of an input, which is nothing outside of its own shape."""
    content = terms[fact.term].content
    position = sequential.inputs.get(content.name) if isinstance(content, Input) else None
    # Of an input without elements the fact says nothing, so that there may be no such values at all.
    if not all(at_least(length, 1) for _, length in fact.window):
        return False
    return position is not None and fact.window == tuple((0, n) for n in sequential.nodes[position].type.shape)


def _inputs(term: int, terms: Sequence[Definition]) -> set[str]:
    """The inputs that a term is made of."""
    found: set[str] = set()
    stack, seen = [term], {term}
    while stack:
        definition = terms[stack.pop()]
        if isinstance(definition.content, Input):
            found.add(definition.content.name)
        stack.extend(o for o in definition.operands if o not in seen)
        seen.update(definition.operands)
    return found


class _Integers(Denoter):
    """Denotes the integer part of a program; what is computed in floats is not looked into."""

    def _denote(self, position: int, index: Place) -> Value:
        kind = self.graph.nodes[position].type
        is_input = isinstance(self.graph.nodes[position].op, ops.Input)
        if kind.dtype.is_float and not is_input:
            return polynomial(Element(f"\0%{position}", index, False))  # no input has such a name
        return super()._denote(position, index)


def _knowing(sequential: Graph, before: Sequence[RangeFact], terms: Sequence[Definition], context: Context) -> Context:
    """A context with what is known of inputs: an index that is less than zero may be counted from the end."""
    for fact in before:
        content = terms[fact.term].content
        if isinstance(content, Input):
            known = known_of(context, as_fact(sequential, fact, terms), size_of)
            context.universal.setdefault(content.name, []).append(of_elements(known))
    return context


def _looks_up(sequential: Graph, fact: RangeFact, terms: Sequence[Definition], context: Context) -> bool:
    denoter = _Integers(context, sequential, size_of)
    sizes = {size for node in sequential.nodes for size in node.type.shape if isinstance(size, SizeExpr)}
    for name in sorted({name for size in sizes for name in size.symbols()}):
        context.size(name, 1)
    variables = [context.fresh("j") for _ in fact.window]
    for variable, (start, length) in zip(variables, fact.window, strict=True):
        context.range(variable, size_of(start), size_of(start) + size_of(length))
    place = [_value(index, variables) for index in fact.place]
    for index, size in zip(place, denoter.shape(fact.position), strict=True):
        if not (context.decide(at_least_zero(index)) and context.decide(less_than(index, size))):
            return False
    integers = integer_terms(terms, integer_inputs(sequential))
    floats = _chosen_among(terms) - integers
    known = {number: definition for number, definition in enumerate(terms) if number not in floats}
    meaning = Meaning(denoter, known, integers, named=True)
    element = meaning.term(fact.term, tuple(symbol(v) for v in variables))
    return _stays(context, element, fact, denoter.lookups_at(fact.position, place))


def _chosen_among(terms: Sequence[Definition]) -> set[int]:
    """Computed float tensors that an operator, such as a choice of the largest, has integers of.

    What they are made of is not looked into, as in the program: a fact that holds for any such tensor holds for this.
    """
    found: set[int] = set()
    for definition in terms:
        if isinstance(definition.content, Opaque):
            kinds = definition.content.kinds
            found |= {o for o, kind in zip(definition.operands, kinds, strict=False) if kind == "float"}
    return {term for term in found if not isinstance(terms[term].content, Input | Table)}


def _stays(context: Context, element: Value, fact: RangeFact, needs: Sequence[Need]) -> bool:
    """Whether a guarded value lies in the set of a fact on every path."""
    if isinstance(element, Choice):
        for polarity, arm in ((True, element.yes), (False, element.no)):
            with context.assume(element.guard, polarity):
                if not context.contradictory() and not _stays(context, arm, fact, needs):
                    return False
        return True
    if not isinstance(element, Polynomial):
        return False
    return all(_follows(context, guard, needs) for guard in allowed_guards(element, fact.allowed, size_of))


def _value(index: Index, variables: Sequence[str]) -> Polynomial:
    constant, terms = index
    return sum((symbol(variables[v]) * size_of(stride) for v, stride in terms), start=size_of(constant))


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
