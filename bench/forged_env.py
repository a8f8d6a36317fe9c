"""Certificates of trajectories that somebody forged, and how many are accepted for what is wrong: ``make forged-env``.

A forger knows the format, makes the digest anew and keeps all parts in step: he changes a module and makes the choices
again, so that they lead to the module at the end. A forged certificate that is accepted must be true still: what it
claims is run, and what it leaves open says so.
"""

from __future__ import annotations

import argparse
import base64
import copy
import json
import math
import struct
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, cast

from bench.tables import print_table
from rewright.env.certificate import audit, certify, graph_of
from rewright.env.episode import Episode, Settings
from rewright.env.hlo.editing import remove_dead_code
from rewright.env.module import HloModule
from rewright.env.session import Session
from rewright.env.testing import compare_modules
from rewright.env.trajectory import replay
from rewright.frontends.hlo.module import LITERAL, Computation, Instruction, Module
from rewright.frontends.hlo.proto import read, write
from rewright.frontends.hlo.wire import BYTES, Field, read_fields, write_fields
from rewright.ir.errors import Refused, RewrightError
from rewright.proof.container import decode, read_document, seal_document

Document = dict[str, Any]
Kind = Callable[[Random, Document], Document]

MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "products": (
        """HloModule products
    ENTRY main { a = f32[8] parameter(0) b = f32[8] parameter(1) c = f32[8] parameter(2)
      p = f32[8] multiply(a, b) q = f32[8] multiply(a, c) s = f32[8] add(p, q) n = f32[8] negate(s)
      ROOT r = f32[8] maximum(n, b) }""",
        ("rule:distribute", "algsimp"),
    ),
    "masked": (
        """HloModule masked
    max_f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }
    ENTRY main { x = f32[4,6] parameter(0) y = f32[4,6] parameter(1) i = f32[] constant(-inf) z = f32[] constant(0)
      Z = f32[4,6] broadcast(z), dimensions={} I = f32[4,6] broadcast(i), dimensions={}
      p = pred[4,6] compare(x, Z), direction=GT s = f32[4,6] select(p, y, I)
      m = f32[4] reduce(s, i), dimensions={1}, to_apply=max_f M = f32[4,6] broadcast(m), dimensions={0}
      a = f32[4,6] add(M, y) b = f32[4,6] add(y, x) ROOT r = f32[4,6] multiply(a, b) }""",
        ("rules",),
    ),
    "integers": (
        """HloModule integers
    ENTRY main { x = s32[8] parameter(0) y = s32[8] parameter(1) t = s32[] constant(2)
      T = s32[8] broadcast(t), dimensions={} a = s32[8] multiply(x, T) b = s32[8] add(a, y)
      c = s32[8] divide(b, T) p = pred[8] compare(b, c), direction=LT ROOT r = s32[8] select(p, a, b) }""",
        ("rules", "algsimp"),
    ),
}
_FLOATS = [struct.pack("<f", value) for value in (math.inf, -math.inf, math.nan, -0.0, 1e30)]
_ALIKE = (
    ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power"),
    ("negate", "abs", "exponential", "log", "sqrt", "tanh", "copy", "floor", "sign"),
)
_ORDERS = (b"LT", b"LE", b"GT", b"GE", b"EQ", b"NE")
_DIRECTION = 63


def certified(session: Session) -> dict[str, tuple[Document, Document]]:
    """A certificate and a trajectory of each module, of two rounds."""
    found: dict[str, tuple[Document, Document]] = {}
    for name, (text, passes) in MODULES.items():
        episode = Episode(session, session.parse(text), Settings(passes, tested=False))
        for _ in range(2):
            for number in range(min(len(episode.run), 3)):
                episode.choose(number)
            if not episode.next_round():
                break
        found[name] = certify(episode).document, episode.to_json()
    return found


# --- what a forger does


def _module(text: str) -> Module:
    return read(base64.b64decode(text))


def _written(program: Module) -> str:
    return base64.b64encode(write(program, unique=False)).decode()


def _mutated(random: Random, program: Module, computation: str, name: str) -> Module:
    """The program with one instruction that is another one."""
    body = program.computations[computation]
    own = body.instructions[name]
    changes = [change for change in (_opcode, _operands, _literal, _order) if change(random, own, body) != own]
    changed = random.choice(changes)(random, own, body) if changes else own
    return program.with_computation(replace(body, instructions={**body.instructions, name: changed}))


def _opcode(random: Random, i: Instruction, body: Computation) -> Instruction:
    group = next((own for own in _ALIKE if i.opcode in own), (i.opcode,))
    return replace(i, opcode=random.choice([own for own in group if own != i.opcode] or [i.opcode]))


def _operands(random: Random, i: Instruction, body: Computation) -> Instruction:
    if not i.operands:
        return i
    place = random.randrange(len(i.operands))
    names = list(body.instructions)
    earlier = names[: names.index(i.name)] if i.name in names else names
    same = [n for n in earlier if body.instructions[n].shape_proto == body.instructions[i.operands[place]].shape_proto]
    other = random.choice([n for n in same if n != i.operands[place]] or [i.operands[place]])
    return replace(i, operands=(*i.operands[:place], other, *i.operands[place + 1 :]))


def _literal(random: Random, i: Instruction, body: Computation) -> Instruction:
    if i.opcode != "constant":
        return i
    literal = next((v for n, _, v in i.fields if n == LITERAL and isinstance(v, bytes)), b"")

    def changed(entry: Field) -> Field:
        number, wire, value = entry
        if number == 8 and isinstance(value, bytes):
            value = b"".join(random.choice(_FLOATS) for _ in range(len(value) // 4))
        elif number == 4 and isinstance(value, bytes) and len(value) == 1:
            value = bytes([random.randrange(1, 100)])
        return number, wire, value

    return i.with_field(LITERAL, BYTES, write_fields(changed(entry) for entry in read_fields(literal)))


def _order(random: Random, i: Instruction, body: Computation) -> Instruction:
    return i.with_field(_DIRECTION, BYTES, random.choice(_ORDERS)) if i.opcode == "compare" else i


def _some(random: Random, program: Module) -> tuple[str, str]:
    computation = random.choice(list(program.computations.values()))
    return computation.name, random.choice(list(computation.instructions))


def one_module(random: Random, document: Document) -> Document:
    """One of the modules is another one, and the rest stays."""
    places = [(document, "original"), (document, "final")]
    places += [(own, what) for own in document["rounds"] for what in ("base", "extended")]
    table, what = random.choice(places)
    program = _module(table[what])
    table[what] = _written(_mutated(random, program, *_some(random, program)))
    return document


def another_replacement(random: Random, document: Document) -> Document:
    """What replaces a value is another one, and the choices lead to the module at the end."""
    own = random.choice(document["rounds"])
    base, extended = _module(own["base"]), _module(own["extended"])
    added = [
        (name, n)
        for name, body in extended.computations.items()
        for n in body.instructions
        if name not in base.computations or n not in base.computations[name].instructions
    ]
    place = random.choice(added) if added else _some(random, extended)
    own["extended"] = _written(_mutated(random, extended, *place))
    return _in_step(document)


def another_step(random: Random, document: Document) -> Document:
    """A step takes another value of the program for the replacement."""
    steps = [(own, step) for own in document["rounds"] for step in own["steps"]]
    if not steps:
        return document
    own, step = random.choice(steps)
    body = _module(own["extended"]).computations[step["computation"]]
    shape = body.instructions[step["replacement"]].shape_proto
    step["replacement"] = random.choice([n for n, i in body.instructions.items() if i.shape_proto == shape])
    return _in_step(document)


def another_start(random: Random, document: Document) -> Document:
    """The certificate is about another module from the first to the last."""
    own = document["rounds"][0]
    base = _module(own["base"])
    place = _some(random, base)
    seed = random.random()
    for what in ("base", "extended"):
        own[what] = _written(_mutated(Random(seed), _module(own[what]), *place))
    if random.random() < 0.5:
        document["original"] = own["base"]
    return _in_step(document)


def _in_step(document: Document) -> Document:
    """The modules after the first round made anew from the choices, as far as that goes."""
    before: Module | None = None
    for number, own in enumerate(document["rounds"]):
        base = _module(own["base"])
        if before is not None and number:
            base = before
            old = _module(own["extended"])
            more = {n: c for n, c in old.computations.items() if n not in base.computations}
            bodies = {
                n: replace(c, instructions={**old.computations[n].instructions, **c.instructions})
                for n, c in base.computations.items()
                if n in old.computations
            }
            own["base"] = _written(base)
            own["extended"] = _written(replace(base, computations={**base.computations, **bodies, **more}))
        graph = graph_of(_module(own["base"]), _module(own["extended"]), own["steps"])
        before = graph.apply(range(len(graph))) if len(graph) else base
    if before is not None:
        document["final"] = _written(before)
    return document


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(cast("dict[Any, Any]", value).items())
    else:
        items = list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []
    for key, inner in items:
        found += [(value, key), *_places(inner)]
    return found


def one_value(random: Random, document: Document) -> Document:
    """One value of the document is another one, of another type, or gone."""
    table, key = random.choice([p for p in _places(document) if p[1] not in ("digest", "format", "by")])
    own = table[key]
    others: list[Any] = [
        None,
        True,
        -1,
        7,
        1.5,
        "same",
        "",
        [],
        {},
        [own],
        {"grade": "same", "depths": []},
        float("inf"),
    ]
    if isinstance(own, list) and own:
        others += [own[1:], own + own, own[::-1]]
    if isinstance(own, int):
        others += [own + 1, own - 1, 10**30, str(own)]
    if random.random() < 0.15:
        del table[key]
    else:
        table[key] = random.choice([other for other in others if other != own])
    return document


def better_known(random: Random, document: Document) -> Document:
    """A proof is said to hold better than it does, at other depths, or what is open is left out."""
    proofs = [own["import"] for own in document["rounds"]]
    proofs += [step["proof"] for own in document["rounds"] for step in own["steps"]]
    for proof in proofs:
        if proof is not None and random.random() < 0.5:
            proof["grade"] = random.choice(("same", "move"))
            proof["depths"] = [random.choice((0, 1, 2, 3, 5, 9)) for _ in proof["depths"]]
    for own in document["rounds"]:
        for step in own["steps"]:
            step["proof"] = step["proof"] or {"grade": "real", "depths": [random.randrange(6)]}
    document["open"] = []
    return _in_step(document) if random.random() < 0.3 else document


def given_twice(random: Random, document: Document) -> Document:
    """A field of an instruction is given again, with another value, which one reader takes and another does not."""
    places = [(document, "original"), (document, "final")]
    places += [(own, what) for own in document["rounds"] for what in ("base", "extended")]
    table, what = random.choice(places)
    program = _module(table[what])
    computation, name = _some(random, program)
    body = program.computations[computation]
    own, other = body.instructions[name], random.choice(list(body.instructions.values()))
    again: tuple[Field, ...] = other.fields or own.fields
    again += ((2, BYTES, b"subtract"), (_DIRECTION, BYTES, b"NE"), (_DIRECTION, BYTES, b"EQ"))
    changed = replace(own, fields=(*own.fields, *random.sample(again, min(2, len(again)))))
    table[what] = _written(program.with_computation(replace(body, instructions={**body.instructions, name: changed})))
    return document


KINDS: tuple[Kind, ...] = (
    one_module, another_replacement, another_step, another_start, one_value, better_known, given_twice,
)  # fmt: skip


def retold(random: Random, text: str) -> str:
    """The text of a document that another reader may read otherwise: a key twice, spaces, escapes, what follows."""
    key = random.choice(["final", "original", "open", "rounds", "digest", "version", "format", "base", "proof"])
    place = text.find(f'"{key}":')
    ways = [
        text[:1] + f'"{key}": [], ' + text[1:],
        text[:-1] + f', "{key}": []' + text[-1:],
        text[: max(place, 1)] + f'"{key}": null, ' + text[max(place, 1) :],
        text.replace('": ', '" : ', 1),
        text.replace(", ", ",", 1),
        text.replace("r", "\\u0072", 1),
        text + "{}",
        text.replace("1", "1.0", 1),
        text.replace("[]", "[NaN]", 1),
        text.replace("0", "-0", 1),
    ]
    return random.choice([way for way in ways if way != text])


# --- what is said of it


@dataclass
class Tally:
    """Forgeries by kind: how many there were, and what became of them."""

    kinds: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    wrong: list[str] = field(default_factory=list[str])

    def add(self, kind: str, said: str) -> None:
        """Count one."""
        self.kinds.setdefault(kind, Counter())[said] += 1
        if said == "WRONG":
            self.wrong.append(kind)

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(sum(own.values()) for own in self.kinds.values())


def forge(session: Session, count: int, seed: int = 0) -> Tally:
    """Forge so many certificates, an eighth of them texts, and a tenth as many trajectories, and audit them all."""
    random, tally = Random(seed), Tally()
    documents = certified(session)
    for number in range(count):
        document, _ = documents[random.choice(list(documents))]
        if number % 8 == 7:
            tally.add("retold", _said_of_text(retold(random, json.dumps(document))))
            continue
        kind = KINDS[number % 8]
        try:
            forged = kind(random, copy.deepcopy(document))
        except (RewrightError, KeyError, TypeError, ValueError, IndexError):
            tally.add(kind.__name__, "no certificate")
            continue
        forged = seal_document(forged)
        tally.add(kind.__name__, "unchanged" if forged == document else _said(session, forged))
    for _ in range(count // 10):
        _, trajectory = documents[random.choice(list(documents))]
        tally.add("trajectory", _said_of_trajectory(session, random, trajectory))
    return tally


def _said(session: Session, document: Document) -> str:
    try:
        found = audit(document, 2.0)
    except Refused:
        return "refused"
    if found.open:
        return "open"
    modules = [HloModule(write(remove_dead_code(read(proto)))) for proto in (found.original, found.final)]
    try:
        agrees = compare_modules(session, modules[0], modules[1], draws=("ordinary",)).agrees
    except RewrightError:
        return "WRONG"
    return "true" if agrees is not False else "WRONG"


def _said_of_text(text: str) -> str:
    try:
        audit(read_document(text, decode(text)))
    except RewrightError:
        return "refused"
    return "WRONG"


def _said_of_trajectory(session: Session, random: Random, trajectory: Document) -> str:
    forged = one_value(random, copy.deepcopy(trajectory))
    forged = seal_document(forged)
    try:
        episode = replay(session, forged)
    except RewrightError:
        return "refused"
    told = [(step["status"], step["grade"]) for step in forged["steps"]]
    known = [(own.status, own.grade) for _, own in episode.evidence(2.0)]
    return "true" if all(a == b or a[0] != "proved" for a, b in zip(told, known, strict=True)) else "WRONG"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a forgery was accepted for what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    with Session() as session:
        tally = forge(session, given.count, given.seed)
    columns = ("refused", "open", "true", "unchanged", "no certificate", "WRONG")
    rows = [[kind, *(str(own[column]) for column in columns)] for kind, own in tally.kinds.items()]
    print_table(["forgeries", *columns], rows)
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
