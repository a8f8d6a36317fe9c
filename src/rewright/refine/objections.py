"""What running two programs says against a verdict about them.

A proof is about real numbers, and holds where both programs are defined. Where numbers differ all the same, either the
inputs are among those that the programs are meant for, and the claim is refuted; or they are not, and the verdict names
the operator that must not meet them; or the proof is wrong, which is an alarm.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from rewright.interp.adversarial import Kind
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.memory import pause_garbage_collection
from rewright.ir.operator import Unsupported
from rewright.ir.placement import Mesh, Placement, RankProgram, place
from rewright.lifting.layers.induction import Layered
from rewright.lifting.layers.shortening import Shortened, find_layers, layered_like, shorten_programs
from rewright.ops.agreement import CollectiveMismatch
from rewright.ops.base import Array
from rewright.refine.alarm import PREFIX, bundle
from rewright.refine.relations.solving import Solved
from rewright.refine.twin.contest import RARE, Contest, Contradiction
from rewright.refine.twin.symbols import at_sizes, further_sizes
from rewright.refine.twin.twin import LARGEST, Twin, make_twin
from rewright.refine.verdict import Evidence, Finding, Verdict

_SMALL = LARGEST >> 3
"""A pair that is proved is run at sizes that take a part of the time of the proof."""
_FARTHER = 1000
"""How many times as far from zero as every number that is given what stands for infinity has to be."""
_MOST_STEPS = 1 << 13
"""Programs with more operators are run with three of their layers: as a whole they take longer than their proof."""
_MOST_WHOLE = 1 << 18
"""Those without equal layers are run as a whole up to here, which takes a few seconds."""
NOT_RUN = "the programs were not run on numbers: they have {:,} operators, and too few of them in layers that repeat"
SHORTER = "the programs were run on numbers with 3 of their {} equal layers"
TIES = "no two elements are equal"
"""What a verdict says that leaves equal elements out of account."""
LEFT_OUT = "rows in which no element counts are left out of the claim"


@dataclass(frozen=True)
class Run:
    """Two programs as they were captured, over the same inputs."""

    sequential: Graph
    program: RankProgram
    placements: Mapping[str, Placement]
    """How outputs are held, as far as that is known; of others what fits the values."""
    solved: Solved | None = None
    given: Mapping[str, Array] | None = None
    """Values of inputs that are known; they are run as they are, besides random ones."""
    fixed: Mapping[str, Array] | None = None
    """Those of them that the verdict is about, and no others."""
    unclaimed: Graph | None = None
    """A program over the same inputs; where its outputs are not a number nothing is claimed."""
    infinity: float = math.inf
    """What stands for infinity: no number that is given comes near it."""
    tolerance: float = 0.0
    """Of the usual size of the elements of an output, what tables that were rounded explain."""
    shrinks: bool = True
    """Whether smaller programs say anything about these: tables that are held whole are not shrunk as they are made."""
    mutual: bool = False
    """Whether either program is as good as the other: neither may be undefined where the other is not."""
    layered: tuple[Layered, ...] = ()
    """Both programs as streams of equal layers, where the proof went by these."""

    @property
    def steps(self) -> int:
        """How many operators both programs have."""
        return len(self.sequential) + sum(map(len, self.program.graphs))

    def of(self, short: Shortened) -> Run:
        """The same about the programs with fewer layers."""
        left, program, solved = short.sequential, self.program, self.solved or {}
        held = {"inputs": _among(program.inputs, left.inputs), "outputs": _among(program.outputs, left.outputs)}
        return replace(
            self,
            sequential=left,
            program=replace(program, graphs=short.ranks, **held),
            placements=_among(self.placements, left.outputs),
            solved={key: read for key, read in solved.items() if key[1] in short.ranks[key[0]].inputs},
            given=None if self.given is None else _among(self.given, left.inputs),
            fixed=None if self.fixed is None else _among(self.fixed, left.inputs),
            unclaimed=next(iter(short.others), None),
            layered=(),
        )


_T = TypeVar("_T")


def _among(table: Mapping[str, _T], names: Collection[str]) -> dict[str, _T]:
    return {name: value for name, value in table.items() if name in names}


def challenge_verdict(verdict: Verdict, pair: Run, folder: Path | None = None) -> Verdict:
    """The verdict after its programs were run on inputs that try to tell them apart.

    Args:
        verdict: ``proved`` or ``unknown``; others stay as they are.
        pair: the programs.
        folder: where the bundle of an alarm is written; the folder of temporary files by default.
    """
    if verdict.status == "refuted":
        return verdict
    with pause_garbage_collection():
        tried = _objection if pair.steps <= _MOST_STEPS else _with_three_layers
        return tried(verdict, pair, folder)


def _with_three_layers(verdict: Verdict, pair: Run, folder: Path | None) -> Verdict:
    """The verdict after the programs were run with fewer layers, which may deny it and refutes nothing by itself."""
    if verdict.status != "proved":
        return verdict
    found = _shorten(pair)
    if found is None and pair.steps <= _MOST_WHOLE:
        return _objection(verdict, pair, folder)
    if found is None or (shorter := pair.of(found)).steps > _MOST_WHOLE:
        return replace(verdict, notes=(*verdict.notes, NOT_RUN.format(pair.steps)))
    told = SHORTER.format(found.layers)
    after = _objection(verdict, shorter, folder)
    if after.status == "refuted":
        return replace(after, status="unknown", reason=f"{told}: {after.reason}")
    return replace(after, notes=(*after.notes, told))


def _shorten(pair: Run) -> Shortened | None:
    """The programs with three layers, with the one that says where nothing is claimed; None where they have none."""
    layers = pair.layered or find_layers(pair.sequential, pair.program.graphs)
    if not layers or pair.unclaimed is None:
        return shorten_programs(*layers) if layers else None
    unclaimed = layered_like(pair.unclaimed, layers[0].contraction)
    return None if unclaimed is None else shorten_programs(*layers, unclaimed)


def _objection(verdict: Verdict, pair: Run, folder: Path | None) -> Verdict:
    for contest in _contests(pair, proved=verdict.status == "proved"):
        for draw in contest.draws(thorough=verdict.status == "proved"):
            found = contest.try_draw(draw)
            verdict = verdict if found is None else _against(verdict, found, pair.mutual, folder)
            if verdict.status == "refuted" or verdict.reason.startswith(PREFIX):
                return verdict
    return verdict


def replicated_outputs(graph: Graph) -> dict[str, Placement]:
    """Every output as one rank holds it."""
    one = Mesh.of({"rank": 1})
    return {name: place(graph.nodes[p].type.shape, one, ("Replicate()",)) for name, p in graph.outputs.items()}


def _contests(pair: Run, *, proved: bool) -> list[Contest]:
    """The pair at its usual sizes, with the values that are known, and at further sizes."""
    twins = [_twin(pair, None, proved)]
    twins += [_twin(pair, sizes, True) for sizes in further_sizes((pair.sequential, *pair.program.graphs))]
    found: list[Contest] = []
    for twin in _with_values(twins, pair):
        unclaimed = pair.unclaimed and at_sizes(pair.unclaimed, twin.resize.sizes)
        known = twin.rescale(pair.placements)
        guessed = {} if proved and known else dict(_guessed(twin, known))
        found.append(Contest(twin, known | guessed, frozenset(guessed), unclaimed, pair.tolerance))
    return found


def _guessed(twin: Twin, known: Mapping[str, Placement]) -> Iterator[tuple[str, Placement]]:
    """Placements that fit the values of a first draw, of outputs of which nothing else is known."""
    if known.keys() >= twin.sequential.outputs.keys():
        return
    for name, placement in twin.compare(expect=known, trials=1).placements.items():
        if name not in known and placement is not None:
            yield name, placement


def _with_values(twins: Sequence[Twin | None], pair: Run) -> Iterator[Twin]:
    """The twins, first the one of usual sizes with all values that are known."""
    usual = twins[0]
    if usual is not None and pair.given and not usual.shrunk:
        yield replace(usual, draws=replace(usual.draws, given=pair.given))
    for twin in twins:
        if twin is not None and not (twin.shrunk and pair.fixed):
            near = tuple(c for c in twin.draws.constants if abs(c) < pair.infinity / _FARTHER)
            yield replace(twin, draws=replace(twin.draws, given=pair.fixed or {}, constants=near))


def _twin(pair: Run, sizes: Mapping[str, int] | None, proved: bool) -> Twin | None:
    try:
        largest = _SMALL if proved and pair.shrinks else LARGEST
        made = make_twin(pair.sequential, pair.program, largest, pair.solved, sizes)
    except CollectiveMismatch:
        return None
    except RewrightError:
        if sizes is None:
            raise
        return None  # the sizes do not fit the programs
    return None if isinstance(made, Unsupported) or (made.shrunk and not pair.shrinks) else made


def _against(verdict: Verdict, found: Contradiction, mutual: bool, folder: Path | None) -> Verdict:
    """The verdict with what a contradiction does to it."""
    proved = verdict.status == "proved"
    if found.cause == "unclaimed":
        told = any(text.startswith(LEFT_OUT) for text in verdict.assumptions)
        return verdict if told or not proved else _with_assumption(verdict, f"{LEFT_OUT}: there {_values(found)}")
    if not found.is_reference_defined and not mutual:
        return verdict  # where the sequential program is not defined nothing is claimed
    if found.cause == "failed":
        return verdict if any("in range" in text for text in verdict.assumptions) else refute(verdict, found)
    if found.cause in ("rounded", "wrapped"):
        if found.draw.kind is Kind.LARGE or (found.draw.kind is Kind.IDS and _reads_flags(found)):
            return _with_assumption(verdict, found.condition) if proved else verdict
        return refute(verdict, found)
    if found.cause == "undefined":
        if found.draw.kind in RARE:
            return _with_assumption(verdict, found.condition) if proved else verdict
        return refute(verdict, found) if found.is_reference_defined else _undefined(verdict, found)
    if found.draw.kind in RARE and any(TIES in text for text in verdict.assumptions):
        return verdict
    both = np.isfinite([found.example.sequential_value, found.example.distributed_value]).all()
    if proved and both and verdict.evidence is Evidence.PROVED and not _is_whole(found):
        return alarm_verdict(verdict, found, folder)
    return refute_despite_proof(verdict, found) if proved else refute(verdict, found)


def alarm_verdict(verdict: Verdict, found: Contradiction, folder: Path | None = None) -> Verdict:
    """Unknown: a confirmed proof and a run say different things, and one of them is wrong."""
    place = bundle(found, folder)
    reason = (
        f"{PREFIX}the programs were proved equal, and {found.reason}: {_values(found)}; this is a fault of Rewright, "
        f"please report it with {place} (python -m rewright.refine.alarm {place} runs it again)"
    )
    return replace(verdict, status="unknown", evidence=Evidence.TESTED, reason=reason, certify=None)


def refute_despite_proof(verdict: Verdict, found: Contradiction) -> Verdict:
    """Refuted, although there was a proof: infinities, or the answer among equals, are beyond what it was about."""
    return refute(verdict, found)


def refute(verdict: Verdict, found: Contradiction) -> Verdict:
    """Refuted with the inputs that show it."""
    reason = f"{found.reason}: {_values(found)}"
    finding = Finding("wrong_value", reason, None, None, "", "", None, found.example)
    about = {"reason": reason, "findings": (finding,), "certify": None}
    return replace(verdict, status="refuted", evidence=Evidence.TESTED, **about)


def _undefined(verdict: Verdict, found: Contradiction) -> Verdict:
    if verdict.status != "proved":
        return verdict
    reason = f"{found.reason} and the other program has one: {_values(found)}; the programs are equal at most elsewhere"
    return replace(verdict, status="unknown", evidence=Evidence.TESTED, reason=reason, certify=None)


def _with_assumption(verdict: Verdict, text: str) -> Verdict:
    known = verdict.assumptions
    return verdict if any(text in one for one in known) else replace(verdict, assumptions=(*known, text))


def _reads_flags(found: Contradiction) -> bool:
    """Whether integers were drawn as ids that may be flags."""
    return found.twin is not None and any(known.flags for known in found.twin.draws.integers.values())


def _is_whole(found: Contradiction) -> bool:
    """Whether the output that differs holds integers or truth values."""
    twin = found.twin
    return (
        twin is not None
        and not twin.sequential.nodes[twin.sequential.outputs[found.example.output]].type.dtype.is_float
    )


def _values(found: Contradiction) -> str:
    example = found.example
    where = f"{example.output}{list(example.index)}"
    return f"{where} is {example.sequential_value:.6g} and {example.distributed_value:.6g}"
