"""The programs that a certificate is about, made of those that were captured, and what is assumed on the way.

Memory that nothing was written to is each program's own, and tensors that were not captured are matched. Then what a
stage decides of numbers in range is replayed, rounded constants are written out, and short integers count from the
other end, where the certificate is about programs in which they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rewright.ir.digest import digest
from rewright.ir.errors import Refused
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.certificate import Certificate
from rewright.proof.constants import stands, written_out
from rewright.proof.drawn import judge_draws
from rewright.proof.padding import padding_of, told_of, with_padding
from rewright.proof.rewriting.evidence import Checked
from rewright.proof.rewriting.replay import narrow_programs
from rewright.proof.unknowns import Question, questions, unknown_assumptions
from rewright.proof.unwritten import with_own_memory
from rewright.proof.wrapping import insert_wrapping


@dataclass(frozen=True)
class Compared:
    """Both programs, and what was assumed to make them, in words."""

    sequential: Graph
    program: RankProgram
    taken: tuple[str, ...]


def compared_programs(
    certificate: Certificate, sequential: Graph, program: RankProgram, checked: Checked, *, counts: bool
) -> Compared:
    """The programs that a certificate is about, as far as it says how they come about.

    That they are the ones whose digests it has is not checked here. Raises Refused for a step that does not follow.
    """
    if any(rewriting.before or rewriting.after for rewriting in certificate.rewritings):
        raise Refused("the certificate has rewritings that only one of two implementations has")
    padding = padding_of(certificate.blocks, sequential)
    *others, last = questions(*with_own_memory(*with_padding(sequential, program, padding)))
    for found in _candidates(certificate, others, checked, counts=counts):
        if _is_about(certificate, found):
            return replace(found, taken=(*found.taken, *told_of(padding)))
    found = _compare_programs(certificate, last, checked, counts=counts)
    return replace(found, taken=(*found.taken, *told_of(padding)))


def is_about(
    certificate: Certificate, sequential: Graph, program: RankProgram, checked: Checked, *, counts: bool
) -> bool:
    """Whether a certificate is about what it makes of programs; raises Refused for a step that does not follow."""
    return _is_about(certificate, compared_programs(certificate, sequential, program, checked, counts=counts))


def _candidates(
    certificate: Certificate, asked: list[Question], checked: Checked, *, counts: bool
) -> Iterator[Compared]:
    for question in asked:
        try:
            yield _compare_programs(certificate, question, checked, counts=counts)
        except Refused:  # it may be about tensors that are matched in another way
            continue


def _compare_programs(certificate: Certificate, question: Question, checked: Checked, *, counts: bool) -> Compared:
    sequential, program = question.sequential, question.program
    held = {name for name, placement in certificate.relations.items() if not placement.partial}
    held -= {block.held for block in certificate.blocks}  # which are made of other inputs
    found = narrow_programs((sequential, *program.graphs), certificate.rewritings, held, checked, counts=not counts)
    first, graphs = found.graphs[0], found.graphs[1:]
    if stands(found.graphs) in certificate.assumptions:
        first, graphs = written_out(first, graphs)
    if counts:
        first, graphs = insert_wrapping(first), tuple(insert_wrapping(graph) for graph in graphs)
    judged = judge_draws(sequential, program, certificate.relations)
    if judged.faults:
        raise Refused(str(judged.faults[0]))
    known = (*unknown_assumptions(sequential, certificate.relations), *judged.conditions)
    taken = (*question.assumptions, *found.taken, *known)
    return Compared(first, replace(program, graphs=tuple(graphs)), taken)


def _is_about(certificate: Certificate, found: Compared) -> bool:
    wanted = certificate.sequential, certificate.ranks
    return wanted == (digest(found.sequential), tuple(digest(graph) for graph in found.program.graphs))


__all__ = ["Compared", "compared_programs", "is_about"]
