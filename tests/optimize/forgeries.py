"""Forged certificates of optimised programs: true ones, changed and sealed anew, for programs that differ."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rewright as rw
from rewright import ops
from rewright.certificates import load
from rewright.equiv import pieces
from rewright.equiv.audit import audit as audit_equivalence
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.interp.program import run
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import Mesh, RankProgram
from rewright.proof.checker import audit as audit_core
from rewright.proof.container import seal_text
from tests.optimize.programs import normal

SECONDS = 0.5
"""That a lemma may take."""
INF = float("inf")


@dataclass(frozen=True)
class Forgery:
    """A text that claims that two programs are one function."""

    program: str
    kind: str
    what: str
    text: str
    left: Graph
    right: Graph


def _attention(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(5, 5).triu(1).bool()
    return torch.softmax((q @ k.T / 2).masked_fill(mask, -INF), -1) @ k


def _norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 0.5) * w


def _loss(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return (torch.logsumexp(x, -1) - (x * t).sum(-1)).mean()


def _infinite(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    masked = x.masked_fill(torch.ones(5, 4).triu(1).bool(), -INF)
    return torch.exp(masked) * y + torch.exp(masked).sum(-1, keepdim=True)


def _layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(6):
        x = _norm(torch.softmax(x, -1) @ w + torch.tanh(x), x.exp().amax(-1, keepdim=True))
    return x


PROGRAMS: dict[str, Any] = {
    "attention": (_attention, ((5, 4), (5, 4))),
    "norm": (_norm, ((5, 4), (4,))),
    "loss": (_loss, ((5, 4), (5, 4))),
    "infinite": (_infinite, ((5, 4), (5, 4))),
    "layers": (_layers, ((4, 4), (4, 4))),
}


@cache
def base(name: str) -> tuple[str, Graph, Graph]:
    """A true certificate as text, and the two programs that it is about."""
    function, shapes = PROGRAMS[name]
    args = tuple(normal(*shape, seed=n) for n, shape in enumerate(shapes))
    found = rw.optimize(function, args, target="torch", verify=False)
    assert found.certificate is not None and found.trust.program is not None and found.trust.graph is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        found.certificate.save(path)
        return path.read_text(), found.trust.program, found.trust.graph


def forgeries(count: int, seed: int) -> Iterator[Forgery]:
    """So many of all kinds, the same for a seed."""
    generator = random.Random(seed)
    names = sorted(PROGRAMS)
    made = 0
    while made < count:
        name = names[made % len(names)]
        found = _forged(name, generator)
        if found is not None:
            made += 1
            yield found


def accepted(forgery: Forgery) -> bool:
    """Whether what reads and checks certificates takes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        path.write_text(forgery.text)
        try:
            certificate = load(path)[1]
            program = RankProgram((forgery.right,), Mesh.of({"rank": 1}), {}, {})
            if isinstance(certificate, pieces.PiecewiseCertificate):
                pieces.audit(certificate, forgery.left, forgery.right, seconds=SECONDS)
            elif isinstance(certificate, EquivalenceCertificate):
                audit_equivalence(certificate, forgery.left, program, None, None, SECONDS)
            else:
                audit_core(certificate, forgery.left, program, None, SECONDS)
        except RewrightError:
            return False
    return True


def _forged(name: str, generator: random.Random) -> Forgery | None:
    """One forgery; None where the change makes no difference."""
    text, left, right = base(name)
    if generator.random() < 0.15:
        return _misprinted(name, generator, text, left, right)
    side = generator.choice(("left", "right"))
    wrong, what, names = _changed(left if side == "left" else right, generator)
    if wrong is None:
        return None
    sides = (wrong, right) if side == "left" else (left, wrong)
    if not _differ(*sides):
        return None
    entries = json.loads(text)
    del entries["digest"]
    kind = generator.choice(("sealed for a wrong program", "renamed", "entries changed", "rewritten and changed"))
    if kind in ("renamed", "rewritten and changed") and names is not None:
        entries = _renamed(entries, names)
    if kind in ("entries changed", "rewritten and changed"):
        for _ in range(generator.randint(1, 3)):
            _disturbed(entries, generator)
    _resealed(entries, *sides)
    return Forgery(name, kind, f"{side}: {what}", seal_text(entries), *sides)


def _misprinted(name: str, generator: random.Random, text: str, left: Graph, right: Graph) -> Forgery:
    """The true certificate as its printer does not print it: a key twice, blanks, numbers in other words."""
    body = text[: text.rindex(',"digest"')]
    key = generator.choice([key for key in json.loads(text) if key != "digest"])
    ways = {
        "a key twice": body.replace(f'"{key}":', f'"{key}":[],"{key}":', 1),
        "a key twice within": body.replace('{"', '{"format":0,"', 2).replace('{"format":0,"', '{"', 1)
        if body.count('{"') > 1
        else body.replace(f'"{key}":', f'"{key}":null,"{key}":', 1),
        "a blank": body.replace(",", ", ", 1),
        "a number in other words": body.replace('"version":1', '"version":1.0', 1),
        "an infinity": body.replace(f'"{key}":', f'"more":Infinity,"{key}":', 1),
        "a letter in other words": body.replace('"version"', '"\\u0076ersion"', 1),
    }
    what = generator.choice(sorted(ways))
    forged = ways[what]
    return Forgery(
        name, "misprinted", what, f'{forged},"digest":"{hashlib.sha256(forged.encode()).hexdigest()}"}}\n', left, right
    )


# --- wrong programs

_UNARY = (
    *(ops.Exponential, ops.Log, ops.Abs, ops.Negate, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Floor, ops.Ceil, ops.Sine),
    *(ops.Cosine, ops.Logistic, ops.ExponentialMinusOne, ops.LogPlusOne, ops.Sign),
)
_BINARY = (ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Maximum, ops.Minimum)
_REDUCED = ("sum", "maximum", "minimum", "product")


def _changed(graph: Graph, generator: random.Random) -> tuple[Graph | None, str, tuple[str, str] | None]:
    """A program with one operator, number or edge changed: what was changed, and the names of operators."""
    position = generator.choice(sorted(graph.live()))
    node = graph.nodes[position]
    new: Node | None = None
    names: tuple[str, str] | None = None
    if isinstance(node.op, _UNARY) and node.type.dtype.is_float:
        other = generator.choice([kind for kind in _UNARY if kind is not type(node.op)])()
        new, names = replace(node, op=other), (node.op.name, other.name)
    elif isinstance(node.op, _BINARY) and node.type.dtype.is_float:
        other = generator.choice([kind for kind in _BINARY if kind is not type(node.op)])()
        new, names = replace(node, op=other), (node.op.name, other.name)
        if generator.random() < 0.3:
            new, names = replace(node, operands=node.operands[::-1]), None
    elif isinstance(node.op, ops.Reduce):
        other = generator.choice([kind for kind in _REDUCED if kind != node.op.kind])
        new, names = replace(node, op=replace(node.op, kind=other)), (node.op.kind, other)
    elif isinstance(node.op, ops.Constant) and node.type.dtype.is_float:
        value = generator.choice((0.0, 1.0, -1.0, 2.0, INF, -INF, float("nan")))
        new = replace(node, op=replace(node.op, values=(value,) * len(node.op.values)))
    elif isinstance(node.op, ops.Compare):
        other = generator.choice([d for d in ("LT", "LE", "GT", "GE", "EQ", "NE") if d != node.op.direction])
        new, names = replace(node, op=replace(node.op, direction=other)), (node.op.direction, other)
    elif node.operands:
        same = [p for p in range(position) if graph.nodes[p].type == graph.nodes[node.operands[0]].type]
        new = replace(node, operands=(generator.choice(same), *node.operands[1:]))
    if new is None or new == node:
        return None, "", None
    nodes = (*graph.nodes[:position], new, *graph.nodes[position + 1 :])
    return replace(graph, nodes=nodes), f"{node.op.name} at %{position}", names


def _differ(left: Graph, right: Graph) -> bool:
    """Whether programs give other values on ordinary inputs: then no certificate for them can be true."""
    generator = np.random.default_rng(0)
    inputs = {
        name: generator.standard_normal(tuple(int(str(n)) for n in left.nodes[p].type.shape))
        for name, p in left.inputs.items()
    }
    try:
        with np.errstate(all="ignore"):
            one, other = run(left, inputs), run(right, inputs)
    except (RewrightError, ArithmeticError):
        return False
    return any(not np.allclose(one[name], other[name], atol=1e-6, equal_nan=True) for name in one)


# --- changed entries


def _resealed(entries: dict[str, Any], left: Graph, right: Graph) -> None:
    """Say that a certificate is about these programs."""
    for known in (entries, entries.get("proof")):
        if isinstance(known, dict):
            for key, value in (("left", digest(left)), ("right", digest(right)), ("sequential", digest(left))):
                if key in known:
                    known[key] = [value] if isinstance(known[key], list) else value
            if "ranks" in known:
                known["ranks"] = [digest(right)]


def _renamed(entries: dict[str, Any], names: tuple[str, str]) -> dict[str, Any]:
    """Every use of an operator as one of another."""
    return json.loads(json.dumps(entries).replace(f'"{names[0]}"', f'"{names[1]}"'))


def _disturbed(entries: dict[str, Any], generator: random.Random) -> None:
    """Change one entry somewhere: leave it out, repeat it, exchange it for another one, or alter a number."""
    places: list[tuple[Any, Any]] = []
    stack: list[Any] = [entries]
    while stack:
        value = stack.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                stack.append(value[key])
    owner, key = generator.choice(places)
    value = owner[key]
    way = generator.choice(("drop", "repeat", "exchange", "number", "nothing"))
    if way == "drop" and isinstance(owner, list):
        del owner[key]
    elif way == "repeat" and isinstance(owner, list):
        owner.insert(key, copy.deepcopy(value))
    elif way == "exchange":
        other, place = generator.choice(places)
        if type(other[place]) is type(value):
            owner[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        owner[key] = generator.choice((value + 1, value - 1, 0, -1, 2**40))
    elif value is not None and way == "nothing" and isinstance(owner, list):
        owner[key] = None
