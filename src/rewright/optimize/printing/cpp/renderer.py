"""Statements of loops as C++ with OpenMP."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from rewright.optimize.printing.cpp.functions import ELEMENTS, language
from rewright.optimize.printing.cpp.runtime import HEADER
from rewright.optimize.printing.language import Language, bare
from rewright.optimize.printing.statements import (
    AddRows,
    Assign,
    BlockProduct,
    Buffer,
    Clear,
    Combine,
    Function,
    If,
    Leave,
    Let,
    Loop,
    Statement,
    Store,
    TurnRows,
    View,
)

_COMBINE = {
    "sum": "{0} += {1};",
    "product": "{0} *= {1};",
    "maximum": "{0} = {0} < {1} ? {1} : {0};",
    "minimum": "{0} = {0} > {1} ? {1} : {0};",
    "or": "{0} |= {1};",
    "and": "{0} &= {1};",
}
_CLAUSES = {"sum": "+", "product": "*", "maximum": "max", "minimum": "min", "or": "|", "and": "&"}


@dataclass(frozen=True)
class Source:
    """A printed kernel: its text, and the tensors that it takes, in order."""

    name: str
    text: str
    tensors: tuple[int, ...]
    written: frozenset[int]


def translation_unit(sources: Sequence[Source]) -> str:
    """All kernels of a plan in one file."""
    return HEADER + "\n" + "\n".join(s.text for s in sources)


def render(function: Function) -> Source:
    """A kernel as a C++ function, without the header: threads take chunks of row blocks of grid indices."""
    spoken = language(function.dtype)
    lines = [f'extern "C" void {function.name}(void** tensors, long threads) {{']
    for number, a in enumerate(function.arguments):
        kind = f"{'' if a.is_written else 'const '}{ELEMENTS[a.dtype]}*"
        what = "writes" if a.is_written else "reads"
        lines.append(f"  {kind} __restrict t{a.tensor} = ({kind})tensors[{number}];  // {what} {a.title}")
    grid, blocks = math.prod(loop.size for loop in function.grid), -(-function.rows // function.block)
    lines += [
        f"  const long blocks = {blocks}, wanted = (4 * threads + {grid - 1}) / {grid};",
        "  const long chunks = wanted < blocks ? wanted : blocks;",
        "  #pragma omp parallel num_threads(threads)",
        "  {",
        f"    Scratch scratch({sum(b.count * 8 + 64 for b in function.buffers)});",
        *_render(spoken, function.buffers, 2),
        "    #pragma omp for schedule(dynamic)",
        f"    for (long task = 0; task < {grid}L * chunks; ++task) {{",
        "      long rest = task / chunks;",
        *(f"      const long {g.name} = rest % {g.size}; rest /= {g.size};" for g in reversed(function.grid)),
        f"      const long from = (task % chunks) * blocks / chunks * {function.block};",
        f"      const long to = std::min<long>((task % chunks + 1) * blocks / chunks * {function.block}, "
        f"{function.rows});",
        *_render(spoken, function.prologue, 3),
        f"      for (long first = from; first < to; first += {function.block}) {{",
        *_render(spoken, function.body, 4),
        "      }",
        "    }",
        "  }",
        "}",
    ]
    written = frozenset(a.tensor for a in function.arguments if a.is_written)
    return Source(function.name, "\n".join(lines) + "\n", function.tensors, written)


def _render(spoken: Language, statements: Iterable[Statement], depth: int) -> Iterator[str]:
    """The lines of statements at a depth of blocks."""
    for s in statements:
        note = getattr(s, "note", "")
        lines = list(_lines(spoken, s, depth))
        lines[-1 if isinstance(s, Let | Assign | Leave) else 0] += f"  // {note}" if note else ""
        yield from lines


def _lines(spoken: Language, s: Statement, depth: int) -> Iterator[str]:
    indent, of, types = "  " * depth, spoken.text, spoken.types
    match s:
        case Let():
            yield f"{indent}{'' if s.changes else 'const '}{types[s.dtype]} {s.name} = {of(s.value)};"
        case Assign():
            yield f"{indent}{of(s.target)} = {of(s.value)};"
        case Combine():
            yield indent + _COMBINE[s.kind].format(of(s.target), of(s.value))
        case Store():
            yield f"{indent}put(t{s.tensor}[{bare(of(s.place))}], {of(s.value)});"
        case Loop():
            if s.reductions is not None:
                yield f"{indent}#pragma omp simd {_clauses(s.reductions)}".rstrip()
            step = f"++{s.index}" if of(s.step) == "1" else f"{s.index} += {of(s.step)}"
            yield f"{indent}for (long {s.index} = {of(s.start)}; {s.index} < {bare(of(s.stop))}; {step}) {{"
            yield from _render(spoken, s.body, depth + 1)
            yield indent + "}"
        case If():
            yield f"{indent}if ({bare(of(s.condition))}) {{"
            yield from _render(spoken, s.then, depth + 1)
            if s.otherwise:
                yield indent + "} else {"
                yield from _render(spoken, s.otherwise, depth + 1)
            yield indent + "}"
        case Leave():
            yield f"{indent}{s.way};"
        case Buffer():
            yield f"{indent}{types[s.dtype]}* __restrict {s.name} = scratch.take<{types[s.dtype]}>({s.count});"
        case View():
            yield f"{indent}{types[s.dtype]}* __restrict {s.name} = {s.buffer} + {of(s.start)};"
        case Clear():
            yield f"{indent}memset({s.buffer}, 0, {s.count} * sizeof({types[s.dtype]}));"
        case BlockProduct():
            operands = ", ".join(f"{name}, {stride}" for name, stride in (s.left, s.right, s.target))
            sizes = ", ".join((of(s.rows), str(s.columns), of(s.depth)))
            function = "tile_product_of_bfloats" if s.is_narrow else f"tile_product<{types[s.dtype]}>"
            yield f"{indent}{function}({sizes}, {operands}, {'true' if s.is_added else 'false'});"
        case AddRows():
            yield f"{indent}add_rows<{types[s.dtype]}>({of(s.rows)}, {s.columns}, {s.items}, {s.target});"
        case TurnRows():
            source = f"t{s.tensor} + {of(s.start)}, {s.stride}"
            target = f"{s.target}, {s.width}"
            yield f"{indent}turn_rows<{types[s.dtype]}>({of(s.rows)}, {s.depth}, {source}, {target});"
        case _:
            assert_never(s)


def _clauses(reductions: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"reduction({_CLAUSES[kind]}:{name})" for kind, name in reductions)
