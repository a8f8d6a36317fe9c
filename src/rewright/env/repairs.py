"""Custom calls of CUDA libraries, defined in HLO, so that modules dumped on a host with a GPU run on a CPU.

Each definition is the text of a small module. Opaque configurations are the structs that jaxlib of 2022 wrote: little
endian integers. What cannot be decoded is left as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace

from rewright.env.hlo.editing import import_computations, remove_dead_code
from rewright.env.module import HloModule
from rewright.env.session import Session
from rewright.frontends.hlo.module import SHAPE, Computation, Instruction
from rewright.frontends.hlo.shapes import Shape
from rewright.frontends.hlo.wire import BYTES, blob

_CONFIG = 43
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def runnable(session: Session, module: HloModule) -> HloModule:
    """The module with every custom call that has a definition replaced by a call of it."""
    program = module.program
    changed = False
    for computation in list(program.computations.values()):
        instructions = dict(computation.instructions)
        for name, instruction in computation.instructions.items():
            source = _definition(instruction, computation) if instruction.opcode == "custom-call" else None
            if source is None:
                continue
            prefix = f"{name}.{len(program.computations)}"
            program, entry = import_computations(program, session.parse(source).program, prefix)
            main = program.computations[entry]
            shape = main.result().shape_proto
            instructions[name] = Instruction(
                name, "call", instruction.operands, ((SHAPE, BYTES, shape),), (entry,), instruction.controls
            )
            changed = True
        program = program.with_computation(replace(computation, instructions=instructions))
    return module.replaced(remove_dead_code(program)) if changed else module


def _definition(instruction: Instruction, computation: Computation) -> str | None:
    """The text of a module that computes what a custom call does; None where that is not known."""
    define = _DEFINITIONS.get(instruction.word("custom_call_target"))
    if define is None:
        return None
    config = blob(instruction.fields, _CONFIG)
    operands = [computation.instructions[o].shape for o in instruction.operands]
    results = list(instruction.shape.leaves())
    return define(operands, results, config)


def _module(parameters: list[Shape], lines: list[str], results: list[tuple[Shape, str]]) -> str:
    head = [f"  p{k} = {shape} parameter({k})" for k, shape in enumerate(parameters)]
    kinds = ", ".join(str(shape) for shape, _ in results)
    values = ", ".join(name for _, name in results)
    last = f"  ROOT result = ({kinds}) tuple({values})"
    return "\n".join(["HloModule definition", "ENTRY definition {", *head, *lines, last, "}"])


def _zeros(name: str, shape: Shape) -> list[str]:
    return [
        f"  {name}.zero = {shape.element}[] constant(0)",
        f"  {name} = {shape} broadcast({name}.zero), dimensions={{}}",
    ]


def threefry(operands: list[Shape], results: list[Shape], config: bytes) -> str | None:
    """Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011)."""
    if len(operands) != 4 or len(results) != 2 or any(shape.element != "u32" for shape in operands):
        return None
    kind = str(operands[0])
    lines = ["  k0 = u32[] constant(466688986)", f"  parity = {kind} broadcast(k0), dimensions={{}}"]
    lines += [f"  x01 = {kind} xor(p0, p1)", f"  p.last = {kind} xor(x01, parity)"]
    keys = ["p0", "p1", "p.last"]
    lines += [f"  a0 = {kind} add(p2, p0)", f"  b0 = {kind} add(p3, p1)"]
    a, b = "a0", "b0"
    for group in range(5):
        for place, rotation in enumerate(_ROTATIONS[group % 2]):
            tag = f"{group}.{place}"
            lines += [
                f"  s{tag} = {kind} add({a}, {b})",
                f"  c{tag} = u32[] constant({rotation})",
                f"  l{tag} = {kind} broadcast(c{tag}), dimensions={{}}",
                f"  d{tag} = u32[] constant({32 - rotation})",
                f"  r{tag} = {kind} broadcast(d{tag}), dimensions={{}}",
                f"  left{tag} = {kind} shift-left({b}, l{tag})",
                f"  right{tag} = {kind} shift-right-logical({b}, r{tag})",
                f"  both{tag} = {kind} or(left{tag}, right{tag})",
                f"  x{tag} = {kind} xor(both{tag}, s{tag})",
            ]
            a, b = f"s{tag}", f"x{tag}"
        lines += [
            f"  a.{group} = {kind} add({a}, {keys[(group + 1) % 3]})",
            f"  n{group} = u32[] constant({group + 1})",
            f"  m{group} = {kind} broadcast(n{group}), dimensions={{}}",
            f"  b.mid{group} = {kind} add({b}, {keys[(group + 2) % 3]})",
            f"  b.{group} = {kind} add(b.mid{group}, m{group})",
        ]
        a, b = f"a.{group}", f"b.{group}"
    return _module(operands, lines, [(results[0], a), (results[1], b)])


def triangular_solve(operands: list[Shape], results: list[Shape], config: bytes) -> str | None:
    """``cublas_trsm_batched``: type, batch, m, n, side, fill mode, transposition and diagonal."""
    if len(config) != 32 or len(operands) != 2 or not results:
        return None
    _, _, _, _, side, fill, transposed, diagonal = struct.unpack("<8i", config)
    form = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
    if not 0 <= transposed < 3:
        return None
    flags = f"left_side={_word(side == 0)}, lower={_word(fill == 0)}, unit_diagonal={_word(diagonal == 1)}"
    lines = [f"  x = {operands[1]} triangular-solve(p0, p1), {flags}, transpose_a={form[transposed]}"]
    return _with_scratch(operands, lines, [(operands[1], "x")], results)


def cholesky(operands: list[Shape], results: list[Shape], config: bytes) -> str | None:
    """``cusolver_potrf``: the factor in one triangle, the input in the other; the status is 0."""
    if len(config) < 8 or len(operands) != 1 or len(results) < 2:
        return None
    lower = struct.unpack_from("<i", config, 4)[0] == 0
    shape = operands[0]
    rank = len(shape.sizes)
    mask = Shape("pred", shape.sizes)
    whole = Shape("s32", shape.sizes)
    lines = [
        f"  factor = {shape} cholesky(p0), lower={_word(lower)}",
        f"  row = {whole} iota(), iota_dimension={rank - 2}",
        f"  column = {whole} iota(), iota_dimension={rank - 1}",
        f"  inside = {mask} compare(row, column), direction={'GE' if lower else 'LE'}",
        f"  x = {shape} select(inside, factor, p0)",
    ]
    return _with_scratch(operands, lines, [(shape, "x")], results)


def packed_qr(operands: list[Shape], results: list[Shape], config: bytes) -> str | None:
    """``cusolver_geqrf``: reflectors and their factors, as XLA's own ``Qr`` gives them."""
    if len(operands) != 1 or len(results) < 3:
        return None
    lines = [
        f'  qr = ({operands[0]}, {results[1]}) custom-call(p0), custom_call_target="Qr"',
        f"  x = {operands[0]} get-tuple-element(qr), index=0",
        f"  taus = {results[1]} get-tuple-element(qr), index=1",
    ]
    return _with_scratch(operands, lines, [(operands[0], "x"), (results[1], "taus")], results)


def householder_product(operands: list[Shape], results: list[Shape], config: bytes) -> str | None:
    """``cusolver_orgqr``: the product of reflectors."""
    if len(operands) != 2 or len(results) < 2:
        return None
    target = "ProductOfElementaryHouseholderReflectors"
    lines = [f'  x = {operands[0]} custom-call(p0, p1), custom_call_target="{target}"']
    return _with_scratch(operands, lines, [(operands[0], "x")], results)


def _word(value: bool) -> str:
    return "true" if value else "false"


def _with_scratch(operands: list[Shape], lines: list[str], found: list[tuple[Shape, str]], results: list[Shape]) -> str:
    """The module with zeros for status codes and scratch buffers."""
    more = list(found)
    for place in range(len(found), len(results)):
        lines += _zeros(f"scratch{place}", results[place])
        more.append((results[place], f"scratch{place}"))
    return _module(operands, lines, more)


_DEFINITIONS: Mapping[str, Callable[[list[Shape], list[Shape], bytes], str | None]] = {
    "cuda_threefry2x32": threefry,
    "cublas_trsm_batched": triangular_solve,
    "cusolver_potrf": cholesky,
    "cusolver_geqrf": packed_qr,
    "cusolver_orgqr": householder_product,
}
