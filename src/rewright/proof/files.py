"""The text of a proof about ranks: strict, versioned JSON; nothing in it is executed.

What repeats is in tables and named by its number there: ``accesses``, ``regions``, ``labels`` (what terms are but for
their operands), ``shapes`` (the digits of the axes of views) and ``placements``; docs/reference/certificates.md has the
form of every entry.
"""

from __future__ import annotations

import json
from dataclasses import fields
from fractions import Fraction
from typing import Any, cast

from rewright.claims.language import Access, Add, Content, Definition, Index, Opaque, Ranged, Region, Size, Tensor, View
from rewright.ir.attributes import attributes
from rewright.ir.dims import Dim
from rewright.ir.json_form import encode
from rewright.ir.operator import Operator
from rewright.ir.placement import Placement
from rewright.proof.certificate import Certificate, Equation, Meeting, NodeEquation, RangeFact
from rewright.proof.container import Form, Header
from rewright.proof.reading import read_certificate
from rewright.proof.rewriting.files import rewriting_table

_HEADER = Header(
    "rewright.certificate",
    1,
    (
        *("sequential", "ranks", "mesh", "assumptions", "placements", "relations", "outputs", "accesses", "regions"),
        *("labels", "shapes", "terms", "values", "facts", "given", "equations", "blocks", "digest"),
    ),
    ("rewriting", "calls", "captured"),
)


class _Table:
    """Entries by number, equal ones stored once."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number(self, entry: object) -> int:
        """The number of an entry."""
        key = json.dumps(entry)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.entries)
            self.entries.append(entry)
        return found


class _Writer:
    def __init__(self) -> None:
        self._accesses, self._regions, self._labels = _Table(), _Table(), _Table()
        self._shapes, self._placements = _Table(), _Table()

    def table(self, certificate: Certificate) -> dict[str, Any]:
        """The entries."""
        relations = [[name, self._placement(p)] for name, p in certificate.relations.items()]
        outputs = [[n, self._placement(o.placement), list(o.unfold)] for n, o in certificate.outputs.items()]
        facts = [self._fact(fact) for fact in certificate.facts]
        terms = [[self._label(term), *term.operands] for term in certificate.terms]
        values = [self._tensor(value) for value in certificate.values]
        return {
            "sequential": certificate.sequential,
            "ranks": list(certificate.ranks),
            "mesh": [list(axis) for axis in certificate.mesh],
            "assumptions": list(certificate.assumptions),
            "placements": self._placements.entries,
            "relations": relations,
            "outputs": outputs,
            "accesses": self._accesses.entries,
            "regions": self._regions.entries,
            "labels": self._labels.entries,
            "shapes": self._shapes.entries,
            "terms": terms,
            "values": values,
            "facts": facts,
            "given": [list(entry) for entry in certificate.given],
            "equations": [_equation(equation) for equation in certificate.equations],
            "blocks": [[b.name, b.window, b.order, b.rank, b.held, b.box] for b in certificate.blocks],
            **({"rewriting": rewriting_table(certificate.rewritings)} if certificate.rewritings else {}),
            **({"calls": list(certificate.calls)} if certificate.calls else {}),
            **({"captured": certificate.captured} if certificate.captured else {}),
        }

    def _placement(self, placement: Placement) -> int:
        runs = [[[[_dim(n) for n in run] for run in axis] for axis in rank] for rank in placement.runs]
        return self._placements.number([runs, list(placement.printed), list(placement.partial), placement.reduction])

    def _access(self, access: Access) -> int:
        return self._accesses.number([_index(index) for index in access])

    def _region(self, region: Region) -> int:
        boxes = [[[[_end(low), _end(high)] for low, high in box], _fraction(count)] for box, count in region]
        return self._regions.number(boxes)

    def _label(self, term: Definition) -> int:
        accesses = [self._access(access) for access in term.accesses]
        return self._labels.number([term.kind, term.rank, accesses, self._data(term.content)])

    def _data(self, content: Content) -> list[Any]:
        if isinstance(content, Size):
            return [_dim(content.value)]
        if isinstance(content, Add):
            return [[_fraction(coefficient) for coefficient in content.coefficients]]
        if isinstance(content, Ranged):
            return [self._region(content.region)]
        if isinstance(content, Opaque):
            axes = [[a if isinstance(a, int) else [_dim(n) for n in a] for a in operand] for operand in content.layout]
            places = [None if w is None else [w[0], _dim(w[1]), _dim(w[2])] for w in content.windows]
            return [_operator(cast("Operator", content.op)), list(content.kinds), axes, content.own, places]
        return [encode(getattr(content, one.name)) for one in fields(content) if one.name != "accesses"]

    def _tensor(self, tensor: Tensor) -> list[Any]:
        if isinstance(tensor, View):
            shape = self._shapes.number([[_dim(n) for n in digits] for digits in tensor.dims])
            addends = [
                [_fraction(a.coefficient), a.term, self._access(a.access)]
                + [entry for hole, region in a.parts for entry in (hole, self._region(region))]
                for a in tensor.addends
            ]
            return [shape, *addends]
        lengths = [_dim(length) for length in tensor.lengths]
        return ["pieces", tensor.axis, _dim(tensor.rows), lengths, [self._tensor(part) for part in tensor.parts]]

    def _fact(self, fact: RangeFact) -> list[Any]:
        window = [[_dim(start), _dim(length)] for start, length in fact.window]
        return [fact.term, self._region(fact.allowed), fact.position, window, self._access(fact.place)]


def _equation(equation: Equation) -> list[Any]:
    if isinstance(equation, NodeEquation):
        return ["step", equation.program, equation.position, equation.value, *equation.unfold]
    if isinstance(equation, Meeting):
        return ["meeting", [list(member) for member in equation.members], equation.whole, *equation.unfold]
    images = [number for image in equation.images for number in image]
    return ["again", equation.first, equation.last, list(equation.shifts), images]


def _operator(op: Operator) -> list[Any]:
    return [op.name, {name: encode(value) for name, value in attributes(op).items()}]


def _index(index: Index) -> list[Any]:
    constant, strides = index
    return [_dim(constant), *([variable, _dim(stride)] for variable, stride in strides)]


def _end(end: Dim | None) -> int | str | None:
    return None if end is None else _dim(end)


def _dim(size: Dim) -> int | str:
    return size if isinstance(size, int) else str(size)


def _fraction(value: Fraction) -> int | str:
    return int(value) if value == int(value) else str(value)


REFINEMENT = Form(_HEADER, lambda certificate: _Writer().table(certificate), read_certificate)
"""How proofs that ranks compute what one program computes are written."""
