"""HLO modules as programs: one graph, or the graph of every device."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from rewright import ops
from rewright.frontends.aten.pruning import prune_graph
from rewright.frontends.hlo import bits
from rewright.frontends.hlo.context import Context, Value
from rewright.frontends.hlo.devices import Groups
from rewright.frontends.hlo.folding import FoldingBuilder
from rewright.frontends.hlo.module import Instruction, Module
from rewright.frontends.hlo.shapes import Shape as ModuleShape
from rewright.frontends.hlo.sharding import Sharding, factors, placement
from rewright.frontends.hlo.walk import Walk
from rewright.frontends.unknowns import Unknowns
from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.ir.unknowns import NUMBERED
from rewright.ops.reference.simplifying import SimplifyingBuilder

_MOST_DEVICES = 4096
_PLAIN_NAME = re.compile(r"(?:Arg|arg|param|parameter)_?[0-9]*(?:[._][0-9]+)*")


@dataclass(frozen=True)
class Interface:
    """What is known of a module beside the module: names and global shapes of inputs and outputs, and the mesh."""

    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    input_shapes: Sequence[Shape] = ()
    output_shapes: Sequence[Shape] = ()
    mesh: Mesh | None = None


def lower(module: Module, devices: int | None = None, interface: Interface | None = None) -> Graph | RankProgram:
    """The graph of a module for one device, or the programs of all its devices.

    How many there are is stated by the module, else by ``devices``, else it is as many as its replica groups name. A
    module with shardings that the partitioner has not seen yet is one program on whole tensors: shardings say where its
    parts are computed, and not what. Raises RewrightError for a module that is malformed, UnsupportedOperator.
    """
    face = interface or Interface()
    try:
        replicas, partitions = (1, 1) if is_unpartitioned(module) else _counts(module, devices)
        count = replicas * partitions
        graphs = tuple(_lower(module, replicas, partitions, d, face) for d in range(count))
    except RecursionError:
        raise RewrightError("the module is nested too deeply; print it again") from None
    if len(graphs) == 1 and face.mesh is None:
        return graphs[0]
    mesh = face.mesh or _mesh(module, replicas, partitions)
    if mesh.size != len(graphs):
        raise RewrightError(
            f"the module is for {len(graphs)} devices and the mesh has {mesh.size}; use every axis of the mesh"
        )
    return RankProgram(graphs, mesh, *_placements(module, mesh, graphs[0], face) if replicas == 1 else ({}, {}))


def lower_device(module: Module, devices: int, device: int) -> Graph:
    """The graph of one device, of a module that was compiled for several.

    Raises RewrightError for a module that is malformed, and for one of another number of devices.
    """
    try:
        replicas, partitions = _counts(module, devices)
        if replicas * partitions == 1:
            replicas, partitions = _number(module, devices)
        if replicas * partitions != devices:
            raise RewrightError(
                f"the module is for {replicas * partitions} devices, as one of {devices} files; "
                "give one file for each device, or the module of all devices alone"
            )
        return _lower(module, replicas, partitions, device, Interface())
    except RecursionError:
        raise RewrightError("the module is nested too deeply; print it again") from None


def _mesh(module: Module, replicas: int, partitions: int) -> Mesh:
    """Replicas and partitions; the latter along several axes where the shardings of parameters say so."""
    sizes = factors([sharding for sharding in _shardings(module) if sharding.kind == "tiled"], partitions)
    names = ["partition"] if len(sizes) == 1 else [f"partition.{axis}" for axis in range(len(sizes))]
    axes = [("replica", replicas), *zip(names, sizes, strict=True)]
    return Mesh(tuple((name, size) for name, size in axes if size > 1))


def is_unpartitioned(module: Module) -> bool:
    """Whether a module has shardings that the SPMD partitioner has yet to apply.

    The partitioner notes the shardings of parameters in the module, and in the name of its entry.
    """
    if module.shardings is not None or "_spmd" in module.entry:
        return False
    entry = module.main.instructions.values()
    return any(i.attribute("sharding") is not None or i.word("custom_call_target") == "Sharding" for i in entry)


def _placements(
    module: Module, mesh: Mesh, graph: Graph, face: Interface
) -> tuple[dict[str, Placement], dict[str, Placement]]:
    """How inputs and outputs are placed, as far as the module says."""
    entry = module.main
    found: tuple[dict[str, Placement], dict[str, Placement]] = ({}, {})
    parameters = entry.parameters()
    own: list[Sharding | None] = [parameter.attribute("sharding") for parameter in parameters]
    given: Sequence[Sharding | None] = own if module.shardings is None else module.shardings
    result: Sharding | None = module.result_sharding or entry.result().attribute("sharding")
    for names, shardings, shapes, table in (
        (graph.inputs, given, face.input_shapes, found[0]),
        (graph.outputs, result.leaves(len(graph.outputs)) if result else [], face.output_shapes, found[1]),
    ):
        if len(shardings) != len(names):
            continue  # parameters that are tuples, or no shardings at all
        for place, ((name, position), sharding) in enumerate(zip(names.items(), shardings, strict=True)):
            if sharding is None or sharding.kind == "tuple":
                continue
            local = graph.nodes[position].type.shape
            if sharding.tiles and len(sharding.tiles) != len(local):
                raise RewrightError(f"the sharding of {name!r} has {len(sharding.tiles)} axes; print the module again")
            placed = placement(sharding, shapes[place] if shapes else sharding.whole(local), mesh)
            if placed is not None:
                table[name] = placed
    return found


def _counts(module: Module, devices: int | None) -> tuple[int, int]:
    sharded = {len(s.devices) for s in _shardings(module) if s.kind == "tiled"}
    stated = module.devices
    if stated is None and len(sharded) == 1:
        stated = 1, sharded.pop()
    if stated is None:
        named = [n for entry in _instructions(module) for n in _named_devices(entry)]
        stated = _number(module, devices or max(named, default=0) + 1)
    _within(stated[0] * stated[1])
    return stated


def _number(module: Module, count: int) -> tuple[int, int]:
    """The numbers of replicas and partitions among devices: collectives with channels are among partitions."""
    channel = any(entry.attribute("channel_id") is not None for entry in _instructions(module))
    return (1, count) if channel else (count, 1)


def _within(count: int) -> None:
    if not 0 < count <= _MOST_DEVICES:
        raise RewrightError(f"the module is for {count} devices, and at most {_MOST_DEVICES} are read")


def _shardings(module: Module) -> list[Sharding]:
    """Of the parameters, as far as the module says."""
    given = module.shardings or [p.attribute("sharding") for p in module.main.parameters()]
    return [sharding for sharding in given if isinstance(sharding, Sharding)]


def _instructions(module: Module) -> Iterator[Instruction]:
    for computation in module.computations.values():
        yield from computation.instructions.values()


def _named_devices(instruction: Instruction) -> Iterator[int]:
    for name in ("replica_groups", "source_target_pairs"):
        groups: Groups = instruction.attribute(name) or ()
        for group in groups:
            yield from group


def _lower(module: Module, replicas: int, partitions: int, device: int, face: Interface) -> Graph:
    builder = FoldingBuilder(module.name)
    unknowns = Unknowns(builder)
    context = Context(builder, module, unknowns, replicas, partitions, device, wraps=bits.wraps(module))
    walk = Walk(context)
    parameters = module.main.parameters()
    names = face.inputs or _names(parameters)
    if len(names) != len(parameters):
        raise RewrightError(f"the module has {len(parameters)} parameters and {len(names)} names were given for them")
    arguments: list[Value] = []
    for parameter, name in zip(parameters, names, strict=True):
        builder.span = module.span(parameter)
        arguments.append(_input(builder, name, parameter.shape))
    result = walk.computation(module.entry, arguments)
    leaves = list(_leaves(result))
    if not leaves:
        raise RewrightError("the module returns no array; print the whole module")
    numbered = ["output"] if len(leaves) == 1 else [f"output.{place}" for place in range(len(leaves))]
    outputs = face.outputs or numbered
    if len(outputs) != len(leaves):
        raise RewrightError(f"the module has {len(leaves)} results and {len(outputs)} names were given for them")
    for name, position in zip(outputs, leaves, strict=True):
        builder.output(name, position)
    graph = unknowns.attach_to(prune_graph(builder.build(), builder.superseded))
    notes = {} if face.outputs else {NUMBERED: "true"}
    if context.assumptions:
        notes["assumptions"] = "; ".join(context.assumptions)
    return replace(graph, metadata=graph.metadata | notes)


def _names(parameters: list[Instruction]) -> list[str]:
    """What the source calls the parameters, where it does, else what the module calls them."""
    labels = [dotted_path(p.label) if p.label and _is_made_up(p) else p.name for p in parameters]
    return labels if len(set(labels)) == len(labels) else [p.name for p in parameters]


def _is_made_up(parameter: Instruction) -> bool:
    """Whether the name of a parameter is a number, or its label with what a name cannot have replaced."""
    label = re.sub(r"\W", "_", parameter.label)
    return _PLAIN_NAME.fullmatch(parameter.name) is not None or re.sub(r"\.[0-9]+$", "", parameter.name) == label


def dotted_path(path: str) -> str:
    """A path into nested arguments as JAX prints it, ``params['layers'][0].weight``, in dots."""
    parts = re.split(r"\['([^']*)'\]|\[\\?[\"']?([^\]\"']*?)\\?[\"']?\]", path.replace("\\'", "'"))
    return ".".join(part for part in (p.strip(".") for p in parts if p) if part)


def _input(builder: SimplifyingBuilder, name: str, shape: ModuleShape) -> Value:
    if shape.element == "tuple":
        return tuple(_input(builder, f"{name}.{place}", part) for place, part in enumerate(shape.parts))
    return builder.input(name, ops.Input(name, shape.type()))


def _leaves(value: Value) -> Iterator[int]:
    if isinstance(value, tuple):
        for part in cast("tuple[Value, ...]", value):
            yield from _leaves(part)
    elif isinstance(value, int):
        yield value
