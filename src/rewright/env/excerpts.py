"""Parts of a module as modules of their own: one instruction many times, one fusion many times, some random part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from rewright.env.cost import FREE
from rewright.env.hlo.editing import make_tuple, parameter
from rewright.env.module import HloModule, assemble_module
from rewright.frontends.hlo.module import Computation, Instruction
from rewright.frontends.hlo.shapes import parts_of, read_shape
from rewright.ir.errors import RewrightError


def excerpt(module: HloModule, inside: Collection[str], repeat: int = 1, title: str = "excerpt") -> HloModule:
    """Some instructions of the entry as a module, ``repeat`` times over; what they read from outside is a parameter.

    The results are those that nothing inside reads. Raises RewrightError for a name that is not there.
    """
    main = module.program.main
    for name in inside:
        if name not in main.instructions:
            raise RewrightError(f"the entry has no instruction {name!r:.60}")
    own = [i for i in main.instructions.values() if i.name in set(inside)]
    read = {operand for i in own for operand in i.operands}
    cut: dict[str, Instruction] = {}
    for name in dict.fromkeys(operand for i in own for operand in i.operands if operand not in inside):
        _enter(cut, name, main.instructions[name].shape_proto)
    results: list[str] = []
    for turn in range(repeat):
        names = {i.name: f"{i.name}.{turn}" for i in own}
        for i in own:
            cut[names[i.name]] = replace(i.rename(names, {}), controls=())
        results += [names[i.name] for i in own if i.name not in read]
    root = results[0]
    if len(results) > 1:
        root = "results"
        cut[root] = make_tuple(root, [cut[name] for name in results])
    return assemble_module(module.program.computations, cut, root, title)


def _enter(cut: dict[str, Instruction], name: str, shape: bytes) -> None:
    """A parameter for a value; parameters for the parts of a tuple."""
    if read_shape(shape).element != "tuple":
        place = sum(i.opcode == "parameter" for i in cut.values())
        cut[name] = parameter(name, place, shape)
        return
    parts = parts_of(shape)
    for index, part in enumerate(parts):
        _enter(cut, f"{name}.part{index}", part)
    cut[name] = make_tuple(name, [cut[f"{name}.part{index}"] for index in range(len(parts))])


def extract_instructions_as_module(module: HloModule, repeat: int = 1000) -> list[tuple[str, HloModule]]:
    """Each instruction of the entry that does some work, in words, and as a module that does it ``repeat`` times."""
    found: list[tuple[str, HloModule]] = []
    for i in module.program.main.instructions.values():
        if i.opcode not in FREE and not i.has_effect:
            what = f"{i.name} = {i.shape} {i.opcode}({', '.join(i.operands)})"
            found.append((what, excerpt(module, [i.name], repeat, "instruction")))
    return found


def extract_fusions_as_module(module: HloModule, repeat: int = 1000) -> list[HloModule]:
    """Each fusion of the entry as a module that does it ``repeat`` times."""
    fusions = [i.name for i in module.program.main.instructions.values() if i.opcode == "fusion"]
    return [excerpt(module, [name], repeat, "fusion") for name in fusions]


def extract_random_submodule(
    module: HloModule, instruction_count_threshold: int, height: int, seed: int = 0
) -> HloModule | None:
    """A random instruction with all that it needs, ``height`` operands deep; None where that is too little.

    ``instruction_count_threshold`` is how many instructions it must have at least.
    """
    main = module.program.main
    starts = [i.name for i in main.instructions.values() if i.opcode not in FREE and not i.has_effect]
    for place in np.random.default_rng(seed).permutation(len(starts)):
        inside = _below(main, starts[int(place)], height)
        if len(inside) >= instruction_count_threshold:
            return excerpt(module, inside, 1, "submodule")
    return None


def _below(main: Computation, start: str, height: int) -> Sequence[str]:
    found, layer = {start: None}, [start]
    for _ in range(height):
        layer = [
            operand
            for name in layer
            for operand in main.instructions[name].operands
            if main.instructions[operand].opcode != "parameter" and not main.instructions[operand].has_effect
        ]
        found.update(dict.fromkeys(layer))
    return list(found)
