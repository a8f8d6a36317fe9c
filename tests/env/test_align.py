"""Programs that were numbered anew: what is the same gets its name back, and what differs is a site of its own."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rewright.env.align import align_names
from rewright.env.alternatives import Provenance
from rewright.env.module import HloModule
from rewright.env.session import Session
from rewright.env.sites import split
from rewright.frontends.hlo.module import Computation, Module
from rewright.frontends.hlo.proto import write
from tests.env.modules import DTYPES, LOOP, RATES

BY = Provenance("pattern", "test")


def renumbered(program: Module, seed: int) -> Module:
    """The program with names of instructions and computations dealt out anew, those of others among them."""
    chooser = random.Random(seed)
    calls = _dealt([*program.computations], chooser)
    computations: dict[str, Computation] = {}
    for name, own in program.computations.items():
        names = _dealt([*own.instructions], chooser)
        instructions = {
            names[n]: replace(
                i,
                name=names[n],
                operands=tuple(names[o] for o in i.operands),
                called=tuple(calls[c] for c in i.called),
                controls=tuple(names[c] for c in i.controls),
            )
            for n, i in own.instructions.items()
        }
        computations[calls[name]] = replace(own, name=calls[name], instructions=instructions, root=names[own.root])
    return replace(program, computations=computations, entry=calls[program.entry])


def _dealt(names: list[str], chooser: random.Random) -> dict[str, str]:
    other = [*names[: len(names) // 2], *(f"other.{k}" for k in range(len(names) - len(names) // 2))]
    chooser.shuffle(other)
    return dict(zip(names, other, strict=True))


@pytest.mark.parametrize("text", [RATES, LOOP, DTYPES])
@pytest.mark.parametrize("seed", range(3))
def test_names_come_back(xla: Session, text: str, seed: int) -> None:
    program = xla.canonical(xla.parse(text)).program
    found = align_names(program, renumbered(program, seed))
    assert found.entry == program.entry
    assert not len(split(program, found, BY))
    assert xla.fingerprint(HloModule(found)) == xla.fingerprint(HloModule(program))


@pytest.mark.parametrize("seed", range(3))
def test_what_differs_is_one_site_under_any_names(xla: Session, seed: int) -> None:
    program = xla.canonical(xla.parse(RATES)).program
    main = program.main
    victim = next(i for i in main.instructions.values() if i.opcode == "tanh")
    changed = replace(main, instructions={**main.instructions, victim.name: replace(victim, opcode="cosine")})
    after = renumbered(program.with_computation(changed), seed)
    graph = split(program, align_names(program, after), BY)
    assert [(a.value, graph.opcodes_new(n)) for n, a in enumerate(graph.alternatives)] == [(victim.name, {"cosine": 1})]
    together = HloModule(graph.apply([0]))
    assert xla.fingerprint(together) == xla.fingerprint(HloModule(write(after)).pruned())


def test_a_loop_whose_body_differs_is_another_loop(xla: Session) -> None:
    program = xla.canonical(xla.parse(LOOP)).program
    body = next(c for c in program.computations.values() if any(i.opcode == "add" for i in c.instructions.values()))
    sums = [i for i in body.instructions.values() if i.opcode == "add" and i.operands[0] == i.operands[1]]
    changed = replace(body, instructions={**body.instructions, sums[0].name: replace(sums[0], opcode="multiply")})
    after = renumbered(program.with_computation(changed), 0)
    graph = split(program, align_names(program, after), BY)
    assert len(graph) == 1
    assert graph.opcodes_new(0)["while"] == 1
