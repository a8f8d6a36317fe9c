"""What a pass did, split into alternatives that can be chosen one by one.

Instructions before and after the pass are matched by name inside each computation, parameters by number; the entries
are matched with each other, and other computations where they are alike but for names, or else by name. Where an
instruction that kept its name and its meaning reads another value than before, the pass has said that the two values
are equal; uses of one value that were replaced by one other value are one site. An instruction that kept its name and
changed its meaning counts as a new one, which replaces the old one at all its uses; the same goes for computations
whose signature changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Literal

from rewright.env.alternatives import ROOT, Alternative, AlternativeGraph, Provenance, Use
from rewright.env.values import body_digests
from rewright.frontends.hlo.module import Computation, Instruction, Module, called_first

Granularity = Literal["value", "use"]
Renamed = Collection[tuple[str, str]]
"""Names (computation, instruction) that a pass gave to another value than the one that had it."""
_NEW = ".new"


def split(
    before: Module,
    after: Module,
    provenance: Provenance,
    granularity: Granularity = "value",
    renamed: Renamed = (),
) -> AlternativeGraph:
    """The alternatives that turn one program into another; choosing all of them gives the other one, dead code aside.

    ``granularity`` says whether all uses of a value that were replaced alike are one alternative, or each is one.
    """
    own = _Split(before, after, provenance, granularity, frozenset(renamed))
    return own.run()


class _Split:
    def __init__(
        self,
        before: Module,
        after: Module,
        provenance: Provenance,
        granularity: Granularity,
        renamed: frozenset[tuple[str, str]],
    ) -> None:
        self.before, self.after = before, after
        self.provenance, self.granularity, self.renamed = provenance, granularity, renamed
        self.pool: dict[str, dict[str, Instruction]] = {}
        self.computations: dict[str, Computation] = {}
        self.alternatives: list[Alternative] = []
        self.unchanged: set[str] = set()
        self.calls = self._calls()

    def _calls(self) -> dict[str, str]:
        """Names for the computations of after: those that they are matched with; new ones have names of their own."""
        calls = self._alike()
        self.unchanged.update(calls)
        known = frozenset(calls.values())
        for name, computation in self.after.computations.items():
            if name in calls:
                continue
            own = self.before.entry if name == self.after.entry else name
            old = self.before.computations.get(own)
            if old is None or old.signature != computation.signature or own in known:
                while own in self.before.computations or (own != name and own in self.after.computations):
                    own += _NEW
            calls[name] = own
        return calls

    def _alike(self) -> dict[str, str]:
        """Computations of before that those of after are but for names, each for one; the entry is left out.

        One that is called in several places may be copied for each of them: then the copies are new, and what calls a
        copy is another computation than what calls the one that it was copied from.
        """
        calls: dict[str, str] = {}
        free = [name for name in self.before.computations if name != self.before.entry]
        for start in self.after.computations:
            for name in called_first(self.after.computations, start):
                if name in calls or name == self.after.entry:
                    continue
                alike = next((own for own in self._candidates(name, free) if self._is_alike(own, name, calls)), None)
                if alike is not None:
                    calls[name] = alike
                    free.remove(alike)
        return calls

    def _candidates(self, name: str, free: Collection[str]) -> Iterator[str]:
        """The computations of before that one of after may be: that of its name, then those that lost their own."""
        if name in free:
            yield name
        ours, theirs = self._digests
        yield from [own for own in free if own != name and ours[own] != theirs.get(own)]

    def _is_alike(self, own: str, name: str, calls: Mapping[str, str]) -> bool:
        """Whether a computation of before is one of after but for names, and calls what that one calls."""
        before, after = self.before.computations[own], self.after.computations[name]
        called = sorted(calls.get(c, c) for i in after.instructions.values() for c in i.called)
        if called != sorted(c for i in before.instructions.values() for c in i.called):
            return False
        ours, theirs = self._digests if before != after else ({own: b""}, {name: b""})
        return ours[own] == theirs[name]

    @cached_property
    def _digests(self) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
        """What the computations before and after the pass are, whatever names they and their instructions have."""
        return body_digests(self.before), body_digests(self.after)

    def run(self) -> AlternativeGraph:
        for name, computation in self.after.computations.items():
            if name in self.unchanged:
                continue
            if self.calls[name] in self.before.computations:
                self._compare(self.before.computations[self.calls[name]], computation)
            else:
                self._import(name, computation)
        return AlternativeGraph(self.before, tuple(self.alternatives), self.pool, self.computations, self.after)

    def _import(self, name: str, computation: Computation) -> None:
        instructions = {n: self._call(i) for n, i in computation.instructions.items()}
        self.computations[self.calls[name]] = replace(computation, name=self.calls[name], instructions=instructions)

    def _call(self, instruction: Instruction) -> Instruction:
        if all(self.calls[c] == c for c in instruction.called):
            return instruction
        return replace(instruction, called=tuple(self.calls[c] for c in instruction.called))

    def _compare(self, before: Computation, after: Computation) -> None:
        theirs = {name: self._call(i) for name, i in after.instructions.items()}
        names = self._names(before, theirs)
        pairs: dict[tuple[str, str, Use | None], list[Use]] = {}

        def changed(value: str, replacement: str, use: Use) -> None:
            key = (value, replacement, use if self.granularity == "use" else None)
            pairs.setdefault(key, []).append(use)

        for name, old in before.instructions.items():
            if names.get(name) != name:
                continue
            operands = [names[o] for o in theirs[name].operands]
            for index, (value, replacement) in enumerate(zip(old.operands, operands, strict=True)):
                if value != replacement:
                    changed(value, replacement, Use(name, index))
        if before.root != names[after.root]:
            changed(before.root, names[after.root], Use(ROOT))
        if pairs:
            self._record(before, theirs, names, pairs)

    def _names(self, before: Computation, theirs: Mapping[str, Instruction]) -> dict[str, str]:
        """For each instruction of after: its own name where it has the value of before, else a new one."""
        names: dict[str, str] = {}
        taken = before.instructions.keys() | theirs.keys()
        parameters = {i.parameter: name for name, i in before.instructions.items() if i.opcode == "parameter"}
        for name, new in theirs.items():
            if new.opcode == "parameter" and new.parameter in parameters:
                names[name] = parameters[new.parameter]
                continue
            old = before.instructions.get(name)
            if old is None or (self._same(before, old, new, theirs) and (before.name, name) not in self.renamed):
                names[name] = name
                continue
            fresh = name + _NEW
            while fresh in taken:
                fresh += _NEW
            names[name] = fresh
        return names

    def _same(self, before: Computation, old: Instruction, new: Instruction, theirs: Mapping[str, Instruction]) -> bool:
        """Whether an instruction computes the same thing of operands of the same shapes."""
        if old.meaning != new.meaning or len(old.operands) != len(new.operands):
            return False
        return all(
            before.instructions[a].shape_proto == theirs[b].shape_proto
            for a, b in zip(old.operands, new.operands, strict=True)
        )

    def _record(
        self,
        before: Computation,
        theirs: Mapping[str, Instruction],
        names: Mapping[str, str],
        pairs: Mapping[tuple[str, str, Use | None], list[Use]],
    ) -> None:
        new: dict[str, Instruction] = {}
        for name, instruction in theirs.items():
            if names[name] in before.instructions:
                continue
            new[names[name]] = instruction.rename(names, {})
        self._cut(before, new, pairs)
        used: set[str] = set()
        for (value, replacement, _), uses in pairs.items():
            needs = _needs(replacement, new)
            used.update(needs)
            own = Alternative(before.name, value, replacement, tuple(uses), self.provenance, needs)
            self.alternatives.append(own)
        self.pool[before.name] = {name: new[name] for name in new if name in used}

    def _cut(
        self,
        before: Computation,
        new: dict[str, Instruction],
        pairs: Mapping[tuple[str, str, Use | None], list[Use]],
    ) -> None:
        """Let new instructions read the values that others of them replace: one more use of those, and sites stand
        on their own. Only where the value comes before all that the new instruction is for."""
        places = {name: place for place, name in enumerate(before.instructions)}
        end = len(places)
        limits: dict[str, int] = {}
        for (_, replacement, _), uses in pairs.items():
            first = min(end if use.user == ROOT else places[use.user] for use in uses)
            for name in _needs(replacement, new):
                limits[name] = min(limits.get(name, end), first)
        replaced = {key[1]: key for key in pairs if key[1] in new}
        found: list[tuple[list[Use], Use]] = []
        for name, limit in limits.items():
            operands = list(new[name].operands)
            for index, operand in enumerate(operands):
                key = replaced.get(operand)
                if key is None or places[key[0]] >= limit:
                    continue
                if before.instructions[key[0]].shape_proto == new[operand].shape_proto:
                    operands[index] = key[0]
                    found.append((pairs[key], Use(name, index)))
            new[name] = replace(new[name], operands=tuple(operands))
        for uses, use in found:
            uses.append(use)


def _needs(start: str, new: Mapping[str, Instruction]) -> tuple[str, ...]:
    """The new instructions that a value needs."""
    found: dict[str, None] = {}
    stack = [start]
    while stack:
        name = stack.pop()
        if name in new and name not in found:
            found[name] = None
            stack.extend(new[name].operands)
            stack.extend(new[name].controls)
    return tuple(found)
