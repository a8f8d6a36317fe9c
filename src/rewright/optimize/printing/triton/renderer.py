"""Statements on tiles as Triton: tiles in registers, products on the matrix units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewright.ir.types import DType
from rewright.optimize.printing.language import bare
from rewright.optimize.printing.statements import Assign, Function, If, Let, Loop, Statement, Store
from rewright.optimize.printing.triton.functions import LANGUAGE

CONSTANTS = ("BM", "BN", "UPCAST", "DESCRIPTORS", "AHEAD")
"""What is fixed when a kernel is compiled: rows and lanes of a tile, whether operands are widened (in the interpreter),
whether tiles are read through tensor descriptors, and how many steps ahead of their use all loads are."""


def render(function: Function) -> str:
    """The jitted function: one program for each block of rows of each index of the grid."""
    arguments = [f"t{a.tensor}" for a in function.arguments] + [f"{name}: tl.constexpr" for name in CONSTANTS]
    program = "tl.program_id(0)" + (".to(tl.int64)" if function.index is DType.I64 else "")
    lines = [
        "@triton.jit",
        f"def {function.name}({', '.join(arguments)}):",
        *(f"    # t{a.tensor}: {a.title}" for a in function.arguments),
        f"    blocks = ({function.rows} + BM - 1) // BM",
        f"    rest = {program} // blocks",
    ]
    for loop in reversed(function.grid):
        lines += [f"    {loop.name} = rest % {loop.size}", f"    rest = rest // {loop.size}"]
    block = f"(blocks - 1 - {program} % blocks)" if function.is_reversed else f"{program} % blocks"
    lines.append(f"    first = {block} * BM" + ("  # the longest first" if function.is_reversed else ""))
    return "\n".join([*lines, *_render(function.body, 1)]) + "\n"


def _render(statements: Iterable[Statement], depth: int) -> Iterator[str]:
    """The lines of statements at a depth of blocks."""
    for s in statements:
        note = getattr(s, "note", "")
        lines = list(_lines(s, depth))
        lines[0] += f"  # {note}" if note else ""
        yield from lines


def _lines(s: Statement, depth: int) -> Iterator[str]:
    indent, of = "    " * depth, LANGUAGE.text
    match s:
        case Let():
            yield f"{indent}{s.name} = {of(s.value)}"
        case Assign():
            yield f"{indent}{of(s.target)} = {of(s.value)}"
        case Store():
            guard = "None" if s.guard is None else of(s.guard)
            yield f"{indent}tl.store(t{s.tensor} + {of(s.place)}, {of(s.value)}, mask={guard})"
        case Loop():
            limits = f"{of(s.start)}, {bare(of(s.stop))}, {bare(of(s.step))}"
            call = f"tl.range({limits}, num_stages=AHEAD)" if s.is_piped else f"range({limits})"
            yield f"{indent}for {s.index} in {call}:"
            yield from _render(s.body, depth + 1)
        case If():
            yield f"{indent}if {bare(of(s.condition))}:"
            yield from _render(s.then, depth + 1)
            if s.otherwise:
                yield f"{indent}else:"
                yield from _render(s.otherwise, depth + 1)
        case _:
            raise LANGUAGE.missing(f"the statement {type(s).__name__}")
