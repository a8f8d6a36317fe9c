"""Statements on tiles as Triton: tiles in registers, products on the matrix units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rewright.ir.types import DType
from rewright.optimize.printing.language import Language, bare
from rewright.optimize.printing.statements import Assign, Do, Function, If, Let, Loop, Statement, Store
from rewright.optimize.printing.triton.functions import LANGUAGE

CONSTANTS = ("BM", "BN", "UPCAST", "DESCRIPTORS", "AHEAD", "SPECIALISED")
"""What is fixed when a kernel is compiled: rows and lanes of a tile, whether operands are widened (in the interpreter),
whether tiles are read through tensor descriptors, how many steps ahead of their use all loads are, and whether the
compiler gives loads and products warps of their own."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How tiles are written: the language of scalars, the module that has its functions, and its loops."""

    language: Language
    module: str
    pipelined: str = "range({0})"
    """A loop whose loads may be started before a step is done."""


TRITON = Dialect(LANGUAGE, "tl", "tl.range({0}, num_stages=AHEAD, warp_specialize=SPECIALISED)")


def render(function: Function) -> str:
    """The jitted function: one program for each block of rows of each index of the grid."""
    arguments = [f"t{a.tensor}" for a in function.arguments] + [f"{name}: tl.constexpr" for name in CONSTANTS]
    lines = ["@triton.jit", f"def {function.name}({', '.join(arguments)}):", *block_lines(function, TRITON)]
    return "\n".join([*lines, *statement_lines(function.body, TRITON, 1)]) + "\n"


def block_lines(function: Function, dialect: Dialect) -> Iterator[str]:
    """The lines that say what the tensors are, and which block of rows of which index of the grid this is."""
    yield from (f"    # t{a.tensor}: {a.title}" for a in function.arguments)
    program = f"{dialect.module}.program_id(0)"
    program += f".to({dialect.module}.int64)" if function.index is DType.I64 else ""
    yield f"    blocks = ({function.rows} + BM - 1) // BM"
    yield f"    rest = {program} // blocks"
    for loop in reversed(function.grid):
        yield f"    {loop.name} = rest % {loop.size}"
        yield f"    rest = rest // {loop.size}"
    place = f"(blocks - 1 - {program} % blocks)" if function.is_reversed else f"{program} % blocks"
    yield f"    first = {place} * BM" + ("  # the longest first" if function.is_reversed else "")


def statement_lines(statements: Iterable[Statement], dialect: Dialect, depth: int) -> Iterator[str]:
    """The lines of statements at a depth of blocks."""
    for s in statements:
        note = getattr(s, "note", "")
        lines = list(_lines(s, dialect, depth))
        lines[0] += f"  # {note}" if note else ""
        yield from lines


def _lines(s: Statement, dialect: Dialect, depth: int) -> Iterator[str]:
    indent, of = "    " * depth, dialect.language.text
    match s:
        case Let():
            yield f"{indent}{s.name} = {of(s.value)}"
        case Assign():
            yield f"{indent}{of(s.target)} = {of(s.value)}"
        case Do():
            yield f"{indent}{of(s.value)}"
        case Store():
            guard = "None" if s.guard is None else of(s.guard)
            yield f"{indent}{dialect.module}.store(t{s.tensor} + {of(s.place)}, {of(s.value)}, mask={guard})"
        case Loop():
            limits = f"{of(s.start)}, {bare(of(s.stop))}, {bare(of(s.step))}"
            yield f"{indent}for {s.index} in {(dialect.pipelined if s.is_piped else 'range({0})').format(limits)}:"
            yield from statement_lines(s.body, dialect, depth + 1)
        case If():
            yield f"{indent}if {bare(of(s.condition))}:"
            yield from statement_lines(s.then, dialect, depth + 1)
            if s.otherwise:
                yield f"{indent}else:"
                yield from statement_lines(s.otherwise, dialect, depth + 1)
        case _:
            raise dialect.language.missing(f"the statement {type(s).__name__}")
