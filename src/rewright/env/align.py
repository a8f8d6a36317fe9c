"""Names for a program that another tool made of a program of ours, so that what is the same has the same name.

A pass of XLA keeps the names of what it leaves alone; a tool that goes through another form, as StableHLO, numbers
everything anew. Names decide which sites are found and not whether a site is right: each is proved or tested itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rewright.frontends.hlo.module import Computation, Instruction, Module, called_first

_NEW = ".new"


def align_names(before: Module, after: Module) -> Module:
    """The program ``after`` with the names of ``before`` wherever the two compute the same thing in the same way.

    From the parameters on, instructions with one operator and the same operands are the same; from the results back,
    so are those that only read something else. Computations that are called are the same as a whole, or new.
    """
    numbers = _Numbers()
    old, new = numbers.program(before), numbers.program(after)
    calls = _match(old.whole, new.whole, before, after)
    computations: dict[str, Computation] = {}
    for name in new.whole:
        own = after.computations[name]
        if calls[name] in before.computations and name != after.entry:
            needed = called_first(before.computations, calls[name])
            computations.update({called: before.computations[called] for called in needed})
            continue
        own = replace(own.map_instructions(lambda _, i: i.rename({}, calls)), name=calls[name])
        if name == after.entry:
            names = _entry_names(before.main, own, old.values[before.entry], new.values[name])
            named = {names[n]: i.rename(names, {}) for n, i in own.instructions.items()}
            own = replace(own, instructions=named, root=names[own.root])
        computations[own.name] = own
    return replace(after, computations=computations, entry=calls[after.entry])


@dataclass
class _Numbered:
    """Numbers of instructions by computation, and of computations as wholes: one number, one structure."""

    values: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    whole: dict[str, int] = field(default_factory=dict[str, int])


class _Numbers:
    def __init__(self) -> None:
        self._known: dict[object, int] = {}

    def _number(self, key: object) -> int:
        return self._known.setdefault(key, len(self._known))

    def program(self, program: Module) -> _Numbered:
        found = _Numbered()
        for name in called_first(program.computations, program.entry):
            computation = program.computations[name]
            own = found.values[name] = self._instructions(computation, found.whole)
            effects = tuple(own[i.name] for i in computation.instructions.values() if i.has_effect)
            parameters = tuple((own[p.name], p.shape_proto) for p in computation.parameters())
            found.whole[name] = self._number(("computation", own[computation.root], parameters, effects))
        return found

    def _instructions(self, computation: Computation, whole: Mapping[str, int]) -> dict[str, int]:
        own: dict[str, int] = {}
        for name, i in computation.instructions.items():
            if i.opcode == "parameter":
                own[name] = self._number(("parameter", i.parameter, i.shape_proto))
                continue
            called = tuple(whole[c] for c in i.called)
            own[name] = self._number((i.opcode, i.own_fields, called, tuple(own[o] for o in i.operands)))
        return own


def _match(old: Mapping[str, int], new: Mapping[str, int], before: Module, after: Module) -> dict[str, str]:
    """For each computation of after its name: that of one of before with its structure, the entry's, or a new one."""
    free: dict[int, list[str]] = {}
    for name, number in old.items():
        if name != before.entry:
            free.setdefault(number, []).append(name)
    found = {after.entry: before.entry}
    taken = set(before.computations)
    for name, number in new.items():
        if name == after.entry:
            continue
        if free.get(number):
            found[name] = free[number][0]  # one computation may be called for several that are alike
            continue
        found[name] = _fresh(name, taken)
        taken.add(found[name])
    return found


def _entry_names(
    before: Computation, after: Computation, old: Mapping[str, int], new: Mapping[str, int]
) -> dict[str, str]:
    free: dict[int, list[str]] = {}
    for name in before.instructions:
        free.setdefault(old[name], []).append(name)
    names: dict[str, str] = {}
    for name in after.instructions:
        if free.get(new[name]):
            names[name] = free[new[name]].pop(0)
    taken = set(names.values())
    stack = [(before.root, after.root)]
    while stack:
        theirs, ours = stack.pop()
        left, right = before.instructions[theirs], after.instructions[ours]
        if ours in names or theirs in taken or not _alike(left, right, before, after):
            continue
        names[ours] = theirs
        taken.add(theirs)
        stack.extend(zip(left.operands, right.operands, strict=True))
    taken |= set(before.instructions)
    for name in after.instructions:
        if name not in names:
            names[name] = _fresh(name, taken)
            taken.add(names[name])
    return names


def _alike(left: Instruction, right: Instruction, before: Computation, after: Computation) -> bool:
    """Whether two instructions compute the same of operands of the same shapes."""
    if left.meaning != right.meaning or len(left.operands) != len(right.operands):
        return False
    return all(
        before.instructions[a].shape_proto == after.instructions[b].shape_proto
        for a, b in zip(left.operands, right.operands, strict=True)
    )


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += _NEW
    return name
