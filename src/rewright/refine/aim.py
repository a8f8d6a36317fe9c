"""What is tried to prove a question: the usual way first, then what takes longer, where values let it.

``Values`` runs both programs on first use; what they show to be wrong is not tried for long.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.constants import differ, written_out
from rewright.refine.case import Case, Ran
from rewright.refine.check import attempt
from rewright.refine.proof import Proof
from rewright.refine.running import compare

Programs = tuple[Graph, RankProgram]
Runs = Literal["always", "failed", "never"]
"""Which programs are run on values: all of them, those without a proof, or none."""


class Values:
    """Values of both programs in a case; the programs are run on first use, if they may be run."""

    def __init__(self, case: Case, runs: Runs) -> None:
        self._case, self.are_known = case, runs != "never"
        self._ran: Ran | None = None
        self.seconds = 0.0

    def ran(self) -> Ran:
        """What running the programs showed."""
        if self._ran is None:
            started = time.perf_counter()
            self._ran = compare(self._case)
            self.seconds = time.perf_counter() - started
        return self._ran

    def wrong(self, failed: Collection[str]) -> Collection[str]:
        """Those of some outputs that they show to be wrong."""
        return self.ran().known_wrong(failed) if self.are_known else ()


@dataclass(frozen=True)
class Aim:
    """A goal: what to prove, the deadline, and what the values of a run say about it."""

    case: Case
    deadline: float | None
    values: Values

    def first(self) -> Proof | None:
        """A proof of programs that sort, without what takes long; None of others, and where there is no answer yet."""
        graphs = self.case.sequential, *self.case.program.graphs
        if not any(isinstance(node.op, ops.Sort) for graph in graphs for node in graph.nodes):
            return None
        proof = self._tried(self.case.sequential, self.case.program, laws=False, repeat=False)
        return None if proof.out_of_time or proof.mismatch else proof

    def reached(self, *, rounds: bool) -> tuple[Proof, bool]:
        """The proof, and whether it is one of the programs with rounded constants written out.

        This is tried where the programs have other constants, before slow attempts, and never where values may differ:
        what is zero for the exact constants may be multiplied until it is not.
        """
        sequential, program = self.case.sequential, self.case.program
        if not rounds or not differ(sequential, program.graphs):
            return self._tried(sequential, program), False
        proof = self._tried(sequential, program, laws=False, repeat=False)
        if is_proof(proof) or proof.out_of_time or proof.mismatch:
            return proof, False
        if self.values.are_known and self.values.ran().result.agrees is not False:
            proof = self._tried(*with_written_constants(sequential, program), repeat=False)
            if is_proof(proof):
                return proof, True
        return self._tried(sequential, program), False

    def _tried(self, sequential: Graph, program: RankProgram, *, laws: bool = True, repeat: bool = True) -> Proof:
        given = self.case.relations, self.case.expected, self.deadline
        return attempt(sequential, program, *given, laws=laws, repeat=repeat, wrong=self.values.wrong)


def is_proof(proof: Proof) -> bool:
    """Whether all outputs are related."""
    return not (proof.failed or proof.mismatch or proof.out_of_time)


def with_written_constants(sequential: Graph, program: RankProgram) -> Programs:
    """The programs with rounded constants replaced by the numbers that they were rounded from."""
    first, graphs = written_out(sequential, program.graphs)
    return first, replace(program, graphs=graphs)
