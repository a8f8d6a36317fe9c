"""Both ends of a certificate: what the relations say of the inputs, and what they then say of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from rewright.ir.placement import AxisRuns, Placement
from rewright.ir.types import TensorType
from rewright.proof.certificate import SEQUENTIAL, Block, Output
from rewright.proof.language import Addend, Tensor, View
from rewright.proof.ledger import Ledger, Refused, name_of
from rewright.proof.programs import AllAddends, OwnAddend, Reduced, SameBlock, Window


class Relations:
    """The relations of a certificate, checked against the programs."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._mesh = ledger.program.mesh
        self._terms = {
            str(definition.data[0]): term
            for term, definition in reversed(list(enumerate(ledger.certificate.terms)))
            if definition.kind == "input" and definition.data
        }

        self._blocks: dict[tuple[int, str], list[Block]] = {}
        for block in ledger.certificate.blocks:
            self._blocks.setdefault((block.rank, block.held), []).append(block)
        self._given: dict[tuple[int, str], int] = {}

    def inputs(self) -> None:
        """Verify that every input is what its relation says of it; raises Refused."""
        ledger = self._ledger
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
            source = self._free(name, whole, where)
            if program == SEQUENTIAL or placement is None:
                if ledger.values[value] != source:
                    raise Refused(f"{where} is given another value than the tensor of that name")
            else:
                runs = self._runs(placement, program, whole, kind, where)
                ledger.prove(Window(whole, runs), [ledger.number(source)], value, (), where)
            return
        if placement.reduction != "sum":
            raise Refused(f"{where} is partial under {placement.reduction}, which leaves its addends open")
        group = self._mesh.group(max(program, 0), placement.partial)
        stacked = TensorType((len(group), *whole.shape), whole.dtype)
        source = ledger.number(self._free(f"{name}, by addend", stacked, where))
        if program == SEQUENTIAL:
            ledger.prove(AllAddends(whole, len(group)), [source], value, self._looked_into(value), where)
            return
        runs = self._runs(placement, program, whole, kind, where)
        own = OwnAddend(whole, runs, len(group), group.index(program))
        ledger.prove(own, [source], value, self._looked_into(value), where)

    def _from_blocks(self, rank: int, name: str, kind: TensorType, value: int, where: str) -> None:
        """A tensor that is put together from windows of sequential inputs, each of which is stated."""
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
        if not _covered([block.box for block in self._blocks[rank, name]], kind):
            raise Refused(f"the blocks of {where} leave a part of it open")

    def outputs(self) -> None:
        """Verify that the ranks hold every output as it is claimed; raises Refused."""
        ledger, sequential = self._ledger, self._ledger.graphs[0]
        for name, position in sequential.outputs.items():
            claimed = ledger.certificate.outputs.get(name)
            if claimed is None:
                raise Refused(f"nothing is claimed about output {name!r}")
            placement = claimed.placement
            whole = sequential.nodes[position].type
            value = ledger.claim(SEQUENTIAL, position, f"output {name!r}")
            done: set[tuple[int, ...]] = set()
            for rank, graph in enumerate(ledger.program.graphs):
                where = f"output {name!r} of rank {rank}"
                if name not in graph.outputs:
                    raise Refused(f"{where} does not exist")
                kind = graph.nodes[graph.outputs[name]].type
                runs = self._runs(placement, rank, whole, kind, where)
                group = self._mesh.group(rank, placement.partial)
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

    def _free(self, name: str, kind: TensorType, where: str) -> Tensor:
        """The free tensor of a name."""
        if name not in self._terms:
            raise Refused(f"no term stands for {where}")
        axes = tuple((0, ((axis, 1),)) for axis in range(kind.rank))
        return View(tuple((n,) for n in kind.shape), (Addend(Fraction(1), self._terms[name], axes),))


def _covered(boxes: Sequence[tuple[tuple[int, int], ...]], kind: TensorType) -> bool:
    """Whether every element of a tensor lies in a box: each cell of the grid that all their faces make does."""
    cuts: list[list[int]] = []
    for axis, size in enumerate(kind.shape):
        if not isinstance(size, int):
            return False
        faces = {end for box in boxes for end in (box[axis][0], sum(box[axis])) if 0 <= end <= size}
        cuts.append(sorted(faces | {0, size})[:-1] if size else [])
    return all(
        any(all(start <= at < start + length for at, (start, length) in zip(cell, box, strict=True)) for box in boxes)
        for cell in product(*cuts)
    )
