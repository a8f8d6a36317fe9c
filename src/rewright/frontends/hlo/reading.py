"""HLO modules as programs: one graph, or the graph of every device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from rewright import ops
from rewright.frontends.aten.pruning import pruned
from rewright.frontends.hlo import proto, text
from rewright.frontends.hlo.context import Context, Value
from rewright.frontends.hlo.module import Instruction, Module, Shape
from rewright.frontends.hlo.walk import Walk
from rewright.frontends.unknowns import Unknowns
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.unknowns import NUMBERED
from rewright.ops.reference.simplifying import SimplifyingBuilder

_MOST_DEVICES = 4096
_PLAIN_NAME = re.compile(r"(?:Arg|arg|param|parameter)_?[0-9]*(?:[._][0-9]+)*")


def read_text(source: str, devices: int | None = None) -> Graph | RankProgram:
    """The program in an HLO text; see :func:`lower`."""
    return lower(text.parse(source), devices)


def read_proto(data: bytes, devices: int | None = None) -> Graph | RankProgram:
    """The program in a serialised HloModuleProto; see :func:`lower`."""
    return lower(proto.parse(data), devices)


def lower(module: Module, devices: int | None = None) -> Graph | RankProgram:
    """The graph of a module for one device, or the programs of all its devices.

    How many there are is stated by the module, else by ``devices``, else it is as many as its replica groups name.
    Raises RewrightError for a module that is malformed, UnsupportedOperator.
    """
    try:
        replicas, partitions = _counts(module, devices)
        graphs = tuple(_lowered(module, replicas, partitions, d) for d in range(replicas * partitions))
    except RecursionError:
        raise RewrightError("the module is nested too deeply; print it again") from None
    if len(graphs) == 1:
        return graphs[0]
    axes = {name: size for name, size in (("replica", replicas), ("partition", partitions)) if size > 1}
    return RankProgram(graphs, Mesh.of(axes), {}, {})


def _counts(module: Module, devices: int | None) -> tuple[int, int]:
    replicas, partitions = module.replicas, module.partitions
    if replicas is None and partitions is None:
        named = [n for entry in _instructions(module) for n in _named_devices(entry)]
        channel = any(entry.attributes.get("channel_id") is not None for entry in _instructions(module))
        count = devices or max(named, default=0) + 1
        replicas, partitions = (1, count) if channel else (count, 1)
    replicas, partitions = replicas or 1, partitions or 1
    if not 0 < replicas * partitions <= _MOST_DEVICES:
        raise RewrightError(f"the module is for {replicas * partitions} devices, and at most {_MOST_DEVICES} are read")
    return replicas, partitions


def _instructions(module: Module) -> Iterator[Instruction]:
    for computation in module.computations.values():
        yield from computation.instructions


def _named_devices(instruction: Instruction) -> Iterator[int]:
    for name in ("replica_groups", "source_target_pairs"):
        groups: Any = instruction.attributes.get(name) or ()
        for group in groups:
            yield from cast("tuple[int, ...]", group)


def _lowered(module: Module, replicas: int, partitions: int, device: int) -> Graph:
    builder = SimplifyingBuilder(module.name)
    unknowns = Unknowns(builder)
    context = Context(builder, module, unknowns, replicas, partitions, device)
    walk = Walk(context)
    entry = module.computation(module.entry)
    parameters = entry.parameters()
    names = _names(parameters)
    arguments: list[Value] = []
    for parameter, name in zip(parameters, names, strict=True):
        builder.span = parameter.span
        arguments.append(_input(builder, name, parameter.shape))
    result = walk.computation(module.entry, arguments)
    leaves = list(_leaves(result))
    if not leaves:
        raise RewrightError("the module returns no array; print the whole module")
    for place, position in enumerate(leaves):
        builder.output("output" if len(leaves) == 1 else f"output.{place}", position)
    graph = unknowns.noted(pruned(builder.build(), builder.superseded))
    notes = {NUMBERED: "true"}
    if context.assumptions:
        notes["assumptions"] = "; ".join(context.assumptions)
    return replace(graph, metadata=graph.metadata | notes)


def _names(parameters: list[Instruction]) -> list[str]:
    """What the source calls the parameters, where it does, else what the module calls them."""
    labels = [p.label if p.label and _PLAIN_NAME.fullmatch(p.name) else p.name for p in parameters]
    return labels if len(set(labels)) == len(labels) else [p.name for p in parameters]


def _input(builder: SimplifyingBuilder, name: str, shape: Shape) -> Value:
    if shape.element == "tuple":
        return tuple(_input(builder, f"{name}.{place}", part) for place, part in enumerate(shape.parts))
    return builder.input(name, ops.Input(name, shape.type()))


def _leaves(value: Value) -> Iterator[int]:
    if isinstance(value, tuple):
        for part in cast("tuple[Value, ...]", value):
            yield from _leaves(part)
    elif isinstance(value, int):
        yield value
