"""Certificates of kernels: for which outputs which programs are compared, and how these are proved equal.

Some outputs have one normal form as they are; others are proved by ``rewright.equiv`` with the kernel's look-ups as
outputs too, or with short folds written out. An audit makes the same programs again and proves each part again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from rewright.equiv.audit import audit as check_equivalence
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.files import EQUIVALENCE
from rewright.ir.digest import digest
from rewright.ir.errors import Damaged, OtherPrograms, Refused, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.json_form import from_json, to_json
from rewright.ir.rebuilding import remove_dead_nodes
from rewright.ir.text import print_graph
from rewright.ir.types import DType
from rewright.kernel.bounds import with_look_ups
from rewright.kernel.constants import with_infinities
from rewright.kernel.forms import Way, claim_of, premises_of
from rewright.kernel.short_folds import written_out
from rewright.ops import REGISTRY, CustomCall
from rewright.proof.calls import check_calls
from rewright.proof.container import Form, Header
from rewright.proof.entries import Entries, as_list, as_text, as_truth
from rewright.proof.kinds import Kind, Programs, Proved, Said, alone, require
from rewright.proof.ledger import Store
from rewright.terms.normal.prove import prove

SECONDS = 120.0
"""For one normal form."""
_HEADER = Header("rewright.kernel", 1, ("reference", "kernel", "parts", "assumptions", "digest"), ("condition",))
Variant = Literal["as they are", "with look-ups", "written out", "with infinities"]
"""The programs that are compared: with look-ups as outputs, with short folds of the reference written out, or with
minus infinity where masks fill in large negative numbers."""
_FILLED = "the numbers below -1e6 that masks fill in stand for minus infinity"


@dataclass(frozen=True)
class Part:
    """Some outputs, and why they are equal."""

    outputs: tuple[str, ...]
    variant: Variant
    proof: EquivalenceCertificate | Way
    """A proof about the programs that are compared, or which claim on normal forms it is."""


@dataclass(frozen=True)
class KernelCertificate:
    """A proof that a program which was read of kernels computes what a reference does."""

    reference: str
    """The digest of the reference."""
    kernel: str
    """The digest of what was read."""
    parts: tuple[Part, ...] = field(repr=False)
    assumptions: tuple[str, ...]
    condition: Graph | None = field(default=None, repr=False)
    """What the inputs meet: booleans that are true."""
    intact: bool = field(default=True, repr=False, compare=False)
    captured: str = field(default="", repr=False, compare=False)
    """What was checked of the captures when the proof was written down; the file has no place for it."""

    def save(self, path: str | Path) -> None:
        """Write the certificate, as a whole or not at all; raises RewrightError."""
        KERNEL.save(self, path)


def certificate_of(
    left: Graph, right: Graph, parts: tuple[Part, ...], condition: Graph | None = None
) -> KernelCertificate:
    """The certificate of parts that are proved for inputs that meet a condition."""
    texts = dict.fromkeys(() if condition is None else in_words(condition))
    texts |= dict.fromkeys(text for part in parts for text in _taken(part, left, right, condition))
    return KernelCertificate(digest(left), digest(right), parts, tuple(texts), condition)


def programs_of(variant: Variant, outputs: tuple[str, ...], left: Graph, right: Graph) -> tuple[Graph, Graph] | None:
    """The programs that are compared for some outputs; None where they are no others, or the outputs not there."""
    if not set(outputs) <= left.outputs.keys() & right.outputs.keys():
        return None
    left, right = (_restricted(graph, outputs) for graph in (left, right))
    if variant == "with look-ups":
        return with_look_ups(left, right)
    if variant == "with infinities":
        filled = with_infinities(left), with_infinities(right)
        return None if filled == (None, None) else (filled[0] or left, filled[1] or right)
    short = written_out(left) if variant == "written out" else left
    return None if short is None else (short, right)


def said_of(variant: Variant) -> tuple[str, ...]:
    """What is taken for granted where other programs are compared than those that were given."""
    return (_FILLED,) if variant == "with infinities" else ()


def _restricted(graph: Graph, outputs: tuple[str, ...]) -> Graph:
    if tuple(graph.outputs) == outputs:
        return graph
    return remove_dead_nodes(replace(graph, outputs={name: graph.outputs[name] for name in outputs}))


def in_words(condition: Graph) -> tuple[str, ...]:
    """What a condition says, by the lines that compute it."""
    texts = (f"the condition at {condition.nodes[position].span} holds" for position in condition.outputs.values())
    return tuple(dict.fromkeys(texts))


def is_condition(condition: Graph, left: Graph) -> bool:
    """Whether a program gives truth values that are made of inputs of the reference, and of nothing else."""
    types = {name: left.nodes[position].type for name, position in left.inputs.items()}
    own = {name: condition.nodes[position].type for name, position in condition.inputs.items()}
    gives_truths = all(condition.nodes[p].type.dtype is DType.BOOL for p in condition.outputs.values())
    is_known = not any(isinstance(node.op, CustomCall) for node in condition.nodes)
    return gives_truths and is_known and bool(condition.outputs) and own.items() <= types.items()


def _taken(part: Part, left: Graph, right: Graph, condition: Graph | None) -> tuple[str, ...]:
    """What a part takes for granted, in words; raises Refused for one that is about no programs."""
    if isinstance(part.proof, EquivalenceCertificate):
        return (*said_of(part.variant), *part.proof.taken, *part.proof.assumptions)
    sides = programs_of(part.variant, part.outputs, left, right)
    found = None if sides is None else claim_of(part.proof, *sides, condition)
    if sides is None or found is None:
        raise Refused(f"there are no such programs as for the outputs {', '.join(part.outputs)}")
    return (*said_of(part.variant), *premises_of(*sides), *found[1])


def audit(certificate: KernelCertificate, left: Graph, right: Graph, store: Store | None = None) -> int:
    """Verify a certificate for a reference and what was read of a kernel; how many parts were proved again.

    Raises Refused, naming the outputs, for what does not follow.
    """
    for graph, known, name in ((left, certificate.reference, "reference"), (right, certificate.kernel, "kernel")):
        if digest(graph) != known:
            raise OtherPrograms(f"the certificate is not about the {name} that was given")
    check_calls((), (left, right))
    if certificate.condition is not None and not is_condition(certificate.condition, left):
        raise Refused("its condition is none: truth values that are made of inputs of the reference")
    for part in certificate.parts:
        why = _why_not(part, left, right, certificate.condition, store)
        if why is not None:
            raise Refused(f"the outputs {', '.join(part.outputs)} are not proved: {why}")
    missing = left.outputs.keys() - {name for part in certificate.parts for name in part.outputs}
    if missing:
        raise Refused(f"no part is about the output {min(missing)!r}")
    if certificate.assumptions != certificate_of(left, right, certificate.parts, certificate.condition).assumptions:
        raise Refused("the certificate states other assumptions than its proof needs")
    if not certificate.intact:
        raise Damaged("the certificate was changed after it was written: it is not the text of its contents")
    return len(certificate.parts)


def _why_not(part: Part, left: Graph, right: Graph, condition: Graph | None, store: Store | None) -> str | None:
    sides = programs_of(part.variant, part.outputs, left, right)
    if sides is None:
        return "there are no such programs"
    if isinstance(part.proof, Way):
        found = claim_of(part.proof, *sides, condition)
        outcome = None if found is None else prove(found[0], SECONDS)
        if outcome is None:
            return "there is no such claim"
        return None if outcome.status == "proved" else outcome.reason or outcome.status
    if part.proof.definitions or any(part.proof.tables) or part.proof.ranges:
        return "its proof is about inputs that are renamed, or have certain values"
    try:
        check_equivalence(part.proof, sides[0], alone(sides[1]), None, store)
    except RewrightError as error:
        return str(error)
    return None


# --- in files


def _table(certificate: KernelCertificate) -> dict[str, Any]:
    return {
        "reference": certificate.reference,
        "kernel": certificate.kernel,
        "parts": [[list(part.outputs), part.variant, _proof_table(part.proof)] for part in certificate.parts],
        "assumptions": list(certificate.assumptions),
        **({} if certificate.condition is None else {"condition": to_json(certificate.condition)}),
    }


def _proof_table(proof: EquivalenceCertificate | Way) -> Any:
    if isinstance(proof, Way):
        return [proof.given, proof.decimals, proof.products]
    return EQUIVALENCE.sealed(proof)


def _build(entries: Entries) -> KernelCertificate:
    return KernelCertificate(
        entries.one("reference", as_text),
        entries.one("kernel", as_text),
        entries.each("parts", _part),
        entries.each("assumptions", as_text),
        entries.one("condition", lambda item: None if item is None else from_json(item, REGISTRY)),
    )


def _part(value: Any) -> Part:
    outputs, variant, proof = as_list(value, 3)
    if variant not in get_args(Variant):
        raise ValueError(f"{variant!r:.40} is no way to compare programs")
    own = _way(proof) if isinstance(proof, list) else EQUIVALENCE.of_value(proof)
    return Part(tuple(map(as_text, as_list(outputs))), variant, own)


def _way(value: Any) -> Way:
    given, decimals, products = as_list(value, 3)
    if given not in ("nothing", "look-ups", "tables", "marks"):
        raise ValueError(f"{given!r:.40} is nothing that is known of inputs")
    return Way(given, as_truth(decimals), as_truth(products))


KERNEL = Form(_HEADER, _table, _build)
"""How proofs about kernels are written."""


def _check(certificate: KernelCertificate, programs: Programs | None, store: Store | None) -> Proved:
    given = require(programs)
    (right,) = given.right.graphs
    count = audit(certificate, given.left, right, store)
    outputs = "output" if len(given.left.outputs) == 1 else f"{len(given.left.outputs)} outputs"
    said = [Said("assumptions", "assuming that", certificate.assumptions)]
    if certificate.condition is not None:
        text = print_graph(replace(certificate.condition, metadata={}), spans=False)
        said.append(Said("condition", "for inputs for which all of this is true", text.splitlines()))
    claim = f"what was read of the kernel computes the {outputs} of the reference"
    parts = "part" if count == 1 else "parts"
    return Proved(claim, tuple(said), f"{count} {parts}", {"parts": count}, (), (given.left, right))


KIND = Kind(KERNEL.read, _check)
