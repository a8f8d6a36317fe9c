"""Both ends of a certificate: what the relations say of the inputs, and what they then say of the outputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import cast

from rewright.claims.language import Addend, Input, Tensor, View, rename, terms_of
from rewright.ir.dims import Dim
from rewright.ir.errors import Refused, RewrightError
from rewright.ir.placement import AxisRuns, Mesh, Placement, place
from rewright.ir.types import TensorType
from rewright.proof.certificate import SEQUENTIAL, Block, Output
from rewright.proof.ledger import Ledger, name_of
from rewright.proof.programs import AllAddends, OwnAddend, Reduced, SameBlock, Window

_MOST_CELLS = 65_536


class Relations:
    """The relations of a certificate, checked against the programs."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._mesh = ledger.program.mesh
        self._terms = {
            content.name: term
            for term, definition in reversed(list(enumerate(ledger.certificate.terms)))
            if isinstance(content := definition.content, Input)
        }

        self._blocks: dict[tuple[int, str], list[Block]] = {}
        for block in ledger.certificate.blocks:
            ranks = ledger.program.graphs
            if not 0 <= block.rank < len(ranks) or block.held not in ranks[block.rank].inputs:
                raise Refused(f"a block speaks of {block.held!r} of rank {block.rank}, which does not exist")
            self._blocks.setdefault((block.rank, block.held), []).append(block)
        self._given: dict[tuple[int, str], int] = {}
        self._windows: dict[object, tuple[Tensor, int]] = {}
        """For windows of tensors with the same facts, one that was verified, and its term."""

    def inputs(self) -> None:
        """Verify that every input is what its relation says of it; raises Refused."""
        ledger = self._ledger
        self._only("relation", "input", ledger.certificate.relations, ledger.graphs[0].inputs, ledger.program.inputs)
        given = self._given
        for number, (program, name, value) in enumerate(ledger.certificate.given):
            where = f"given {number}, input {name!r}"
            if not SEQUENTIAL <= program < len(ledger.graphs) - 1 or name not in ledger.graphs[program + 1].inputs:
                raise Refused(f"{where} is of a program that has no such input")
            ledger.value(value, where)
            ledger.enter(program, ledger.graphs[program + 1].inputs[name], value, where)
            given[program, name] = value
        for program, graph in enumerate(ledger.graphs, start=SEQUENTIAL):
            for name, position in graph.inputs.items():
                where = f"input {name!r} of the {name_of(program)}"
                if (program, name) not in given:
                    raise Refused(f"nothing is given for {where}")
                self._input(program, name, graph.nodes[position].type, given[program, name], where)

    def _input(self, program: int, name: str, kind: TensorType, value: int, where: str) -> None:
        ledger, sequential = self._ledger, self._ledger.graphs[0]
        if (program, name) in self._blocks:
            self._from_blocks(program, name, kind, value, where)
            return
        placement = ledger.certificate.relations.get(name)
        if name not in sequential.inputs or (placement is None and program != SEQUENTIAL):
            raise Refused(f"no relation tells what {where} is")
        whole = sequential.nodes[sequential.inputs[name]].type
        partial = placement is not None and placement.partial
        if placement is None or not partial:
            if program == SEQUENTIAL or placement is None:
                if ledger.values[value] != self._free(name, whole, where):
                    raise Refused(f"{where} is given another value than the tensor of that name")
            else:
                runs = self._runs(placement, program, whole, kind, where)
                self._window(Window(whole, runs), name, value, where)
            return
        if placement.reduction != "sum":
            raise Refused(f"{where} is partial under {placement.reduction}, which leaves its addends open")
        group = self._group(max(program, 0), placement, where)
        stacked = TensorType((len(group), *whole.shape), whole.dtype)
        source = ledger.number(self._free(f"{name}, by addend", stacked, where))
        if program == SEQUENTIAL:
            ledger.prove(AllAddends(whole, len(group)), [source], value, self._looked_into(value), where)
            return
        runs = self._runs(placement, program, whole, kind, where)
        own = OwnAddend(whole, runs, len(group), group.index(program))
        ledger.prove(own, [source], value, self._looked_into(value), where)

    def _window(self, subject: Window, name: str, value: int, where: str) -> None:
        """A window of a free tensor; windows of others that are alike follow from the same lemma."""
        ledger, theory, term = self._ledger, self._ledger.theory, self._term(name, where)
        claimed = ledger.values[value]
        known = subject, theory.is_integer(term), theory.facts.get(term)
        example = self._windows.get(known)
        if example is not None and _is_alike(claimed, term, *example):
            return
        ledger.prove(subject, [ledger.number(self._free(name, subject.type, where))], value, (), where)
        if set(terms_of(claimed)) == {term}:
            self._windows[known] = claimed, term

    def _from_blocks(self, rank: int, name: str, kind: TensorType, value: int, where: str) -> None:
        """A tensor that is put together from windows of sequential inputs, each of them stated."""
        ledger, sequential = self._ledger, self._ledger.graphs[0]
        for block in self._blocks[rank, name]:
            source = sequential.inputs.get(block.name)
            if source is None or sorted(block.order) != list(range(kind.rank)) or len(block.box) != kind.rank:
                raise Refused(f"a block of {where} speaks of what does not exist")
            whole = sequential.nodes[source].type
            inside = all(
                start >= 0 and length >= 0 and start + length <= size
                for ranges, shape in ((block.box, kind.shape), (block.window, whole.shape))
                for (start, length), size in zip(ranges, shape, strict=False)
                if isinstance(size, int)
            )
            if not inside or len(block.window) != whole.rank or kind.dtype is not whole.dtype:
                raise Refused(f"a block of {where} does not fit the tensors that it relates")
            subject = SameBlock(whole, block.window, kind, block.box, block.order)
            ledger.prove(subject, [self._given[SEQUENTIAL, block.name], value], None, (), where)
        if not _is_covered([block.box for block in self._blocks[rank, name]], kind):
            raise Refused(f"the blocks of {where} leave a part of it open")

    def outputs(self) -> None:
        """Verify that the ranks hold every output as it is claimed; raises Refused."""
        ledger, sequential = self._ledger, self._ledger.graphs[0]
        stated = {name: claimed.placement for name, claimed in ledger.certificate.outputs.items()}
        self._only("claim", "output", stated, sequential.outputs, ledger.program.outputs)
        for name, position in sequential.outputs.items():
            claimed = ledger.certificate.outputs.get(name)
            if claimed is None:
                raise Refused(f"nothing is claimed about output {name!r}")
            placement = claimed.placement
            whole = sequential.nodes[position].type
            present = [rank for rank, graph in enumerate(ledger.program.graphs) if name in graph.outputs]
            everywhere = len(present) == self._mesh.size and is_spelled(placement, whole, self._mesh)
            if not everywhere and not _covers(placement, whole, present):
                raise Refused(f"what the ranks are claimed to hold of output {name!r} is not all of it")
            value = ledger.claim(SEQUENTIAL, position, f"output {name!r}")
            done: set[tuple[int, ...]] = set()
            for rank in present:
                where, graph = f"output {name!r} of rank {rank}", ledger.program.graphs[rank]
                kind = graph.nodes[graph.outputs[name]].type
                runs = self._runs(placement, rank, whole, kind, where)
                group = self._group(rank, placement, where)
                if not set(group) <= set(present):
                    raise Refused(f"{where} is claimed to be one addend, and not all ranks of {list(group)} have one")
                if any(placement.runs[other] != runs for other in group):
                    raise Refused(f"{where} is claimed to be an addend of another part than those of {list(group)}")
                if group not in done:
                    done.add(group)
                    self._output(name, claimed, (whole, value), runs, group, where)

    def _output(
        self,
        name: str,
        claimed: Output,
        sequential: tuple[TensorType, int],
        runs: tuple[AxisRuns, ...],
        group: tuple[int, ...],
        where: str,
    ) -> None:
        ledger, (whole, value), placement = self._ledger, sequential, claimed.placement
        positions = [(rank, ledger.program.graphs[rank].outputs[name]) for rank in group]
        held = [ledger.claim(rank, position, where) for rank, position in positions]
        if not placement.partial:
            ledger.prove(Window(whole, runs), [value], held[0], claimed.unfold, where)
            return
        kinds = tuple(ledger.program.graphs[rank].nodes[position].type for rank, position in positions)
        subject = Reduced(whole, runs, kinds, placement.reduction)
        ledger.prove(subject, [value, *held], None, claimed.unfold, where)

    def _only(
        self,
        what: str,
        kind: str,
        stated: Mapping[str, Placement],
        tensors: Mapping[str, int],
        known: Mapping[str, Placement],
    ) -> None:
        """Raise Refused for a placement of what does not exist, and for another one than the program has."""
        for name, placement in stated.items():
            if name not in tensors:
                raise Refused(f"there is a {what} about {name!r}, which is no {kind} of the sequential program")
            if name in known and _contents(known[name]) != _contents(placement):
                raise Refused(f"the {what} about {kind} {name!r} is {placement}, and the program has {known[name]}")

    def _group(self, rank: int, placement: Placement, where: str) -> tuple[int, ...]:
        """The ranks that hold addends of one sum."""
        if not {name for name, _ in self._mesh.axes}.issuperset(placement.partial):
            raise Refused(f"{where} is partial over axes that the mesh does not have")
        return self._mesh.group(rank, placement.partial)

    def _looked_into(self, *values: int) -> tuple[int, ...]:
        """The sums and the folds that values are made of: their addends are what a relation compares."""
        return self._ledger.theory.outermost([self._ledger.values[value] for value in values])

    def _runs(
        self, placement: Placement, rank: int, whole: TensorType, kind: TensorType, where: str
    ) -> tuple[AxisRuns, ...]:
        if len(placement.runs) != self._mesh.size or len(placement.runs[rank]) != whole.rank:
            raise Refused(f"the relation of {where} does not fit a tensor of type {whole}")
        if placement.local_shape(rank) != kind.shape or kind.dtype is not whole.dtype:
            raise Refused(f"the relation of {where} does not give it the type {kind}")
        return placement.runs[rank]

    def _term(self, name: str, where: str) -> int:
        """The term that stands for the tensor of a name."""
        if name not in self._terms:
            raise Refused(f"no term stands for {where}")
        return self._terms[name]

    def _free(self, name: str, kind: TensorType, where: str) -> Tensor:
        """The free tensor of a name."""
        axes = tuple((0, ((axis, 1),)) for axis in range(kind.rank))
        return View(tuple((n,) for n in kind.shape), (Addend(Fraction(1), self._term(name, where), axes),))


def _is_alike(claimed: Tensor, term: int, example: Tensor, other: int) -> bool:
    """Whether a claim says of a term what another, which is about one term only, says of that."""
    if not isinstance(claimed, View) or not isinstance(example, View):
        return set(terms_of(claimed)) == {term} and rename(claimed, {term: other}) == example
    plain = all(addend.term == term and not addend.parts for addend in claimed.addends)
    return plain and claimed.dims == example.dims and _reads(claimed) == _reads(example)


def _reads(view: View) -> list[tuple[object, ...]]:
    return [(addend.coefficient, addend.access, addend.parts) for addend in view.addends]


def is_spelled(placement: Placement, whole: TensorType, mesh: Mesh) -> bool:
    """Whether the DTensor notation of a placement says what the ranks hold."""
    try:
        return _contents(place(whole.shape, mesh, placement.printed)) == _contents(placement)
    except RewrightError:
        return False


def _contents(placement: Placement) -> object:
    """All that a placement says but for its name."""
    runs = tuple(tuple(tuple(run for run in axis if run[1] != 0) for axis in rank) for rank in placement.runs)
    return runs, sorted(placement.partial), placement.reduction if placement.partial else ""


def _covers(placement: Placement, whole: TensorType, present: Sequence[int]) -> bool:
    """Whether every element is held by one of these ranks; False also where sizes are symbols."""
    if len(placement.runs) <= max(present, default=-1):
        return False
    boxes = [box for rank in present for box in itertools.product(*placement.runs[rank])]
    return _is_covered(boxes, whole)


def _is_covered(boxes: Sequence[Sequence[tuple[Dim, Dim]]], whole: TensorType) -> bool:
    """Whether every element of a tensor lies in a box, given by start and length along every axis.

    Each cell of the grid that all faces of boxes make must lie in one. False where sizes are symbols.
    """
    numbers = [cast("Sequence[tuple[int, int]]", b) for b in boxes if all(isinstance(n, int) for run in b for n in run)]
    if len(numbers) < len(boxes) or not all(isinstance(size, int) for size in whole.shape):
        return False
    cells: list[list[int]] = []
    for axis, size in enumerate(cast("Sequence[int]", whole.shape)):
        faces = {end for box in numbers for end in (box[axis][0], sum(box[axis]))}
        cells.append(sorted(face for face in faces | {0} if 0 <= face < size))
    return math.prod(map(len, cells)) <= _MOST_CELLS and all(
        any(all(start <= at < start + length for at, (start, length) in zip(cell, box, strict=True)) for box in numbers)
        for cell in itertools.product(*cells)
    )
