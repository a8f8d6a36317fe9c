"""The alternative graph: a program, and for uses of its values other ways to compute them, to be chosen.

An alternative says ``value = replacement`` and which uses of the value it concerns. Instructions that only replacements
need stand in a pool beside the program. As every alternative is an equality of its own, any set of them may be chosen
of which no two concern the same use, except where the result would read itself in a circle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from rewright.env.hlo.editing import prune
from rewright.env.inlining import Inlined, Values
from rewright.frontends.hlo.module import Computation, Instruction, Module, called_first, toposort
from rewright.frontends.hlo.order import Cycle
from rewright.ir.errors import RewrightError

ROOT = ""
"""Stands for the user where the use is to be the result of a computation."""


@dataclass(frozen=True)
class Provenance:
    """Who proposes an alternative."""

    source: str
    """``xla``, ``rule``, ``fusion`` or ``pattern``."""
    name: str
    pipeline: str = ""
    iteration: int = 0

    def __str__(self) -> str:
        where = f" in {self.pipeline}" if self.pipeline else ""
        return f"{self.source} {self.name}{where}, iteration {self.iteration}"


@dataclass(frozen=True)
class Use:
    """An operand of an instruction, or the result of a computation (the user is ROOT)."""

    user: str
    index: int = 0


@dataclass(frozen=True)
class Alternative:
    """``value = replacement`` at some uses of the value in a computation."""

    computation: str
    value: str
    replacement: str
    uses: tuple[Use, ...]
    provenance: Provenance
    new: tuple[str, ...] = ()
    """Instructions of the pool that the replacement needs."""


@dataclass(frozen=True)
class AlternativeGraph:
    """A program with alternatives; ``pool`` holds instructions by computation, ``computations`` those they call."""

    program: Module
    alternatives: tuple[Alternative, ...] = ()
    pool: Mapping[str, Mapping[str, Instruction]] = field(default_factory=dict[str, Mapping[str, Instruction]])
    computations: Mapping[str, Computation] = field(default_factory=dict[str, Computation])
    settings: Module | None = None
    """A program whose settings (layouts, aliases) belong to the choice of all alternatives."""

    def __len__(self) -> int:
        return len(self.alternatives)

    @cached_property
    def overlaps(self) -> frozenset[tuple[int, int]]:
        """Pairs of alternatives that concern the same use."""
        by_use: dict[tuple[str, Use], list[int]] = {}
        for number, alternative in enumerate(self.alternatives):
            for use in alternative.uses:
                by_use.setdefault((alternative.computation, use), []).append(number)
        return frozenset((a, b) for group in by_use.values() for a in group for b in group if a != b)

    @cached_property
    def slots(self) -> tuple[tuple[int, ...], ...]:
        """Alternatives that exclude each other, in groups: a choice takes at most one of each."""
        group = list(range(len(self.alternatives)))
        for a, b in sorted(self.overlaps):
            low, high = sorted((group[a], group[b]))
            group = [low if own == high else own for own in group]
        found: dict[int, list[int]] = {}
        for number, own in enumerate(group):
            found.setdefault(own, []).append(number)
        return tuple(tuple(numbers) for numbers in found.values())

    def opcodes_new(self, number: int) -> Counter[str]:
        """Operators of the instructions that an alternative brings in."""
        alternative = self.alternatives[number]
        pool = self.pool.get(alternative.computation, {})
        return Counter(pool[name].opcode for name in alternative.new)

    def opcodes_gone(self, number: int) -> Counter[str]:
        """Operators of the instructions that are dead once an alternative is chosen alone."""
        alternative = self.alternatives[number]
        before = self.program.computations[alternative.computation]
        try:
            after = self._rewire(before, self._replacements([number])[before.name])
        except Cycle:
            return Counter()
        gone = _live(before) - after.instructions.keys()
        return Counter(before.instructions[name].opcode for name in gone)

    def sides(self, number: int) -> tuple[Inlined, int, int]:
        """The value and the replacement of an alternative as terms; raises RewrightError where they are no terms."""
        alternative = self.alternatives[number]
        name = alternative.computation
        roots = (alternative.value, alternative.replacement)
        known = self._terms.get(name)
        if known is None:
            mine = [a for a in self.alternatives if a.computation == name]
            every = dict.fromkeys(n for a in mine for n in (a.value, a.replacement))
            known = self._terms[name] = self._written_out(name, list(every))
        # Where all of them together are no terms, one of them may be.
        inlined, values = known if isinstance(known, tuple) else self._one_written_out(name, roots)
        return inlined, values[roots[0]], values[roots[1]]

    @cached_property
    def _terms(self) -> dict[str, tuple[Inlined, Values] | RewrightError]:
        return {}

    def _written_out(self, name: str, roots: Sequence[str]) -> tuple[Inlined, Values] | RewrightError:
        try:
            return self._one_written_out(name, roots)
        except RewrightError as error:
            return error

    def _one_written_out(self, name: str, roots: Sequence[str]) -> tuple[Inlined, Values]:
        inlined = Inlined({**self.program.computations, **self.computations})
        instructions = self._with_pool(self.program.computations[name])
        return inlined, inlined.values((name,), instructions, roots)

    # --- choosing

    def apply(self, choices: Iterable[int]) -> Module:
        """The program with the chosen alternatives and without dead code.

        Raises RewrightError for a number that does not exist and for two alternatives of one use, Cycle where the
        choice would make an instruction read its own result.
        """
        chosen = sorted(set(choices))
        wanted = self._replacements(chosen)
        everything = {**self.program.computations, **self.computations}
        for name, uses in wanted.items():
            everything[name] = self._rewire(everything[name], uses)
        settings = self.settings if self.settings is not None and len(chosen) == len(self.alternatives) else None
        fields = self.program.fields if settings is None else settings.fields
        result = replace(self.program, computations=everything, fields=fields)
        needed = called_first(everything, result.entry)
        return replace(result, computations={n: everything[n] if n in wanted else prune(everything[n]) for n in needed})

    def _replacements(self, chosen: Sequence[int]) -> dict[str, dict[Use, str]]:
        wanted: dict[str, dict[Use, str]] = {}
        for number in chosen:
            if not 0 <= number < len(self.alternatives):
                raise RewrightError(f"there is no alternative {number}; there are {len(self.alternatives)}")
            alternative = self.alternatives[number]
            uses = wanted.setdefault(alternative.computation, {})
            for use in alternative.uses:
                if uses.setdefault(use, alternative.replacement) != alternative.replacement:
                    raise RewrightError(f"alternative {number} concerns a use that another choice has; choose one")
        return wanted

    def _rewire(self, computation: Computation, uses: Mapping[Use, str]) -> Computation:
        instructions = self._with_pool(computation)
        root = computation.root
        changed: dict[str, list[str]] = {}
        for use, replacement in uses.items():
            if use.user == ROOT:
                root = replacement
            else:
                operands = changed.setdefault(use.user, list(instructions[use.user].operands))
                operands[use.index] = replacement
        for user, operands in changed.items():
            instructions[user] = replace(instructions[user], operands=tuple(operands))
        return prune(replace(computation, instructions=instructions, root=root))

    def _with_pool(self, computation: Computation) -> dict[str, Instruction]:
        """The instructions of a computation and its pool, whose names must differ."""
        pool = self.pool.get(computation.name, {})
        if twice := computation.instructions.keys() & pool.keys():
            raise RewrightError(f"alternatives bring in {min(twice)!r:.60}, which is there already; name it otherwise")
        return {**computation.instructions, **pool}

    def applicable(self, chosen: Collection[int] = ()) -> list[bool]:
        """For each alternative whether it can be chosen on top of others: it overlaps with none and closes no cycle."""
        taken = set(chosen)
        blocked = {b for a, b in self.overlaps if a in taken} | taken
        mask = [number not in blocked for number in range(len(self.alternatives))]
        wanted = self._replacements(sorted(taken))
        current: dict[str, _Reach] = {}
        for number, free in enumerate(mask):
            if not free:
                continue
            alternative = self.alternatives[number]
            name = alternative.computation
            if name not in current:
                computation = self.program.computations[name]
                pool = self.pool.get(name, {})
                current[name] = _Reach(_operands(computation, pool, wanted.get(name, {})))
            users = [use.user for use in alternative.uses if use.user != ROOT]
            mask[number] = not current[name].reaches(alternative.replacement, users)
        return mask

    def conflicts(self) -> list[tuple[int, int, str]]:
        """Pairs that cannot be chosen together, each with the reason."""
        found = [(a, b, "the same use") for a, b in sorted(self.overlaps) if a < b]
        for number in range(len(self.alternatives)):
            for other, free in enumerate(self.applicable([number])):
                apart = (number, other) not in self.overlaps and number < other
                if apart and not free and self.applicable()[other]:
                    found.append((number, other, "a cycle"))
        return found


class _Reach:
    """Which instructions each value needs, as sets of bits: one pass over the operands, and then a question is a word.

    Values that read themselves in a circle are followed one by one.
    """

    def __init__(self, operands: Mapping[str, tuple[str, ...]]) -> None:
        self._operands = operands
        self._bits = {name: 1 << place for place, name in enumerate(operands)}
        self._needs: dict[str, int] = {}
        self._in_circles: set[str] = set()
        entered: set[str] = set()
        stack = list(operands)
        while stack:
            name = stack[-1]
            if name in self._needs or name in entered:
                stack.pop()
                if name not in self._needs:
                    self._leave(name)
                continue
            entered.add(name)
            stack.extend(operand for operand in operands[name] if operand not in entered)

    def _leave(self, name: str) -> None:
        found = self._bits[name]
        for operand in self._operands[name]:
            if operand not in self._needs or operand in self._in_circles:
                self._in_circles.add(name)
            found |= self._needs.get(operand, 0)
        self._needs[name] = found

    def reaches(self, start: str, goals: Sequence[str]) -> bool:
        """Whether computing a value needs one of the goals."""
        if start not in self._in_circles:
            needs = self._needs[start]
            return any(needs & self._bits[goal] for goal in goals)
        wanted, seen, stack = set(goals), set[str](), [start]
        while stack:
            name = stack.pop()
            if name in wanted:
                return True
            if name not in seen:
                seen.add(name)
                stack.extend(self._operands[name])
        return False


def _operands(
    computation: Computation, pool: Mapping[str, Instruction], uses: Mapping[Use, str]
) -> dict[str, tuple[str, ...]]:
    found = {name: i.operands for source in (computation.instructions, pool) for name, i in source.items()}
    for use, replacement in uses.items():
        if use.user != ROOT:
            operands = list(found[use.user])
            operands[use.index] = replacement
            found[use.user] = tuple(operands)
    return found


def _live(computation: Computation) -> set[str]:
    return set(toposort(computation.instructions, [computation.root])) | {i.name for i in computation.parameters()}


def merge(program: Module, graphs: Sequence[AlternativeGraph]) -> tuple[AlternativeGraph, list[tuple[int, int]]]:
    """The alternatives of several graphs of one program in one graph, and where each comes from: graph and number.

    Alternatives that an earlier graph has too are left out.
    """
    pool: dict[str, dict[str, Instruction]] = {}
    computations: dict[str, Computation] = {}
    found: list[Alternative] = []
    origins: list[tuple[int, int]] = []
    known: set[object] = set()
    for tag, graph in enumerate(graphs):
        own = _rename(graph, _free_suffix(program, pool, computations, graph, f".c{tag}")) if tag else graph
        for name, instructions in own.pool.items():
            pool.setdefault(name, {}).update(instructions)
        computations.update(own.computations)
        for number, alternative in enumerate(own.alternatives):
            key = (alternative.computation, alternative.value, alternative.replacement, alternative.uses)
            if key not in known:
                known.add(key)
                found.append(alternative)
                origins.append((tag, number))
    settings = graphs[0].settings if len(graphs) == 1 else None
    return AlternativeGraph(program, tuple(found), pool, computations, settings), origins


def _free_suffix(
    program: Module,
    pool: Mapping[str, Mapping[str, Instruction]],
    computations: Mapping[str, Computation],
    graph: AlternativeGraph,
    suffix: str,
) -> str:
    """A suffix under which all that a graph brings in has names of its own.

    What was chosen in an earlier round has such a suffix already, so that a number of the graph is not enough.
    """

    def is_taken(name: str, computation: str) -> bool:
        return name in program.computations[computation].instructions or name in pool.get(computation, {})

    while any(is_taken(name + suffix, computation) for computation, own in graph.pool.items() for name in own) or any(
        name + suffix in program.computations or name + suffix in computations for name in graph.computations
    ):
        suffix += "c"
    return suffix


def _rename(graph: AlternativeGraph, suffix: str) -> AlternativeGraph:
    """The graph with other names for all that is in its pool."""
    calls = {name: name + suffix for name in graph.computations}

    pool: dict[str, dict[str, Instruction]] = {}
    names: dict[str, dict[str, str]] = {}
    for computation, instructions in graph.pool.items():
        own = names[computation] = {name: name + suffix for name in instructions}
        pool[computation] = {own[name]: i.rename(own, calls) for name, i in instructions.items()}
    computations = {
        calls[name]: replace(c.map_instructions(lambda _, i: i.rename({}, calls)), name=calls[name])
        for name, c in graph.computations.items()
    }
    alternatives = tuple(
        replace(
            a,
            replacement=names.get(a.computation, {}).get(a.replacement, a.replacement),
            new=tuple(names[a.computation][n] for n in a.new),
            uses=tuple(replace(u, user=names.get(a.computation, {}).get(u.user, u.user)) for u in a.uses),
        )
        for a in graph.alternatives
    )
    return AlternativeGraph(graph.program, alternatives, pool, computations, graph.settings)
