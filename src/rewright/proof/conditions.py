"""The conditions of a proof: obligations that facts do not discharge, said once where all programs have them.

An operator of a rank that computes elements which the sequential program computes by the same operator is undefined
where that one is: such a condition is one of all programs. It is named all the same, since one program may make more of
an undefined element than the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import cast

from rewright.analysis.obligations import Obligation, obligations, sentences
from rewright.analysis.values import Setting
from rewright.claims.language import Access, Addend, Definition, Index, Input, Region, Tensor, View, views
from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.memory import pause_garbage_collection
from rewright.ops.facts import REAL, Facts, facts_between, of_dtype
from rewright.proof.certificate import RangeFact
from rewright.proof.forms import at_least

REALS = "floats are exact real numbers"
Claims = Callable[[int, int], Tensor | None]
"""What a node of a program is claimed to hold, by the number of the program (the sequential one is 0) and position."""


class Violated(RewrightError):
    """A condition of a proof that no input meets, so that the proof says nothing; the message names it."""


@dataclass(frozen=True)
class Open:
    """The obligations of programs, and what they are obligations under."""

    graphs: tuple[Graph, ...]
    given: Mapping[str, Facts]
    """Facts of inputs by name."""
    summed: frozenset[str]
    """Inputs whose ranks hold addends: facts about the input say nothing about an addend."""
    found: tuple[Obligation, ...]

    def is_about(self, graphs: Sequence[Graph], given: Mapping[str, Facts], summed: Collection[str]) -> bool:
        """Whether it is about these very programs, under the same facts."""
        is_same = len(graphs) == len(self.graphs) and all(a is b for a, b in zip(graphs, self.graphs, strict=True))
        return is_same and dict(given) == dict(self.given) and frozenset(summed) == self.summed


def open_obligations(graphs: Sequence[Graph], given: Mapping[str, Facts], summed: Collection[str]) -> Open:
    """The obligations of a sequential program and those of ranks."""
    held = {name: known for name, known in given.items() if name not in summed}
    with pause_garbage_collection():
        found = obligations(graphs, Setting(given=given), Setting(given=held))
    return Open(tuple(graphs), given, frozenset(summed), tuple(found))


def conditions(asked: Open, claims: Claims) -> tuple[str, ...]:
    """The conditions of a proof, in words; raises Violated where no input meets one."""
    found = asked.found
    first = [one for one in found if one.program == 0]
    others = [one for one in found if one.program]
    shared = [one for one in first if _is_shared(one, others, claims)]
    own = [one for one in first if one not in shared]
    own += [one for one in others if _wraps(one) or not _is_shared(one, shared, claims)]
    violated = next((one for one in own if one.is_violated), None)
    if violated is not None:
        raise Violated(f"{sentences([violated])[0]}, which does not hold for any input")
    return (*sentences(own), *(f"in all programs, {text}" for text in sentences(shared)))


def _is_shared(one: Obligation, others: Sequence[Obligation], claims: Claims) -> bool:
    """Whether the other side computes the same elements by the same operator."""
    return any(_covers(other, one, claims) for other in others)


def is_of_type(graph: Graph, term: object, allowed: Region) -> bool:
    """Whether an input's type says what a fact says: an unsigned byte lies in [0, 256)."""
    position = graph.inputs.get(term.name) if isinstance(term, Input) else None
    known = within(allowed) if position is not None and len(allowed) == 1 else None
    own = REAL if position is None else of_dtype(graph.nodes[position].type.dtype)
    return known is not None and known.low <= own.low and own.high <= known.high


def known_inputs(facts: Sequence[RangeFact], terms: Sequence[Definition], graph: Graph) -> Mapping[str, Facts]:
    """What look-ups of the sequential program say of whole inputs: the values of an input lie between these."""
    found: dict[str, Facts] = {}
    for fact in facts:
        content = terms[fact.term].content
        position = graph.inputs.get(content.name) if isinstance(content, Input) else None
        if not isinstance(content, Input) or position is None:
            continue
        if fact.window != tuple((0, n) for n in graph.nodes[position].type.shape):
            continue
        if not all(at_least(length, 1) for _, length in fact.window):
            continue
        known = within(fact.allowed)
        if known is not None:
            found[content.name] = known
    return MappingProxyType(found)


def within(allowed: Region) -> Facts | None:
    """The facts of integers that lie in a set of intervals; None where an end is not a number."""
    ends = [box[0] for box, _ in allowed if len(box) == 1]
    lows = [low for low, _ in ends if isinstance(low, int)]
    highs = [high for _, high in ends if isinstance(high, int)]
    is_known = bool(ends) and len(lows) == len(highs) == len(ends)
    return facts_between(min(lows), max(highs) - 1, whole=True) if is_known else None


def _wraps(one: Obligation) -> bool:
    """Whether it is about an integer, which is defined where it wraps, as something else."""
    return not one.node.type.dtype.is_float


def _covers(whole: Obligation, part: Obligation, claims: Claims) -> bool:
    """Whether one node computes all elements of another one by the same operator."""
    mine, other = whole.node, part.node
    if (type(mine.op), mine.type.dtype, whole.condition) != (type(other.op), other.type.dtype, part.condition):
        return False
    held, read = claims(whole.program, whole.position), claims(part.program, part.position)
    if held is None or read is None:
        return False
    wholes = list(views(held))
    return all(any(_contains(w, v) for w in wholes) for v in views(read))


def _contains(whole: View, part: View) -> bool:
    """Whether every element of a view is an element of another one."""
    if len(whole.addends) != len(part.addends):
        return False
    pairs = list(zip(sorted(whole.addends, key=_order), sorted(part.addends, key=_order), strict=True))
    if any(_order(a) != _order(b) or a.parts != b.parts for a, b in pairs):
        return False
    sizes, others = [n for own in whole.dims for n in own], [n for own in part.dims for n in own]
    found: dict[int, Index] = {}
    for a, b in pairs:
        for mine, other in zip(a.access, b.access, strict=True):
            plain = _plain(mine)
            if plain is not None:
                found.setdefault(plain, other)
    for variable, size in enumerate(sizes):
        index = found.setdefault(variable, (0, ()))
        if not _within(index, others, size):
            return False
    return all(_substitute(a.access, found) == _ordered(b.access) for a, b in pairs)


def _order(addend: Addend) -> tuple[int, Fraction]:
    return addend.term, addend.coefficient


def _plain(index: Index) -> int | None:
    """The variable that an index is, where it is one."""
    constant, terms = index
    return terms[0][0] if constant == 0 and len(terms) == 1 and terms[0][1] == 1 else None


def _within(index: Index, sizes: Sequence[Dim], size: Dim) -> bool:
    """Whether an index over variables below some sizes is below a size itself."""
    constant, terms = index
    if constant == 0 and len(terms) == 1 and terms[0][1] == 1 and sizes[terms[0][0]] == size:
        return True
    numbers = [constant, size, *(s for _, s in terms), *(sizes[v] for v, _ in terms)]
    if not all(isinstance(n, int) for n in numbers) or any(cast("int", stride) < 0 for _, stride in terms):
        return False
    most = cast("int", constant) + sum(cast("int", stride) * (cast("int", sizes[v]) - 1) for v, stride in terms)
    return cast("int", constant) >= 0 and most < cast("int", size)


def _substitute(access: Access, values: Mapping[int, Index]) -> tuple[tuple[Dim, tuple[tuple[int, Dim], ...]], ...]:
    return _ordered(tuple(_one_substituted(index, values) for index in access))


def _one_substituted(index: Index, values: Mapping[int, Index]) -> Index:
    constant, terms = index
    strides: dict[int, Dim] = {}
    for variable, stride in terms:
        start, inner = values[variable]
        constant = constant + stride * start
        for other, step in inner:
            strides[other] = strides.get(other, 0) + stride * step
    return constant, tuple(strides.items())


def _ordered(access: Access) -> tuple[Index, ...]:
    """Indices with their terms in order, and without those that are zero."""
    return tuple((c, tuple(sorted(_nonzero(terms)))) for c, terms in access)


def _nonzero(terms: Sequence[tuple[int, Dim]]) -> Iterator[tuple[int, Dim]]:
    return ((variable, stride) for variable, stride in terms if stride != 0)
