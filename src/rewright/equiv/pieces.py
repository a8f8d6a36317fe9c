"""A certificate in pieces: two programs are cut at values that they share, and what lies between is proved by itself.

Every use of a piece says: where the nodes that hold its inputs are equal in both programs, so are the nodes that hold
its result. Uses follow one another from the inputs, which are equal by name, to the outputs. Layers that repeat are
uses of one piece, so that a proof takes as long as the different layers of a model do.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewright import ops
from rewright.equiv.audit import audit as check_equivalence
from rewright.equiv.audit import is_identity
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.files import EQUIVALENCE
from rewright.ir.digest import digest
from rewright.ir.errors import Damaged, OtherPrograms, Refused, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.json_form import from_json, to_json
from rewright.proof.calls import check_calls
from rewright.proof.certificate import Certificate
from rewright.proof.checker import SECONDS
from rewright.proof.checker import audit as check_core
from rewright.proof.conditions import REALS
from rewright.proof.container import Form, Header
from rewright.proof.entries import Entries, as_count, as_list, as_text
from rewright.proof.files import REFINEMENT
from rewright.proof.kinds import Kind, Programs, Proved, Said, alone, require
from rewright.proof.ledger import Store
from rewright.proof.rewriting.evidence import proves
from rewright.proof.rewriting.stages import matches
from rewright.proof.wrapping import wrapping
from rewright.terms.claim import Claim

_HEADER = Header("rewright.pieces", 1, ("left", "right", "pieces", "uses", "digest"), ("calls",))


@dataclass(frozen=True)
class Piece:
    """Two small programs over the same inputs with one output each, and the proof that they compute the same.

    Without a certificate they are one program, or normal forms say that they are equal.
    """

    left: Graph
    right: Graph
    proof: Certificate | None = None

    @property
    def is_same(self) -> bool:
        """Whether both sides are one program."""
        return digest(self.left) == digest(self.right)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What its proof takes for granted."""
        if self.proof is None:
            return () if self.is_same else (REALS,)
        taken = self.proof.taken if isinstance(self.proof, EquivalenceCertificate) else ()
        return (*taken, *self.proof.assumptions)


@dataclass(frozen=True)
class Use:
    """The node ``left`` of one program and ``right`` of the other one are equal, as a piece over ``leaves`` says.

    A leaf is the name of an input of the piece, and the nodes of both programs that hold it.
    """

    piece: int
    left: int
    right: int
    leaves: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class PiecewiseCertificate:
    """A proof that two programs over the same inputs compute the same outputs."""

    left: str
    """The digest of the left program."""
    right: str
    """The digest of the right program."""
    pieces: tuple[Piece, ...] = field(repr=False)
    uses: tuple[Use, ...] = field(repr=False)
    intact: bool = field(default=True, repr=False, compare=False)
    calls: tuple[str, ...] = ()
    """What calls of a function the programs are for, a condition each; empty where they are for all."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the proofs of its pieces take for granted, about their own inputs, which :func:`premises` replaces."""
        return tuple(dict.fromkeys(text for piece in self.pieces for text in piece.assumptions))

    def save(self, path: str | Path) -> None:
        """Write the certificate, as a whole or not at all; a path that ends in ``.gz`` is compressed.

        Raises RewrightError for an extension other than ``.json`` and ``.json.gz`` and where it cannot be written.
        """
        PIECES.save(self, path)


@dataclass(frozen=True)
class Joined:
    """What was checked of a certificate in pieces, and how long that took."""

    pieces: int
    uses: int
    seconds: float
    assumptions: tuple[str, ...]
    """What the proofs take for granted, about values of the left program."""


def premises(certificate: PiecewiseCertificate, left: Graph) -> tuple[str, ...]:
    """What a certificate takes for granted, with values of the left program in place of the inputs of its pieces."""
    found: dict[str, None] = {}
    for use in certificate.uses:
        values = {name: _value(left, position) for name, position, _ in use.leaves}
        for text in certificate.pieces[use.piece].assumptions:
            found[_WORD.sub(lambda word, values=values: values.get(word[0], word[0]), text)] = None
    return tuple(found)


_WORD = re.compile(r"\w+")


def _value(graph: Graph, position: int) -> str:
    """A value in words: the name of an input, and what else is computed, and where."""
    node = graph.nodes[position]
    return node.op.label if isinstance(node.op, ops.Input) else f"%{position} ({node.op.name} at {node.span})"


def audit(
    certificate: PiecewiseCertificate, left: Graph, right: Graph, store: Store | None = None, seconds: float = SECONDS
) -> Joined:
    """Verify a certificate for these programs; ``seconds`` is the time that one lemma may take.

    Raises Refused, naming the use, for anything that does not follow.
    """
    started = time.perf_counter()
    for side, graph, stated in (("left", left, certificate.left), ("right", right, certificate.right)):
        if digest(graph) != stated:
            raise OtherPrograms(f"the certificate is not about the {side} program that was given")
    check_calls(certificate.calls, (left, right))
    for number, piece in enumerate(certificate.pieces):
        why = why_not(piece, store, seconds)
        if why is not None:
            raise Refused(f"piece {number} is not proved: {why}")
    follows(certificate, left, right)
    if not certificate.intact:
        raise Damaged("the certificate was changed after it was written: it is not the text of its contents")
    taken = premises(certificate, left)
    return Joined(len(certificate.pieces), len(certificate.uses), time.perf_counter() - started, taken)


def follows(certificate: PiecewiseCertificate, left: Graph, right: Graph) -> None:
    """Verify that the outputs are equal where all pieces are proved; raises Refused, naming the use."""
    known = {
        (position, right.inputs[name])
        for name, position in left.inputs.items()
        if name in right.inputs and left.nodes[position].type == right.nodes[right.inputs[name]].type
    }
    for number, use in enumerate(certificate.uses):
        why = _unfounded(certificate, left, right, known, use)
        if why is not None:
            raise Refused(f"use {number} of a piece does not follow: {why}")
        known.add((use.left, use.right))
    if left.outputs.keys() != right.outputs.keys():
        raise Refused("the programs have other outputs")
    for name, position in left.outputs.items():
        if (position, right.outputs[name]) not in known:
            raise Refused(f"no use of a piece is about the output {name!r}")


def why_not(piece: Piece, store: Store | None, seconds: float) -> str | None:
    """Why a piece is not proved; None where it is."""
    sides = piece.left, piece.right
    if any(len(side.outputs) != 1 for side in sides) or piece.left.inputs.keys() != piece.right.inputs.keys():
        return "its sides are not over the same inputs, or not about one tensor"
    kinds = [[side.nodes[p].type for p in (*sorted_inputs(side), *side.outputs.values())] for side in sides]
    if kinds[0] != kinds[1]:
        return "its sides have other types"
    wraps = "" if piece.proof is not None or piece.is_same else wrapping(sides)
    if wraps:
        return wraps
    if piece.proof is None:
        return None if piece.is_same else proves(Claim(*sides), seconds)
    try:
        if isinstance(piece.proof, EquivalenceCertificate):
            if piece.proof.definitions or any(piece.proof.tables) or piece.proof.ranges:
                return "its certificate is about inputs that are renamed, or have certain values"
            check_equivalence(piece.proof, piece.left, alone(piece.right), None, store, seconds)
        else:
            check_core(piece.proof, piece.left, alone(piece.right), store, seconds)
            is_identity(piece.proof, piece.left)
    except RewrightError as error:
        return str(error)
    return None


def sorted_inputs(graph: Graph) -> list[int]:
    """The inputs of a program in the order of their names."""
    return [graph.inputs[name] for name in sorted(graph.inputs)]


def _unfounded(
    certificate: PiecewiseCertificate, left: Graph, right: Graph, known: set[tuple[int, int]], use: Use
) -> str | None:
    """Why the equation that a use states does not follow from those before it; None where it does."""
    if not 0 <= use.piece < len(certificate.pieces):
        return f"there is no piece {use.piece}"
    piece = certificate.pieces[use.piece]
    leaves = {name: (mine, other) for name, mine, other in use.leaves}
    if leaves.keys() != piece.left.inputs.keys() or len(leaves) != len(use.leaves):
        return "its leaves are not the inputs of the piece"
    for name, pair in leaves.items():
        if pair not in known:
            return f"what stands for {name} is not known to be equal"
        if left.nodes[pair[0]].type != piece.left.nodes[piece.left.inputs[name]].type:
            return f"what stands for {name} is of another type"
    for side, graph, part, root in ((0, left, piece.left, use.left), (1, right, piece.right, use.right)):
        held = {name: (pair[side],) for name, pair in leaves.items()}
        if not 0 <= root < len(graph.nodes) or not matches(graph, root, part, held):
            return f"the {('left', 'right')[side]} program has something else at %{root}"
    if left.nodes[use.left].type != right.nodes[use.right].type:
        return "its results are of other types"
    return None


def _table(certificate: PiecewiseCertificate) -> dict[str, Any]:
    return {
        "left": certificate.left,
        "right": certificate.right,
        "pieces": [
            [to_json(p.left), to_json(p.right), None if p.proof is None else p.proof.form().sealed(p.proof)]
            for p in certificate.pieces
        ],
        "uses": [[u.piece, u.left, u.right, [list(leaf) for leaf in u.leaves]] for u in certificate.uses],
        **({"calls": list(certificate.calls)} if certificate.calls else {}),
    }


def _build(entries: Entries) -> PiecewiseCertificate:
    return PiecewiseCertificate(
        entries.one("left", as_text),
        entries.one("right", as_text),
        entries.each("pieces", _piece),
        entries.each("uses", _use),
        calls=entries.each("calls", _line),
    )


PIECES = Form(_HEADER, _table, _build)
"""How proofs in pieces are written."""


def _line(value: Any) -> str:
    if not as_text(value):
        raise ValueError("a condition of calls is empty")
    return value


def _piece(item: Any) -> Piece:
    left, right, proof = as_list(item, 3)
    forms = {form.header.format: form for form in (REFINEMENT, EQUIVALENCE)}
    found = None if proof is None else forms[proof["format"]].of_value(proof)
    return Piece(from_json(left, ops.REGISTRY), from_json(right, ops.REGISTRY), found)


def _use(item: Any) -> Use:
    piece, left, right, leaves = as_list(item, 4)
    triples = [as_list(leaf, 3) for leaf in as_list(leaves)]
    found = tuple((as_text(name), as_count(mine), as_count(other)) for name, mine, other in triples)
    return Use(as_count(piece), as_count(left), as_count(right), found)


def _check(certificate: PiecewiseCertificate, programs: Programs | None, store: Store | None) -> Proved:
    given = require(programs)
    if len(given.right.graphs) != 1:
        count = len(given.right.graphs)
        raise OtherPrograms(f"the certificate is about one right program, and {count} were given; give one")
    found = audit(certificate, given.left, given.right.graphs[0], store)
    return Proved(
        "both programs compute the same outputs",
        (Said("assumptions", "assuming that", found.assumptions),),
        f"{found.pieces:,} pieces, {found.uses:,} uses of them",
        {"pieces": found.pieces, "uses": found.uses},
        calls=certificate.calls,
    )


KIND = Kind(PIECES.read, _check)
