"""Certificates that were tampered with: one entry changed, dropped, repeated or moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from random import Random
from typing import Any

from rewright.claims.language import KINDS, READERS, Apply, Definition, Fold, Input, Number, Pieces, Tensor, View
from rewright.ir.placement import Placement
from rewright.proof.certificate import Certificate, Meeting, Output, RangeFact, Repetition

Tampered = tuple[str, Certificate]
_FUNCTIONS = ("tanh", "exponential", "sqrt", "log", "negate", "identity", "multiply", "where", "divide", "maximum")


def tampered(certificate: Certificate, count: int, seed: int) -> Iterator[Tampered]:
    """So many manipulations, of every kind that the certificate has something for."""
    random = Random(seed)
    made = 0
    while made < count:
        name, change = random.choice(_CHANGES)
        found = change(certificate, random)
        if found is not None and found != certificate:
            made += 1
            yield name, found


def _one(entries: Sequence[Any], random: Random, change: Callable[[Any, Random], Any]) -> tuple[Any, ...] | None:
    """The entries with one of them changed; None where there is none that can be."""
    if not entries:
        return None
    number = random.randrange(len(entries))
    found = change(entries[number], random)
    return None if found is None else (*entries[:number], found, *entries[number + 1 :])


def _moved(entries: Sequence[Any], random: Random) -> tuple[Any, ...] | None:
    """One entry less, one twice, or two in the place of each other."""
    if len(entries) < 2:
        return () if entries else None
    what, number = random.choice(("drop", "repeat", "swap")), random.randrange(len(entries))
    found = list(entries)
    if what == "drop":
        del found[number]
    elif what == "repeat":
        found.insert(random.randrange(len(entries)), entries[number])
    else:
        other = random.randrange(len(entries))
        found[number], found[other] = found[other], found[number]
    return tuple(found)


def _number(value: int, random: Random) -> int:
    return value + random.choice((-1, 1, 1, 2, -value, 1000, -1000))


def _off(value: Any, random: Random) -> Any:
    """Nested tuples with one number in them another one."""
    if isinstance(value, tuple):
        return _one(value, random, _off)
    if isinstance(value, Fraction):
        return value + random.choice((Fraction(1), Fraction(-1), Fraction(1, 2), -2 * value))
    if isinstance(value, int):
        return _number(value, random)
    return None


def _listed(field: str, change: Callable[[Any, Random], Any]) -> Callable[[Certificate, Random], Certificate | None]:
    """A change of one entry of a list of the certificate."""

    def apply(certificate: Certificate, random: Random) -> Certificate | None:
        found = _one(getattr(certificate, field), random, change)
        return None if found is None else replace(certificate, **{field: found})

    return apply


def _order(field: str) -> Callable[[Certificate, Random], Certificate | None]:
    def apply(certificate: Certificate, random: Random) -> Certificate | None:
        found = _moved(getattr(certificate, field), random)
        return None if found is None else replace(certificate, **{field: found})

    return apply


def _fields(*names: str) -> Callable[[Any, Random], Any]:
    """A change of a number in one of the fields of an entry that has them."""

    def apply(entry: Any, random: Random) -> Any:
        own = [name for name in names if hasattr(entry, name)]
        if not own:
            return None
        name = random.choice(own)
        found = _off(getattr(entry, name), random)
        return None if found is None else replace(entry, **{name: found})

    return apply


def _unfold(entry: Any, random: Random) -> Any:
    if isinstance(entry, Repetition):
        return None
    return replace(entry, unfold=_moved(entry.unfold, random) or ())


def _members(entry: Any, random: Random) -> Any:
    return replace(entry, members=_moved(entry.members, random)) if isinstance(entry, Meeting) else None


def _images(entry: Any, random: Random) -> Any:
    return replace(entry, images=_moved(entry.images, random) or ()) if isinstance(entry, Repetition) else None


def _view(value: Tensor, random: Random, change: Callable[[View, Random], View | None]) -> Tensor | None:
    """A value with one of its views changed."""
    if isinstance(value, View):
        return change(value, random)
    parts = _one(value.parts, random, lambda part, r: _view(part, r, change))
    return None if parts is None else replace(value, parts=parts)


def _addend(*names: str) -> Callable[[Any, Random], Any]:
    def apply(view: View, random: Random) -> View | None:
        addends = _one(view.addends, random, _fields(*names))
        return None if addends is None else replace(view, addends=addends)

    return lambda value, random: _view(value, random, apply)


def _addends(value: Any, random: Random) -> Any:
    return _view(value, random, lambda view, r: replace(view, addends=_moved(view.addends, r) or ()))


def _digits(value: Any, random: Random) -> Any:
    def apply(view: View, random: Random) -> View | None:
        what = random.choice(("other", "none", "swap", "split"))
        if what == "none":
            return replace(view, dims=tuple((0,) for _ in view.dims))
        if what == "split":
            return replace(view, dims=tuple((1, *digits) for digits in view.dims))
        dims = _off(view.dims, random) if what == "other" else _moved(view.dims, random)
        return None if dims is None else replace(view, dims=dims)

    return _view(value, random, apply)


def _pieces(value: Any, random: Random) -> Any:
    if not isinstance(value, Pieces):
        return None
    what = random.choice(("parts", "lengths", "axis", "rows", "none"))
    if what == "none":
        return replace(value, parts=(), lengths=())
    if what == "parts":
        return replace(value, parts=_moved(value.parts, random) or ())
    return _fields(what)(value, random)


def _in_pieces(value: Any, random: Random) -> Any:
    return (
        Pieces(0, 1, (value.dims[0][0],), (value,))
        if isinstance(value, View) and value.dims and value.dims[0]
        else None
    )


def _data(term: Definition, random: Random) -> Definition | None:
    content = term.content
    if isinstance(content, Apply):
        return replace(term, content=replace(content, function=random.choice(_FUNCTIONS)))
    if isinstance(content, Fold):
        return replace(term, content=replace(content, kind=random.choice(("sum", "maximum", "product"))))
    if isinstance(content, Input):
        return replace(term, content=Input(random.choice(("x", "y", "down.weight"))))
    if isinstance(content, Number):
        return replace(term, content=Number(random.choice(("2.5", "inf"))))
    names = [one.name for one in fields(content) if one.name != "accesses"]
    found = _off(tuple(getattr(content, name) for name in names), random)
    changed = None if found is None else dict(zip(names, found, strict=False))
    return None if changed is None else replace(term, content=replace(content, **changed))


def _read_elsewhere(term: Definition, random: Random) -> Definition | None:
    if random.random() < 0.5:
        return replace(term, rank=_number(term.rank, random))
    accesses = _off(term.accesses, random)
    is_reader = accesses is not None and isinstance(term.content, READERS)
    return replace(term, content=replace(term.content, accesses=accesses)) if is_reader else None


def _kind(term: Definition, random: Random) -> Definition:
    made = random.choice(list(KINDS.values()))
    own = [getattr(term.content, one.name) for one in fields(term.content) if one.name != "accesses"]
    wanted = [one.name for one in fields(made) if one.name != "accesses"]
    data = [own[k] if k < len(own) else () for k in range(len(wanted))]
    return replace(term, content=made(*data, *((term.accesses,) if made in READERS else ())))


def _operands(term: Definition, random: Random) -> Definition | None:
    if not term.operands:
        return None
    if random.random() < 0.3:
        return replace(term, operands=_moved(term.operands, random) or ())
    found = _one(term.operands, random, lambda _, r: r.randrange(-2, 40))
    return None if found is None else replace(term, operands=found)


def _circular(certificate: Certificate, random: Random) -> Certificate | None:
    """A term over itself or a later one."""
    numbers = [n for n, term in enumerate(certificate.terms) if term.operands]
    if not numbers:
        return None
    number = random.choice(numbers)
    term = certificate.terms[number]
    later = random.choice((number, -1, len(certificate.terms) - 1, len(certificate.terms)))
    changed = replace(term, operands=(later, *term.operands[1:]))
    return replace(certificate, terms=(*certificate.terms[:number], changed, *certificate.terms[number + 1 :]))


def _given(entry: tuple[int, str, int], random: Random) -> tuple[int, str, int]:
    program, name, value = entry
    return random.choice(
        ((_number(program, random), name, value), (program, "nothing", value), (program, name, _number(value, random)))
    )


def _placement(placement: Placement, random: Random) -> Placement | None:
    what = random.choice(("runs", "ranks", "partial", "reduction", "empty"))
    if what == "runs":
        runs = _off(placement.runs, random)
        return None if runs is None else replace(placement, runs=runs)
    if what == "ranks":
        return replace(placement, runs=_moved(placement.runs, random) or ())
    if what == "empty":
        return replace(placement, runs=tuple(tuple(() for _ in rank) for rank in placement.runs))
    if what == "partial":
        return replace(placement, partial=() if placement.partial else (random.choice(("tp", "dp")),))
    return replace(placement, reduction="max") if placement.partial else None


def _relation(certificate: Certificate, random: Random) -> Certificate | None:
    name = random.choice(sorted(certificate.relations))
    relations = dict(certificate.relations)
    what = random.choice(("drop", "rename", "change", "change", "change"))
    found = _placement(relations.pop(name), random)
    if what == "change":
        if found is None:
            return None
        relations[name] = found
    elif what == "rename":
        relations["nothing"] = certificate.relations[name]
    return replace(certificate, relations=relations)


def _output(certificate: Certificate, random: Random) -> Certificate | None:
    name = random.choice(sorted(certificate.outputs))
    outputs = dict(certificate.outputs)
    claimed = outputs.pop(name)
    what = random.choice(("drop", "rename", "change", "change", "unfold"))
    if what == "unfold":
        outputs[name] = Output(claimed.placement, _moved(claimed.unfold, random) or ())
    elif what == "change":
        found = _placement(claimed.placement, random)
        if found is None:
            return None
        outputs[name] = replace(claimed, placement=found)
    elif what == "rename":
        outputs["nothing"] = claimed
    return replace(certificate, outputs=outputs)


def _text(text: str, random: Random) -> str:
    place = random.randrange(len(text))
    return text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :]


def _sequential(certificate: Certificate, random: Random) -> Certificate:
    return replace(certificate, sequential=_text(certificate.sequential, random))


def _mesh(certificate: Certificate, random: Random) -> Certificate | None:
    mesh = random.choice(((), (("other", 2),), (*certificate.mesh, ("dp", 1)), (("tp", 4),)))
    return replace(certificate, mesh=mesh)


def _assumptions(certificate: Certificate, random: Random) -> Certificate:
    stated = certificate.assumptions
    what = random.choice(("drop", "change", "more"))
    if what == "drop":
        return replace(certificate, assumptions=_moved(stated, random) or ())
    if what == "change":
        return replace(certificate, assumptions=_one(stated, random, _text) or ())
    return replace(certificate, assumptions=(*stated, "the moon is made of cheese"))


def _fact(fact: RangeFact, random: Random) -> RangeFact | None:
    if random.random() < 0.2:
        return replace(fact, allowed=random.choice(((), ((((None, None),), Fraction(1)),))))
    return _fields("term", "allowed", "position", "window", "place")(fact, random)


_CHANGES: tuple[tuple[str, Callable[[Certificate, Random], Certificate | None]], ...] = (
    *(("equation", _order("equations")) for _ in range(4)),
    ("equation", _listed("equations", _fields("program", "position"))),
    ("equation", _listed("equations", _fields("value"))),
    ("equation", _listed("equations", _fields("value"))),
    ("unfold", _listed("equations", _unfold)),
    ("meeting", _listed("equations", _members)),
    ("meeting", _listed("equations", _fields("members"))),
    ("meeting", _listed("equations", _fields("whole"))),
    ("repetition", _listed("equations", _fields("first", "last", "shifts"))),
    ("repetition", _listed("equations", _fields("images"))),
    ("repetition", _listed("equations", _images)),
    ("values", _order("values")),
    ("coefficient", _listed("values", _addend("coefficient"))),
    ("term", _listed("values", _addend("term"))),
    ("access", _listed("values", _addend("access"))),
    ("region", _listed("values", _addend("parts"))),
    ("addends", _listed("values", _addends)),
    ("digits", _listed("values", _digits)),
    ("digits", _listed("values", _digits)),
    ("pieces", _listed("values", _pieces)),
    ("pieces", _listed("values", _in_pieces)),
    ("terms", _order("terms")),
    ("definition", _listed("terms", _data)),
    ("definition", _listed("terms", _data)),
    ("definition", _listed("terms", _kind)),
    ("definition", _listed("terms", _operands)),
    ("definition", _listed("terms", _read_elsewhere)),
    ("definition", _circular),
    ("given", _order("given")),
    ("given", _listed("given", _given)),
    ("relation", _relation),
    ("relation", _relation),
    ("output", _output),
    ("output", _output),
    ("fact", _order("facts")),
    ("fact", _listed("facts", _fact)),
    ("digest", _sequential),
    ("digest", _order("ranks")),
    ("digest", _listed("ranks", _text)),
    ("mesh", _mesh),
    ("assumption", _assumptions),
)
