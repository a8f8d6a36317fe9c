"""Forged certificates of two programs: true ones for wrong programs, with false steps, and with other entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

from rewright import ops
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.files import EQUIVALENCE
from rewright.equiv.inputs.weights import WeightMap
from rewright.equiv.statement import Stated, unify_inputs
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops.facts import NOTHING, REAL, TRUTH, UNKNOWN, Facts, facts_between, of_values
from rewright.proof.rewriting.evidence import LAW, NUMBERS, PROVED
from rewright.proof.rewriting.laws import LAWS
from rewright.proof.rewriting.lemma import Given, Lemma
from rewright.proof.rewriting.splices import NOWHERE, Rewriting, Splice, Stage
from rewright.proof.rewriting.within import facts_within
from tests.proof.rewriting.edits import edited
from tests.proof.rewriting.forged_pairs import Case, differ
from tests.proof.rewriting.forging import alone, sealed_for, unchecked
from tests.proof.tampering import tampered

EVIDENCE = (PROVED, NUMBERS, *(LAW + name for name in LAWS), LAW, "given", "proved ")
_FACTS: tuple[Facts, ...] = (
    NOTHING, REAL, TRUTH, UNKNOWN, of_values([0]), of_values([1]), facts_between(1, 0), facts_between(0, 1, zero=False),
    facts_between(-1e-7, 1e-7), facts_between(1 - 1e-7, 1 + 1e-7), facts_between(0, 2**60, whole=True),
    of_values([float("inf")]), of_values([-float("inf")]), of_values([float("nan")]),
    facts_between(-(10**400), 10**400, whole=True), facts_between(float("nan"), float("nan")),
    replace(NOTHING, plus_infinity=True, minus_infinity=True)
)  # fmt: skip
Rewritings = tuple[Rewriting, ...]


@dataclass(frozen=True)
class Forgery:
    """A certificate that is shown for two programs, and whether these are equal."""

    left: Graph
    right: Graph
    certificate: EquivalenceCertificate
    is_true: bool


Kind = Callable[[Case, Random], Forgery | None]


def _wrong(case: Case, random: Random) -> tuple[int, list[Graph]] | None:
    """Which program is another one, and both programs."""
    side = random.randrange(2)
    sides = [case.left, case.right]
    other = edited(sides[side], random)
    if other is None or not differ(sides[side], other):
        return None
    sides[side] = other
    return side, sides


def _base(left: Graph, right: Graph) -> Stated:
    return unify_inputs(left, alone(right), WeightMap(()), None)


def _forged(case: Case, sides: Sequence[Graph], rewritings: Rewritings, *, moves: bool) -> Forgery:
    """A certificate for wrong programs; with ``moves`` its core is about what the stages make of these."""
    left, right = sides
    base, core, ranges = _base(left, right), case.certificate.core(), case.certificate.ranges
    try:
        if moves:
            ends = [unchecked(g, r, ranges)[-1] for g, r in zip(base.graphs, rewritings, strict=True)]
            core = replace(core, sequential=digest(ends[0]), ranks=(digest(ends[1]),))
        found = sealed_for(core, left, alone(right), base, rewritings, ranges)
    except (RewrightError, LookupError, TypeError, ValueError, ArithmeticError):
        found = None  # the forger does not know what the checker makes of it
    if found is None:
        about = {"left": digest(left), "right": (digest(right),)}
        found = replace(case.certificate, **about, rewritings=rewritings)
    return Forgery(left, right, found, is_true=False)


def transplanted(case: Case, random: Random) -> Forgery | None:
    """The true certificate, with the digests and the assumptions of a wrong program."""
    wrong = _wrong(case, random)
    return None if wrong is None else _forged(case, wrong[1], case.certificate.rewritings, moves=True)


def edited_lemmas(case: Case, random: Random) -> Forgery | None:
    """As transplanted, with the operator that was changed changed in lemmas, on one side or both, of any evidence."""
    wrong = _wrong(case, random)
    if wrong is None:
        return None
    side, sides = wrong
    true = (case.left, case.right)[side]
    (place,) = [p for p, (a, b) in enumerate(zip(true.nodes, sides[side].nodes, strict=True)) if repr(a) != repr(b)]
    old, new = true.nodes[place].op, sides[side].nodes[place].op
    which, evidence = random.choice(((True, True), (False, True))), random.choice((None, None, *EVIDENCE))

    def changed(lemma: Lemma) -> Lemma:
        found = [_renamed(g, old, new) if do else g for g, do in zip((lemma.left, lemma.right), which, strict=True)]
        return replace(lemma, left=found[0], right=found[1], evidence=evidence or lemma.evidence)

    return _forged(case, sides, _with_lemmas(case.certificate.rewritings, changed), moves=True)


def _renamed(graph: Graph, old: object, new: Any) -> Graph:
    nodes = tuple(replace(node, op=new) if repr(node.op) == repr(old) else node for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _with_lemmas(rewritings: Rewritings, change: Callable[[Lemma], Lemma]) -> Rewritings:
    """All stages with other lemmas, and their splices about these."""

    def of_stage(stage: Stage) -> Stage:
        lemmas = {lemma.key: change(lemma) for lemma in stage.lemmas}
        splices = tuple(replace(splice, lemma=lemmas[splice.lemma].key) for splice in stage.splices)
        return Stage(splices, tuple({lemma.key: lemma for lemma in lemmas.values()}.values()))

    return tuple(Rewriting(*(tuple(map(of_stage, part)) for part in (r.before, r.after))) for r in rewritings)


def bridged(case: Case, random: Random) -> Forgery | None:
    """A wrong program that one false step more makes the true one, at some stage; all other steps are right."""
    wrong = _wrong(case, random)
    if wrong is None:
        return None
    side, sides = wrong
    ranges, rewriting = case.certificate.ranges, case.certificate.rewritings[side]
    true, false = (unchecked(_base(*pair).graphs[side], rewriting, ranges) for pair in ((case.left, case.right), sides))
    number = random.randrange(len(true))
    place = _apart(true[number], false[number])
    if place is None:
        return None
    step = false_step(true[number], false[number], place, random)
    count = len(rewriting.before)
    before, after = list(rewriting.before), list(rewriting.after)
    if number <= count:
        before.insert(number, step)
    else:
        after.insert(number - count - 1, step)
    rewritings = list(case.certificate.rewritings)
    rewritings[side] = Rewriting(tuple(before), tuple(after))
    return _forged(case, sides, tuple(rewritings), moves=random.random() < 0.1)


def _apart(one: Graph, other: Graph) -> int | None:
    """The only node in which two programs differ; None where that is not one."""
    if len(one.nodes) != len(other.nodes):
        return None
    found = [
        p
        for p, (a, b) in enumerate(zip(one.nodes, other.nodes, strict=True))
        if repr(a.op) != repr(b.op) or a.operands != b.operands or a.type != b.type
    ]
    return found[0] if len(found) == 1 else None


def false_step(true: Graph, false: Graph, place: int, random: Random) -> Stage:
    """A stage that puts a node of the true program in the place of that of the false one."""
    deep = random.random() < 0.5
    names = {p: f"a{p}" for graph in (true, false) for p in graph.nodes[place].operands}
    left, right = (_part(graph, place, names, deep=deep, random=random) for graph in (true, false))
    known = facts_within(false, NOWHERE)
    held = {name: (p,) for p, name in names.items()}
    given: Given = ()
    if random.random() < 0.6:
        given = tuple((name, random.choice((known[p], *_FACTS))) for p, name in names.items() if random.random() < 0.8)
    inner: tuple[tuple[str, int], ...] = ()
    if names and random.random() < 0.2:
        inner = ((random.choice(list(names.values())), random.randrange(len(right.nodes))),)
    trick = random.randrange(6)
    if trick == 0 and names:  # one input stands for what differs
        alike = random.choice(list(held))
        others = [p for p in range(place + 1) if false.nodes[p].type == false.nodes[held[alike][0]].type]
        held[alike] = (held[alike][0], random.choice(others))
    elif trick == 1 and len(names) > 1:  # what an operator reads is not what the input is called
        left = _swapped(left)
    elif trick == 2:
        held["more"] = (random.randrange(len(false.nodes)),)
    elif trick == 3:
        left, given = right, ()
        held = {name: _of_both(true, false, place, p) for p, name in names.items()}
    lemma = Lemma("", left, right, random.choice(EVIDENCE), (), given, inner)
    return Stage((Splice(place, lemma.key, tuple(held.items())),), (lemma,))


def _of_both(true: Graph, false: Graph, place: int, position: int) -> tuple[int, ...]:
    """What holds an input in the false program and in the true one, or the other way round."""
    pairs = dict(zip(false.nodes[place].operands, true.nodes[place].operands, strict=False))
    other = pairs.get(position, position)
    return (other, position) if other != position else (position,)


def _part(graph: Graph, place: int, names: dict[int, str], *, deep: bool, random: Random) -> Graph:
    """A node over its operands, numbers among them being a part of it where that is ``deep``."""
    builder, places = GraphBuilder("part"), dict[int, int]()
    node = graph.nodes[place]
    for operand in node.operands:
        own = graph.nodes[operand]
        if operand in places:
            continue
        if deep and isinstance(own.op, ops.Constant):
            places[operand] = builder.add(own.op)
        else:
            places[operand] = builder.input(names[operand], ops.Input(names[operand], own.type))
    if random.random() < 0.1 and node.operands:
        builder.input("unread", ops.Input("unread", node.type))
    builder.output("result", builder.add(node.op, *(places[p] for p in node.operands)))
    return builder.build()


def _swapped(graph: Graph) -> Graph:
    """A part whose inputs have the names of each other."""
    names = list(graph.inputs)
    return replace(graph, inputs=dict(zip(names, reversed(list(graph.inputs.values())), strict=True)))


def unsaid(case: Case, random: Random) -> Forgery | None:
    """The true certificate without one of its assumptions, or with two in the place of each other."""
    taken = list(case.certificate.taken)
    if not taken:
        return None
    if len(taken) > 1 and random.random() < 0.3:
        taken = taken[::-1]
    else:
        del taken[random.randrange(len(taken))]
    return Forgery(case.left, case.right, replace(case.certificate, taken=tuple(taken)), is_true=False)


def exchanged(case: Case, random: Random) -> Forgery | None:
    """Stages of a wrong program, or of the true one, before numbers are counted in the place of those after."""
    wrong = _wrong(case, random) if random.random() < 0.7 else None
    rewritings = tuple(
        random.choice((Rewriting(r.after, r.before), Rewriting(r.stages, ()), Rewriting((), r.stages)))
        for r in case.certificate.rewritings
    )
    if wrong is not None:
        return _forged(case, wrong[1], rewritings, moves=True)
    return Forgery(case.left, case.right, replace(case.certificate, rewritings=rewritings), is_true=True)


def another_value(case: Case, random: Random) -> Forgery | None:
    """The true certificate with some entry of its text another one, or another entry of its core."""
    if random.random() < 0.3:
        ((_, changed),) = list(tampered(case.certificate, 1, random.randrange(1 << 30)))
        return Forgery(case.left, case.right, cast(EquivalenceCertificate, changed), is_true=True)
    entries = EQUIVALENCE.sealed(case.certificate)
    key = random.choice(("rewriting", "rewriting", "rewriting", "rewriting", "assumptions", "map", "tables", "right"))
    table, place = random.choice(_places(entries[key]) or [(entries, key)])
    table[place] = random.choice(_others(table[place], random))
    if random.random() < 0.15 and isinstance(table, list):
        table.append(table[place])
    changed = EQUIVALENCE.of_value(entries)
    return Forgery(case.left, case.right, changed, is_true=True)


def _places(value: Any) -> list[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[tuple[Any, Any]] = []
    for key, inner in list(cast("Any", items)):
        found += [(value, key), *_places(inner)]
    return found


def _others(own: Any, random: Random) -> list[Any]:
    if isinstance(own, bool):
        return [not own]
    if isinstance(own, int | float):
        strange = [10**400, {"float": "inf"}, {"float": "nan"}, float(own) if abs(own) < 1e9 else 0]
        return [own + 1, own - 1, -own, *strange]
    if isinstance(own, str):
        return [random.choice(EVIDENCE), "", own + "x", "a0", "b0", "result"]
    if isinstance(own, list):
        return [[], own[1:], own + own, own[::-1], [own]]
    return [None, {}, []]


KINDS: tuple[Kind, ...] = (
    transplanted, edited_lemmas, bridged, bridged, bridged, unsaid, exchanged, another_value, another_value,
)  # fmt: skip
