"""Going through the right program once, in order: what the engine does not recognise is proved equal piece by piece.

Values say where to look. A tensor of the right program that the engine does not recognise, and that has the values of
one of the left program, is cut back on both sides to what is known to be equal, and the two small parts are proved
equal. From then on the engine takes the tensor for what it is in the left program. Parts that were proved once are
proved for every layer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rewright import ops
from rewright.analysis.meetings import LocalNode
from rewright.blame.cones import LARGEST, Cone, Cutter
from rewright.blame.layouts import Layout, Numbers
from rewright.equiv.inputs.alignment import fits
from rewright.equiv.lemmas.equations import Prover
from rewright.ir.digest import node_digests
from rewright.ir.dims import product
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import RankProgram
from rewright.ir.types import TensorType
from rewright.lifting.moves.layout import reshape, tidy, transpose
from rewright.lifting.programs import Lifted, Lifter, Run
from rewright.lifting.terms.value import NotAView, Pieces, Value
from rewright.proof.rewriting.evidence import NUMBERS, PROVED
from rewright.proof.rewriting.lemma import Lemma, key_of
from rewright.proof.rewriting.numbers.closed import compare_closed
from rewright.proof.rewriting.splices import Splice, Stage
from rewright.refine.relations.given import Relations
from rewright.refine.relations.inputs import input_values

_MOST_COMPUTED = 4096
_MOST_FAILURES = 12
"""The sweep stops after this many tensors without a proof although something new was tried."""
_NEARBY = 24
"""Operators between two leaves of a part that are looked through."""
_MOST_ATTEMPTS = 6
"""So many proofs that fail are tried for one tensor."""


@dataclass
class Swept:
    """Splices that replace the proved parts of the right program by those of the left, and the lemmas that say why."""

    splices: list[Splice] = field(default_factory=list[Splice])
    lemmas: dict[str, Lemma] = field(default_factory=dict[str, Lemma])
    failures: int = 0
    open: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    """Pairs of nodes whose values agree and that were not proved equal, with the reason."""

    @property
    def stage(self) -> Stage:
        """What is to be put into the right program."""
        return Stage(tuple(self.splices), tuple(self.lemmas.values()))


@dataclass(frozen=True)
class _Keys:
    """When two tensors are one leaf of a cone: where they have one key."""

    of: Callable[[int], int]
    """The key of a value."""
    known: frozenset[int]
    """The keys of everything that the left program computes."""
    holders: dict[int, int] = field(default_factory=dict[int, int])
    """By key the first node of the right program that holds it."""


class Sweep:
    """One pass over a right program of one rank."""

    def __init__(self, left: Graph, program: RankProgram, relations: Relations, numbers: Numbers | None) -> None:
        self.left, self.right = left, program.graphs[0]
        self.numbers = numbers
        self.lifter = Lifter()
        inputs = input_values(self.lifter, left, program, relations.placements, relations.equations)
        self.lifted_left = self.lifter.sequential(left, inputs.sequential)
        self.lifted = Lifted(self.right, [-1] * len(self.right.nodes))
        self._run = Run(self.lifter, [self.lifted], inputs.ranks, [frozenset()], 0)
        self._by_value: dict[int, int] = {}
        for position, value in enumerate(self.lifted_left.values):
            self._by_value.setdefault(value, position)
        self._flat: dict[int, int] = {}
        flat = frozenset(self._flatten(value) for value in self._by_value)
        self._keys = _Keys(self._flatten, flat), _Keys(int, frozenset(self._by_value))
        """Tensors of the same elements in the same order are one leaf, whatever their shape; else equal ones are."""
        self._cutters = Cutter(left), Cutter(self.right)
        self._expressions = node_digests(self.right)

    def run(self, prover: Prover, deadline: float | None = None) -> Swept:
        """Go through the program, up to the deadline."""
        found = Swept()
        for position, node in enumerate(self.right.nodes):
            if deadline is not None and time.monotonic() >= deadline:
                break
            self._run.step(LocalNode(0, position))
            value = self.lifted.values[position]
            if self._is_strange(value, node):
                splice = self._merge(position, prover, found)
                if splice is not None:
                    found.splices.append(splice)
                    value = self.lifted.values[position]
            for keys in self._keys:
                keys.holders.setdefault(keys.of(value), position)
        return found

    def _flatten(self, value: int) -> int:
        """The value with one axis; the value itself where its elements are in no one row."""
        if value not in self._flat:
            shaped = self.lifter.values[value]
            try:
                self._flat[value] = self.lifter.intern(tidy(reshape(shaped, (product(shaped.shape),))))
            except NotAView:
                self._flat[value] = value
        return self._flat[value]

    def _is_strange(self, value: int, node: Node) -> bool:
        """Whether the engine does not know a value from the left program."""
        if not node.type.dtype.is_float or isinstance(node.op, ops.Constant | ops.Input):
            return False
        if value in self._by_value:
            return False
        return not _familiar(self.lifter, self.lifter.values[value])

    def _merge(self, position: int, prover: Prover, found: Swept) -> Splice | None:
        if self.numbers is None or found.failures >= _MOST_FAILURES:
            return None
        attempts, tried_before = 0, prover.attempts
        for other, layout in self.numbers.partners(position):
            left_type, right_type = self.left.nodes[other].type, self.right.nodes[position].type
            if not fits(layout, left_type.shape, right_type.shape):
                continue
            value = self._laid_out(other, layout, right_type)
            if value is None:
                continue
            computed = self._compute(other, position, layout, right_type)
            if computed is not None:
                self.lifted.values[position] = self.lifter.intern(value)
                return self._splice({}, other, position, computed, found)
            for keys, *cones in self._cones(other, position):
                if not self._is_plain(cones[1]):
                    continue
                names = _names(cones)
                held = {name: _holders(key, cones[1], keys) for key, name in names.items()}
                lemma = self._lemma(cones, names, held, layout, right_type, prover)
                if isinstance(lemma, str):
                    found.open.append((other, position, lemma))
                    attempts += 1
                    if attempts == _MOST_ATTEMPTS:
                        found.failures += prover.attempts > tried_before
                        return None
                    continue
                self.lifted.values[position] = self.lifter.intern(value)
                return self._splice(held, other, position, lemma, found)
        found.failures += prover.attempts > tried_before
        return None

    def _splice(
        self, held: Mapping[str, tuple[int, ...]], other: int, position: int, lemma: Lemma, found: Swept
    ) -> Splice:
        place = str(self.left.nodes[other].span), str(self.right.nodes[position].span)
        known = found.lemmas.get(lemma.key)
        if known is None:
            lemma = replace(lemma, name=f"lemma {len(found.lemmas) + 1}")
        found.lemmas[lemma.key] = replace(known or lemma, places=(*(known.places if known else ()), place))
        return Splice(position, lemma.key, tuple(held.items()))

    def _laid_out(self, position: int, layout: Layout, kind: TensorType) -> Value | None:
        """The value of a left node in a layout."""
        value = self.lifter.values[self.lifted_left.values[position]]
        shape = kind.shape
        try:
            if layout.split_first:
                inner = tuple(shape[a] for a in layout.order)
                back = [layout.order.index(a) for a in range(len(layout.order))]
                return tidy(transpose(reshape(value, inner), back))
            return tidy(reshape(transpose(value, layout.order), shape))
        except NotAView:
            return None

    def _compute(self, left: int, right: int, layout: Layout, kind: TensorType) -> Lemma | None:
        """A lemma about masks and whole numbers that depend on no input: both are computed, and compared exactly."""
        cutters = self._cutters
        if not (cutters[0].is_exact(left) and cutters[1].is_exact(right)) or not kind.is_static():
            return None
        mine, theirs = (
            cutter.cone(p, _no_leaf, _MOST_COMPUTED) for cutter, p in zip(cutters, (left, right), strict=True)
        )
        if mine is None or theirs is None:
            return None
        try:
            lemma = Lemma("", mine.part({}, {}, result=(layout, kind)), theirs.part({}, {}), NUMBERS)
        except RewrightError:
            return None
        return lemma if compare_closed(lemma) == () else None

    # --- cones

    def _cones(self, left: int, right: int) -> Iterator[tuple[_Keys, Cone, Cone]]:
        """Pairs of cones over the same leaves, the smallest first."""
        seen: set[tuple[object, object]] = set()
        for largest in (LARGEST // 4, LARGEST):
            found: list[tuple[_Keys, Cone, Cone]] = []
            for keys in self._keys:
                for pair in self._cut(left, right, keys, largest):
                    for fresh in _fresh(keys, *pair, seen):
                        found.append(fresh)
                        yield fresh
            for keys, *both in found:
                for cutter, cone in zip(reversed(self._cutters), reversed(both), strict=True):
                    allowed = _sources(cutter, cone)
                    if len(allowed) < len(cone.leaves.values()):
                        pair = self._over(left, right, keys, allowed, LARGEST // 4)
                        yield from _fresh(keys, *pair, seen)

    def _cut(self, left: int, right: int, keys: _Keys, largest: int) -> Iterator[tuple[Cone | None, Cone | None]]:
        """Cones that end at the first values that are known, those of one program or of the other."""
        lefts, rights = self._cutters
        mine = rights.cone(right, partial(self._known_right, keys=keys), largest)
        if mine is not None:
            allowed = set(mine.leaves.values())
            yield lefts.cone(left, partial(self._known_left, keys=keys, allowed=allowed), largest), mine
        other = lefts.cone(left, partial(self._known_left, keys=keys, allowed=None), largest)
        if other is not None:
            allowed = set(other.leaves.values())
            yield other, rights.cone(right, partial(self._within, keys=keys, allowed=allowed), largest)

    def _over(
        self, left: int, right: int, keys: _Keys, allowed: set[int], largest: int
    ) -> tuple[Cone | None, Cone | None]:
        """The cones over some values."""
        lefts, rights = self._cutters
        other = lefts.cone(left, partial(self._known_left, keys=keys, allowed=allowed), largest)
        return other, rights.cone(right, partial(self._within, keys=keys, allowed=allowed), largest)

    def _is_plain(self, cone: Cone) -> bool:
        """Whether leaves that hold one value are one expression: a lemma takes them for one tensor."""
        first: dict[int, bytes] = {}
        leaves = cone.leaves.items()
        return all(first.setdefault(key, self._expressions[p]) == self._expressions[p] for p, key in leaves)

    def _known_right(self, position: int, keys: _Keys) -> int | None:
        key = keys.of(self.lifted.values[position])
        return key if isinstance(self.right.nodes[position].op, ops.Input) or key in keys.known else None

    def _within(self, position: int, keys: _Keys, allowed: set[int]) -> int | None:
        key = keys.of(self.lifted.values[position])
        return key if isinstance(self.right.nodes[position].op, ops.Input) or key in allowed else None

    def _known_left(self, position: int, keys: _Keys, allowed: set[int] | None) -> int | None:
        """A left node that the right program has computed already, or an input that it has."""
        key = keys.of(self.lifted_left.values[position])
        if isinstance(self.left.nodes[position].op, ops.Input):
            return key if key in keys.holders else None
        return key if key in (keys.holders if allowed is None else allowed) else None

    def _lemma(
        self,
        cones: Sequence[Cone],
        names: Mapping[int, str],
        held: Mapping[str, tuple[int, ...]],
        layout: Layout,
        kind: TensorType,
        prover: Prover,
    ) -> Lemma | str:
        """The lemma that two cones compute the same of what the right program holds, or why it is not proved."""
        left, right = cones
        types = {name: self.right.nodes[positions[0]].type for name, positions in held.items()}
        try:
            sides = left.part(names, types, result=(layout, kind)), right.part(names, types)
        except RewrightError as error:
            return str(error)
        if not prover.proves(*sides):
            return prover.reasons[key_of(*sides)]
        return Lemma("", *sides, PROVED)


def _holders(key: int, cone: Cone, keys: _Keys) -> tuple[int, ...]:
    """The nodes of the right program that hold a leaf: those of its own cone, or the first one."""
    own = tuple(sorted(p for p, other in cone.leaves.items() if other == key))
    return own or (keys.holders[key],)


def _names(cones: Sequence[Cone]) -> dict[int, str]:
    """What a lemma calls the leaves of two cones."""
    keys = dict.fromkeys([*cones[0].leaves.values(), *cones[1].leaves.values()])
    return {key: f"t{k}" for k, key in enumerate(keys)}


def _sources(cutter: Cutter, cone: Cone) -> set[int]:
    """The leaves without those that are computed from other leaves nearby.

    A mean beside the elements that it is the mean of hides what a variance in one pass is about, and halves beside what
    they are the halves of hide what a rotation is about.
    """
    kept = dict(cone.leaves)
    for position in sorted(cone.leaves, reverse=True):
        others = {p: key for p, key in kept.items() if key != cone.leaves[position]}
        part = cutter.cone(position, others.get, _NEARBY)
        is_input = isinstance(cutter.graph.nodes[position].op, ops.Input)
        if others and not is_input and part is not None and part.leaves:
            kept = others
    return set(kept.values())


def _no_leaf(position: int) -> None:
    return None


def _familiar(lifter: Lifter, value: Value) -> bool:
    """Whether a value is made of what the left program computes; what is summed up in part only is not, on one rank."""
    if isinstance(value, Pieces):
        return all(_familiar(lifter, part) for part in value.parts)
    return lifter.algebra.is_familiar(value) and not any(addend.parts for addend in value.addends)


def _fresh(
    keys: _Keys, left: Cone | None, right: Cone | None, seen: set[tuple[object, object]]
) -> Iterator[tuple[_Keys, Cone, Cone]]:
    if left is not None and right is not None:
        key = left.positions, right.positions
        if key not in seen:
            seen.add(key)
            yield keys, left, right
