"""A certificate in pieces: two programs are cut at values that they share, and what lies between is proved by itself.

Every use of a piece says: where the nodes that hold its inputs are equal in both programs, so are the nodes that hold
its result. Uses follow one another from the inputs, which are equal by name, to the outputs. Layers that repeat are
uses of one piece, so that a proof takes as long as the different layers of a model do.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from rewright import ops
from rewright.equiv.audit import audit as check_equivalence
from rewright.equiv.audit import is_identity
from rewright.equiv.certificate import FORMAT as EQUIVALENCE
from rewright.equiv.certificate import EquivalenceCertificate, equivalence_of, equivalence_table
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.json_form import from_json, to_json
from rewright.ir.placement import Mesh, RankProgram
from rewright.ops.files import prefix_errors, read_text, write_text
from rewright.proof.calls import check_calls
from rewright.proof.certificate import Certificate
from rewright.proof.checker import SECONDS, Damaged, OtherPrograms, Refused, Store
from rewright.proof.checker import audit as check_core
from rewright.proof.conditions import REALS
from rewright.proof.files import check_name, decode, is_printed, seal_text, table
from rewright.proof.reading import read_certificate
from rewright.proof.rewriting.evidence import proves
from rewright.proof.rewriting.stages import matches
from rewright.proof.wrapping import wrapping
from rewright.terms.claim import Claim

FORMAT = "rewright.pieces"
VERSION = 1


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
        check_name(path)
        write_text(path, seal_text(_table(self)))


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
    program = RankProgram((piece.right,), Mesh.of({"rank": 1}), {}, {})
    try:
        if isinstance(piece.proof, EquivalenceCertificate):
            if piece.proof.definitions or any(piece.proof.tables) or piece.proof.ranges:
                return "its certificate is about inputs that are renamed, or have certain values"
            check_equivalence(piece.proof, piece.left, program, None, store, seconds)
        else:
            check_core(piece.proof, piece.left, program, store, seconds)
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


def load(path: str | Path) -> Certificate | PiecewiseCertificate:
    """Read a certificate of any kind that is about programs of this library; raises RewrightError with the place."""
    check_name(path)
    text = read_text(path)
    entries: Any = prefix_errors(path, lambda: decode(text))
    if not isinstance(entries, dict) or cast("dict[str, Any]", entries).get("format") != FORMAT:
        return EquivalenceCertificate.load(path)
    found = prefix_errors(path, lambda: _read(cast("dict[str, Any]", entries)))
    return replace(found, intact=is_printed(text, _table(found)))


def _table(certificate: PiecewiseCertificate) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "left": certificate.left,
        "right": certificate.right,
        "pieces": [[to_json(p.left), to_json(p.right), _proof_table(p.proof)] for p in certificate.pieces],
        "uses": [[u.piece, u.left, u.right, [list(leaf) for leaf in u.leaves]] for u in certificate.uses],
        **({"calls": list(certificate.calls)} if certificate.calls else {}),
    }


def _proof_table(proof: Certificate | None) -> Any:
    if proof is None:
        return None
    entries = equivalence_table(proof) if isinstance(proof, EquivalenceCertificate) else table(proof)
    return json.loads(seal_text(entries))


def _read(entries: Mapping[str, Any]) -> PiecewiseCertificate:
    if entries.get("version") != VERSION:
        raise RewrightError(f"version {entries.get('version')!r:.20} of certificates is not known; this is {VERSION}")
    wanted = {"format", "version", "left", "right", "pieces", "uses", "digest"}
    if set(entries) - {"calls"} != wanted:
        key = sorted((set(entries) - {"calls"}) ^ wanted)[0]
        raise RewrightError(f"the entry {key!r:.40} is missing or is none; write the certificate again")
    try:
        pieces = tuple(_piece(*item) for item in entries["pieces"])
        uses = tuple(_use(*item) for item in entries["uses"])
        calls = tuple(_line(item) for item in entries.get("calls", ()))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise RewrightError(f"a piece or its use is malformed: {str(error) or type(error).__name__:.80}") from None
    return PiecewiseCertificate(str(entries["left"]), str(entries["right"]), pieces, uses, calls=calls)


def _line(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r:.40} is no condition of calls")
    return value


def _piece(left: Any, right: Any, proof: Any) -> Piece:
    sides = [from_json(side, ops.REGISTRY) for side in (left, right)]
    if proof is None:
        return Piece(sides[0], sides[1])
    known = cast("dict[str, Any]", proof)
    found = equivalence_of(known) if known.get("format") == EQUIVALENCE else read_certificate(known, intact=True)
    return Piece(sides[0], sides[1], found)


def _use(piece: Any, left: Any, right: Any, leaves: Any) -> Use:
    found = tuple((str(name), _whole(mine), _whole(other)) for name, mine, other in leaves)
    return Use(_whole(piece), _whole(left), _whole(right), found)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r:.40} is no position")
    return value


__all__ = ["Joined", "Piece", "PiecewiseCertificate", "Use", "audit", "follows", "load", "premises", "why_not"]
