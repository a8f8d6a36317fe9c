"""``refine``: does a distributed program compute what the sequential one computes?"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from rewright import ops
from rewright.claims.language import Input
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.holders import Holders, holders_of
from rewright.ir.memory import pause_garbage_collection
from rewright.ir.placement import Placement, RankProgram
from rewright.lifting.journal import Journal
from rewright.lifting.layers.induction import NotContracted
from rewright.lifting.layers.stream import Walks
from rewright.lifting.programs import UNKNOWN, BudgetExceeded, Lifted, Lifter
from rewright.lifting.terms.forms import USUAL, Forms
from rewright.ops.agreement import CollectiveMismatch
from rewright.proof.conditions import REALS, is_of_type
from rewright.refine.proof import Proof
from rewright.refine.relations.given import Given, Relations
from rewright.refine.relations.inputs import input_values
from rewright.refine.relations.known import input_relations, output_expectations
from rewright.refine.relations.numbered import are_numbered, pair
from rewright.refine.relations.outputs import equation, holds, infer
from rewright.refine.verdict import OutputRelation

_NAMED = 3
"""Inputs that an assumption about many of them names."""


Wrong = Callable[[Collection[str]], Collection[str]]
"""Those of some outputs that values show to be wrong."""

_PATIENCE = 10.0
"""After so many seconds of lifting, values are asked whether it is worth while."""
_OF_WHICH_ONE_IS_RIGHT = 4
"""One in this many unrelated outputs may have the right values without other normal forms being tried."""

_DATA, _PRODUCTS, _PLAIN, _QUOTIENTS = (
    Forms(data=True),
    Forms(products=True),
    Forms(products=True, plain=True),
    Forms(products=True, quotients=True),
)


def attempt(
    sequential: Graph,
    program: RankProgram,
    relations: Relations,
    expected: Mapping[str, Placement],
    deadline: float | None = None,
    *,
    laws: bool = True,
    repeat: bool = True,
    wrong: Wrong = lambda failed: (),
) -> Proof:
    """Lift both programs and relate every output; raises RewrightError for relations that do not fit.

    Args:
        laws: try other normal forms where the usual one does not relate all.
        repeat: lift every layer by itself at last, so that a failure can be explained.
        wrong: of outputs that are not related, those that values show to be wrong. Nothing that takes long is tried
            for these, and no other normal form where there is little else.
    """
    lift = partial(_lift, sequential, program, relations, expected, deadline, walks=Walks(), wrong=wrong)
    with pause_garbage_collection():
        try:
            proof = lift(reuse=True, contract=True)
        except NotContracted:
            proof = None
        if proof is None or (proof.failed and proof.lifter.contraction and not _is_hopeless(proof.failed, wrong)):
            proof = lift(reuse=True)
        if laws and proof.failed and not _is_hopeless(proof.failed, wrong):
            proof = _closest(lift, _other_forms(sequential, program), proof)
        # Whoever explains the failure needs the value of every node; a layer lifted by itself may still relate.
        if proof.failed and proof.lifter.contraction:
            proof = lift(reuse=False, forms=proof.forms)
        elif proof.failed and repeat and proof.lifter.steps["reused"]:
            _complete(proof, program, relations, expected, wrong)
    return proof


def _complete(
    proof: Proof, program: RankProgram, relations: Relations, expected: Mapping[str, Placement], wrong: Wrong
) -> None:
    """Lift every layer by itself, and relate once more the outputs that are other values then."""
    before = proof.ranks
    try:
        with _time(proof, "lift ranks"):
            proof.ranks = proof.lifter.complete(program.graphs)
    except BudgetExceeded:
        proof.out_of_time = True
        return
    pairs = list(zip(before, proof.ranks, strict=True))
    if proof.pairing is not None:
        proof.failed = []
        _pair(proof, program)
    else:
        changed = [name for name in proof.failed if any(_output(old, name) != _output(new, name) for old, new in pairs)]
        _relate_all(proof, changed, program, expected, wrong)
    proof.assumptions = _assumptions(proof, program, relations)


def _output(lifted: Lifted, name: str) -> int | None:
    """The value of an output of a rank that has it."""
    return lifted.values[lifted.graph.outputs[name]] if name in lifted.graph.outputs else None


def _is_hopeless(failed: Collection[str], wrong: Wrong) -> bool:
    """Whether values show that nothing else would relate these outputs, or no more than a few of them.

    A few may be right by chance: behind a wrong activation the gradient of a bias of keys is zero all the same.
    """
    known = wrong(failed)
    return bool(known) and _OF_WHICH_ONE_IS_RIGHT * (len(failed) - len(known)) <= len(failed)


def _closest(lift: Callable[..., Proof], several: Iterable[Forms], proof: Proof) -> Proof:
    """The first proof under other normal forms that relates everything, else the one that relates most."""
    best = proof
    for forms in several:
        other = lift(reuse=True, forms=forms)
        if other.out_of_time or other.mismatch:
            continue
        if not other.failed:
            return other
        if len(other.failed) < len(best.failed):
            best = other
    return best


def _other_forms(sequential: Graph, program: RankProgram) -> Iterator[Forms]:
    """Other normal forms that are worth a try for a program."""
    kinds = {type(node.op) for graph in program.graphs for node in graph.nodes}
    convolves = ops.Convolution in kinds and len(program.graphs) > 1
    if any(issubclass(kind, ops.Ordering) for kind in kinds) and len(program.graphs) > 1:
        yield _DATA
    if convolves:
        yield _PLAIN  # sums of products are looked for in it too, and the borders of an input are indices of one value
    if convolves or kinds & {ops.AllReduce, ops.ReduceScatter}:
        yield _PRODUCTS
    # Before quotients, which take the longest where they do not help.
    if ops.Concatenate in kinds and not convolves:
        yield _PLAIN
    if any(isinstance(node.op, ops.Exponential | ops.Compare) for node in sequential.nodes):
        yield _QUOTIENTS


def prove_with_journal(
    sequential: Graph,
    program: RankProgram,
    relations: Relations,
    expected: Mapping[str, Placement],
    forms: Forms = USUAL,
    walks: Walks | None = None,
) -> Proof:
    """Repeat the proof and record every step in a journal; the forms that are known to reach it are tried first.

    ``walks`` come from the first proof.
    """
    lift = partial(_lift, sequential, program, relations, expected, None, walks=walks or Walks())
    with pause_garbage_collection():
        first: Proof | None = None
        for other in dict.fromkeys((forms, USUAL, *_other_forms(sequential, program))):
            proof = lift(reuse=True, journal=Journal(), forms=other)
            if not proof.failed:
                return proof
            first = proof if other == USUAL else first
        assert first is not None, "the usual forms are among them"
        if first.lifter.steps["reused"]:
            return lift(reuse=False, journal=Journal())
    return first


def _lift(
    sequential: Graph,
    program: RankProgram,
    relations: Relations,
    expected: Mapping[str, Placement],
    deadline: float | None,
    *,
    reuse: bool,
    contract: bool = False,
    journal: Journal | None = None,
    forms: Forms = USUAL,
    wrong: Wrong = lambda failed: (),
    walks: Walks | None = None,
) -> Proof:
    """Raises NotContracted where layers were left out that the remaining ones cannot stand for."""
    started = time.perf_counter()
    numbered = are_numbered(sequential, program.graphs)
    shorter = contract and not numbered
    lifter = Lifter(deadline, reuse=reuse, contract=shorter, forms=forms, walks=walks, journal=journal)
    lifter.stop = _Impatience(started, sequential, wrong)
    inputs = input_values(lifter, sequential, program, relations.placements, relations.equations)
    seconds = {"relate inputs": time.perf_counter() - started}
    proof = Proof(lifter, Lifted(sequential), [], seconds=seconds)
    try:
        with _time(proof, "lift sequential"):
            proof.sequential = lifter.sequential(sequential, inputs.sequential)
        with _time(proof, "lift ranks"):
            proof.ranks = lifter.ranks(program.graphs, inputs.ranks)
    except BudgetExceeded:
        proof.out_of_time = True
        return proof
    except CollectiveMismatch as error:
        proof.mismatch = error
        return proof
    started = time.perf_counter()
    stands = _stand_ins(lifter, relations, expected)
    names = [name for name in sequential.outputs if name not in stands]
    if numbered:
        _pair(proof, program)
    elif journal is None:
        started += _relate_all(proof, names, program, expected, wrong)  # has a phase of its own
    else:
        for name in names:
            work = partial(_relate_at_last, proof, name, program, expected.get(name))
            proof.looked_into[name] = lifter.trace_within(work)
    if stands and not numbered:
        _repeat(proof, program, stands, expected)
    seconds["relate outputs"] = time.perf_counter() - started
    proof.assumptions = _assumptions(proof, program, relations)
    return proof


@dataclass
class _Impatience:
    """Whether lifting takes long and values show that the programs differ: what a wrong rank computes is like nothing
    in the sequential program, and grows."""

    started: float
    sequential: Graph
    wrong: Wrong
    asked: bool = False

    def __call__(self) -> bool:
        if self.asked or time.perf_counter() - self.started < _PATIENCE:
            return False
        self.asked = True
        return bool(self.wrong(list(self.sequential.outputs)))


def _relate_all(
    proof: Proof, names: Sequence[str], program: RankProgram, expected: Mapping[str, Placement], wrong: Wrong
) -> float:
    """Relate some outputs: at last what takes long, but for those that values show to be wrong.

    Gives the seconds that were spent on values.
    """
    proof.failed = [name for name in proof.failed if name not in names]
    others = list(proof.failed)
    for name in names:
        _relate(proof, name, program, expected.get(name), expand=False)
    if len(proof.failed) == len(others):
        return 0.0
    asked = time.perf_counter()
    given_up = {*others, *wrong(proof.failed)}
    seconds = time.perf_counter() - asked
    open_ones = [name for name in proof.failed if name not in given_up]
    proof.failed = [name for name in proof.failed if name in given_up]
    for name in open_ones:
        _relate(proof, name, program, expected.get(name))
    proof.failed.sort(key=list(proof.sequential.graph.outputs).index)
    return seconds


def _stand_ins(lifter: Lifter, relations: Relations, expected: Mapping[str, Placement]) -> Mapping[str, str]:
    """The outputs that stand for those of layers that were left out, after a check that they can."""
    if lifter.contraction is None:
        return {}
    contraction, facts, placements = lifter.contraction, lifter.algebra.facts, relations.placements
    told = {name for term in facts.known for name in lifter.algebra.terms.inputs(term)} | facts.unchecked
    equations = {equation.name for equation in relations.equations}
    alike = all(name in placements and placements[name] == placements.get(s) for name, s in contraction.inputs.items())
    wanted = all(expected.get(name) == expected.get(s) for name, s in contraction.outputs.items())
    layered = any(lifter.algebra.terms.reads_named(term) for term in facts.known) or facts.layered
    if layered or not alike or not wanted or not contraction.own.isdisjoint(told | equations):
        raise NotContracted
    return contraction.outputs


def _repeat(proof: Proof, program: RankProgram, stands: Mapping[str, str], expected: Mapping[str, Placement]) -> None:
    """Relate outputs of layers that were left out in the same way as the outputs that stand for them."""
    held: dict[str, tuple[Holders, Placement] | None] = {}
    for name, other in stands.items():
        if other not in held:
            held[other] = _held_output(proof, other, program)
        found = held[other]
        if found is None or holders_of(name, program.graphs, program.mesh) != found[0]:
            proof.failed.append(name)
        else:
            _found(proof, name, *found, expected.get(name), fine=True)
    proof.relations = {
        name: proof.relations[name] for name in proof.sequential.graph.outputs if name in proof.relations
    }


def _held_output(proof: Proof, name: str, program: RankProgram) -> tuple[Holders, Placement] | None:
    """Which ranks hold a related output, and how; None where that is not known."""
    placement = proof.placements.get(name)
    owners = holders_of(name, program.graphs, program.mesh)
    part = owners.restrict(placement) if owners is not None and placement is not None else None
    return None if owners is None or part is None or name in proof.failed else (owners, part)


@contextmanager
def _time(proof: Proof, phase: str) -> Generator[None]:
    """Measure the seconds of a phase; walking the graphs is counted separately."""
    started, walked = time.perf_counter(), proof.lifter.walking
    try:
        yield
    finally:
        walking = proof.lifter.walking - walked
        proof.seconds["walk graphs"] = proof.seconds.get("walk graphs", 0.0) + walking
        proof.seconds[phase] = time.perf_counter() - started - walking


def _relate(proof: Proof, name: str, program: RankProgram, expected: Placement | None, *, expand: bool = True) -> None:
    """Relate one output of the sequential program to the ranks' outputs of that name.

    With ``expand``, also where only products of sums that are multiplied out are equal, which takes long.
    """
    lifter = proof.lifter
    known = proof.sequential.values[proof.sequential.graph.outputs[name]]
    if UNKNOWN in (known, *(r.values[r.graph.outputs[name]] for r in proof.ranks if name in r.graph.outputs)):
        raise NotContracted
    value = lifter.values[lifter.hidden.get(known, known)]
    owners = holders_of(name, program.graphs, program.mesh)
    if owners is None:
        proof.failed.append(name)
        proof.relations[name] = OutputRelation(name, "", "no rank output of that name", _text(expected), False)
        return
    ranks = [proof.ranks[rank] for rank in owners.ranks]
    held = [lifter.values[rank.values[rank.graph.outputs[name]]] for rank in ranks]
    wanted = None if expected is None else owners.restrict(expected)
    if wanted is not None and holds(lifter, value, held, wanted, owners.mesh, expand=expand):
        _found(proof, name, owners, wanted, expected, fine=True)
        return
    found = infer(lifter, value, held, owners.mesh, expand=expand and expected is None)
    if found is None:
        proof.failed.append(name)
        proof.relations[name] = OutputRelation(name, "", f"{name} is not related", _text(expected), False)
        return
    _found(proof, name, owners, found, expected, fine=expected is None and not found.partial)


def _relate_at_last(proof: Proof, name: str, program: RankProgram, expected: Placement | None) -> None:
    """As ``_relate``, multiplied out only where nothing else helps, which is how a proof was found."""
    _relate(proof, name, program, expected, expand=False)
    if name in proof.failed:
        proof.failed.remove(name)
        _relate(proof, name, program, expected)


def _found(
    proof: Proof, name: str, owners: Holders, placement: Placement, expected: Placement | None, *, fine: bool
) -> None:
    """Note how the ranks that return an output hold it."""
    everywhere = placement if len(owners.ranks) == owners.whole.size else owners.extend(placement)
    proof.placements[name] = everywhere
    if not fine:
        proof.failed.append(name)
    text = equation(name, placement, owners.mesh, ranks=owners.ranks)
    proof.relations[name] = OutputRelation(name, str(everywhere), text, _text(expected), fine)


def _pair(proof: Proof, program: RankProgram) -> None:
    """Relate outputs that have no names, by their values."""
    found = proof.pairing = pair(
        proof.lifter, proof.sequential, proof.ranks, partial(infer, proof.lifter, mesh=program.mesh)
    )
    for name, (label, placement) in found.related.items():
        text = equation(name, placement, program.mesh, label)
        proof.relations[name] = OutputRelation(name, str(placement), text, None, True)
    for name in found.alone:
        text = f"{name} is an index or a mask made of integer inputs alone, which every rank holds"
        proof.relations[name] = OutputRelation(name, "", text, None, True)
    for name in found.failed:
        proof.relations[name] = OutputRelation(name, "", f"{name} is not related", None, False)
    proof.relations = {name: proof.relations[name] for name in proof.sequential.graph.outputs}
    proof.failed += [*found.failed, *(f"{name} of the ranks" for name in found.unclaimed)]


def _text(placement: Placement | None) -> str | None:
    return None if placement is None else str(placement)


def _assumptions(proof: Proof, program: RankProgram, relations: Relations) -> list[str]:
    """What a proof assumes: of numbers, of indices, of inputs, and of sizes and options as these were captured."""
    found = [graph.metadata.get("assumptions", "") for graph in (proof.sequential.graph, *program.graphs)]
    captured = dict.fromkeys(text for line in found for text in line.split("; ") if text)
    return [REALS, *_facts(proof.lifter, proof.sequential.graph), *relations.assumptions, *captured]


def _facts(lifter: Lifter, sequential: Graph) -> list[str]:
    """The conditions on inputs under which the sequential program is defined, in words."""
    found: list[str] = []
    terms = lifter.algebra.terms
    for term, region in lifter.algebra.facts.known.items():
        says_nothing = any(low is None and high is None for ((low, high),), _ in region)
        if says_nothing or is_of_type(sequential, terms.label(term), region):
            continue
        names = sorted(terms.inputs(term))
        what = " and ".join(names) if isinstance(terms.label(term), Input) else f"an index made of {', '.join(names)}"
        sets = " or ".join(_interval(low, high) for ((low, high),), _ in region)
        found.append(f"the values of {what} lie in {sets}, or the sequential program reads out of range")
    if lifter.algebra.facts.unchecked:
        names = ", ".join(sorted(lifter.algebra.facts.unchecked))
        found.append(f"look-ups of the ranks at indices made of {names} stay in range")
    if lifter.algebra.facts.finite:
        names = sorted(lifter.algebra.facts.finite)
        several = f"{', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}"
        found.append(f"where the programs ask whether the largest of what is made of {several} is finite, it is")
    return list(dict.fromkeys(found))


def _interval(low: object, high: object) -> str:
    if isinstance(low, int) and isinstance(high, int) and high == low + 1:
        return f"{{{low}}}"
    return f"[{'-inf' if low is None else low}, {'inf' if high is None else high})"


__all__ = ["Given", "Proof", "RewrightError", "Sequence", "attempt", "input_relations", "output_expectations"]
