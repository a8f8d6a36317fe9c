"""Modules that are edited: computations of one put into another, and dead code taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewright.frontends.hlo.module import (
    PARAMETER,
    SHAPE,
    SIGNATURE,
    TUPLE_INDEX,
    Computation,
    Instruction,
    Module,
    called_first,
    signature,
    toposort,
)
from rewright.frontends.hlo.shapes import tuple_of
from rewright.frontends.hlo.wire import BYTES, VARINT


def parameter(name: str, place: int, shape: bytes) -> Instruction:
    """A parameter of a shape, by its number."""
    return Instruction(name, "parameter", (), ((SHAPE, BYTES, shape), (PARAMETER, VARINT, place)))


def make_tuple(name: str, parts: Sequence[Instruction]) -> Instruction:
    """The tuple of some values."""
    shape = tuple_of([part.shape_proto for part in parts])
    return Instruction(name, "tuple", tuple(part.name for part in parts), ((SHAPE, BYTES, shape),))


def part(name: str, whole: str, index: int, shape: bytes) -> Instruction:
    """A part of a tuple."""
    return Instruction(name, "get-tuple-element", (whole,), ((SHAPE, BYTES, shape), (TUPLE_INDEX, VARINT, index)))


def with_entry(module: Module, main: Computation) -> Module:
    """The module with another entry, whose signature is that of its parameters and its root."""
    own = signature({p.name: p.shape_proto for p in main.parameters()}, main.result().shape_proto)
    entry, whole = ((own, *(e for e in fields if e[0] != SIGNATURE)) for fields in (main.fields, module.fields))
    return replace(module.with_computation(replace(main, fields=entry)), entry=main.name, fields=whole)


def import_computations(module: Module, other: Module, prefix: str) -> tuple[Module, str]:
    """A module with the computations of another under a prefix, and the name that the entry of the other has there."""
    names = {name: f"{prefix}.{name}" for name in other.computations}
    for name, computation in other.computations.items():
        own = replace(computation.map_instructions(lambda _, i: i.rename({}, names)), name=names[name])
        module = module.with_computation(own)
    return module, names[other.entry]


def remove_dead_code(module: Module) -> Module:
    """The module without dead code, instructions and computations in order; raises Cycle."""
    slim = {name: prune(computation) for name, computation in module.computations.items()}
    kept = replace(module, computations=slim)
    return replace(kept, computations={name: slim[name] for name in called_first(slim, module.entry)})


def prune(computation: Computation) -> Computation:
    """A computation without dead code, operands first; parameters and what has effects stay. Raises Cycle."""
    roots = [computation.root, *(i.name for i in computation.instructions.values() if i.has_effect)]
    order = toposort(computation.instructions, roots)
    live = set(order)
    unused = [i.name for i in computation.parameters() if i.name not in live]
    kept = {name: computation.instructions[name] for name in (*unused, *order)}
    for name, instruction in kept.items():
        if any(control not in live for control in instruction.controls):
            kept[name] = replace(instruction, controls=tuple(c for c in instruction.controls if c in kept))
    return replace(computation, instructions=kept)
