"""Constants whose values a text left out (``constant({...})``): nothing is known of them, as of a parameter.

XLA's parser makes values up for them, others each time, and says nothing: so they are looked for in the text, and
become parameters at the end of the entry. What is proved then holds for all values, and what is tested was run with
random ones.
"""

from __future__ import annotations

import re
from dataclasses import replace

from rewright.env.hlo.editing import parameter, with_entry
from rewright.frontends.hlo.module import Computation, Module
from rewright.ir.errors import RewrightError

_ELIDED = re.compile(r"constant\(\s*\{\s*\.\.\.\s*\}")
_NAMED = re.compile(r"([\w.\-]+)\s*=\s*[^=\n]*?constant\(\s*\{\s*\.\.\.\s*\}")


def with_parameters(source: str, program: Module) -> tuple[Module, tuple[str, ...]]:
    """The program of an HLO text with its elided constants as parameters, and their names.

    Raises RewrightError where one is no constant of the entry.
    """
    names = list(dict.fromkeys(_NAMED.findall(source)))
    if len(_NAMED.findall(source)) != len(_ELIDED.findall(source)):
        raise RewrightError("the text has elided constants ({...}) without names; print it with its large constants")
    if not names:
        return program, ()
    main = program.main
    for computation in program.computations.values():
        inside = [n for n in names if n in computation.instructions and _is_constant(computation, n)]
        if inside and computation.name != main.name:
            raise RewrightError(
                f"the values of constant {inside[0]:.60} in {computation.name:.60} are elided ({{...}}); "
                "print the module with its large constants"
            )
    missing = [n for n in names if n not in main.instructions or not _is_constant(main, n)]
    if missing:
        raise RewrightError(f"the values of {missing[0]:.60} are elided ({{...}}); print it with its large constants")
    return _enter(program, names), tuple(names)


def _is_constant(computation: Computation, name: str) -> bool:
    return computation.instructions[name].opcode == "constant"


def _enter(program: Module, names: list[str]) -> Module:
    main = program.main
    instructions = dict(main.instructions)
    first = len(main.parameters())
    for place, name in enumerate(names, first):
        own = instructions[name]
        instructions[name] = replace(parameter(name, place, own.shape_proto), controls=own.controls)
    return with_entry(program, replace(main, instructions=instructions))
