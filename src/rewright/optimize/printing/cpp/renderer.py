"""Statements of loops as C++ with OpenMP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from rewright.ir.dims import Dim, product
from rewright.optimize.printing.cpp.functions import ELEMENTS, language
from rewright.optimize.printing.cpp.runtime import HEADER
from rewright.optimize.printing.language import Language, bare, size_text
from rewright.optimize.printing.statements import (
    AddRows,
    Assign,
    BlockProduct,
    Buffer,
    Clear,
    Combine,
    Do,
    Function,
    If,
    Leave,
    Let,
    Loop,
    ReadProduct,
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
    symbols: tuple[str, ...] = ()
    """The sizes that it is called with, as one more tensor."""
    guards: tuple[Dim, ...] = ()
    """What has to be at least zero of them."""


def translation_unit(sources: Sequence[Source]) -> str:
    """All kernels of a plan in one file; those that are the same but for names, as those of layers are, call one."""
    first: dict[str, str] = {}
    texts: list[str] = []
    for source in sources:
        name = first.setdefault(_without_names(source), source.name)
        call = f'extern "C" void {source.name}(void** tensors, long threads) {{ {name}(tensors, threads); }}\n'
        texts.append(source.text if name == source.name else call)
    return HEADER + "\n" + "\n".join(texts)


_COMMENT = re.compile(r"//.*")
_NUMBERED = re.compile(r"\b[A-Za-z_]+\d+\b(?!\s*\()")
"""Names that a kernel declares end in a number; with a parenthesis they are functions, which it does not declare."""
_SHARED = frozenset(re.findall(r"\b[A-Za-z_]\w*\b", HEADER))


def _without_names(source: Source) -> str:
    """The text of a kernel with its names numbered as they come, and without comments."""
    order: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        name = match.group()
        return name if name in _SHARED else order.setdefault(name, f"name{len(order)}")

    text = _COMMENT.sub("", source.text).replace(f"void {source.name}(", "void kernel(", 1)
    return _NUMBERED.sub(rename, text)


def render(function: Function) -> Source:
    """A kernel as a C++ function, without the header: threads take chunks of row blocks of grid indices."""
    spoken = language(function.dtype)
    lines = [f'extern "C" void {function.name}(void** tensors, long threads) {{']
    for number, a in enumerate(function.arguments):
        kind = f"{'' if a.is_written else 'const '}{ELEMENTS[a.dtype]}*"
        what = "writes" if a.is_written else "reads"
        lines.append(f"  {kind} __restrict t{a.tensor} = ({kind})tensors[{number}];  // {what} {a.title}")
    if function.symbols:
        lines.append(f"  const int64_t* sizes = (const int64_t*)tensors[{len(function.arguments)}];")
    lines += [f"  const long size_{name} = sizes[{number}];" for number, name in enumerate(function.symbols)]
    grid, rows = product(loop.size for loop in function.grid), size_text(function.rows)
    blocks = _blocks(function.rows, function.block)
    sizes = [(loop, size_text(loop.size)) for loop in function.grid]
    lines += [
        f"  const long grid = {size_text(grid)}, blocks = {blocks}, wanted = (4 * threads + grid - 1) / grid;",
        "  const long chunks = wanted < blocks ? wanted : blocks;",
        "  #pragma omp parallel num_threads(threads)",
        "  {",
        f"    Scratch scratch({size_text(_bytes(function.buffers))});",
        *_render(spoken, function.buffers, 2),
        "    #pragma omp for schedule(dynamic)",
        "    for (long task = 0; task < grid * chunks; ++task) {",
        "      long rest = task / chunks;",
        *(f"      const long {g.name} = rest % {n}; rest /= {n};" for g, n in reversed(sizes)),
        f"      const long from = (task % chunks) * blocks / chunks * {function.block};",
        f"      const long to = std::min<long>((task % chunks + 1) * blocks / chunks * {function.block}, {rows});",
        *_render(spoken, function.prologue, 3),
        f"      for (long first = from; first < to; first += {function.block}) {{",
        *_render(spoken, function.body, 4),
        "      }",
        "    }",
        "  }",
        "}",
    ]
    written = frozenset(a.tensor for a in function.arguments if a.is_written)
    text = "\n".join(lines) + "\n"
    return Source(function.name, text, function.tensors, written, function.symbols, function.guards)


def _blocks(rows: Dim, block: int) -> str:
    """How many blocks of rows there are."""
    return str(-(-rows // block)) if isinstance(rows, int) else f"({size_text(rows)} + {block - 1}) / {block}"


def _bytes(buffers: Iterable[Buffer]) -> Dim:
    """The bytes of a kernel's own memory at most."""
    total: Dim = 0
    for buffer in buffers:
        total = total + buffer.count * 8 + 64
    return total


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
            kind = types[s.dtype]
            yield f"{indent}{kind}* __restrict {s.name} = scratch.take<{kind}>({size_text(s.count)});"
        case View():
            yield f"{indent}{types[s.dtype]}* __restrict {s.name} = {s.buffer} + {of(s.start)};"
        case Clear():
            yield f"{indent}memset({s.buffer}, 0, {size_text(s.count)} * sizeof({types[s.dtype]}));"
        case BlockProduct():
            operands = ", ".join(f"{name}, {size_text(stride)}" for name, stride in (s.left, s.right, s.target))
            sizes = ", ".join((of(s.rows), str(s.columns), of(s.depth)))
            function = "tile_product_of_bfloats" if s.is_narrow else f"tile_product<{types[s.dtype]}>"
            yield f"{indent}{function}({sizes}, {operands}, {'true' if s.is_added else 'false'});"
        case ReadProduct():
            (left, first), (target, into) = s.left, s.target
            right = f"t{s.tensor} + {of(s.start)}, {size_text(s.stride)}"
            operands = f"{left}, {size_text(first)}, {right}, {target}, {size_text(into)}"
            narrow = "true" if s.is_narrow else "false"
            function = f"tile_product<{types[s.dtype]}>" if s.is_added else f"product_of_rows<{narrow}>"
            sizes = ", ".join(bare(of(size)) for size in (s.rows, s.columns, s.depth))
            yield f"{indent}{function}({sizes}, {operands}{', true' if s.is_added else ''});"
        case AddRows():
            yield f"{indent}add_rows<{types[s.dtype]}>({of(s.rows)}, {s.columns}, {s.items}, {s.target});"
        case TurnRows():
            source = f"t{s.tensor} + {of(s.start)}, {size_text(s.stride)}"
            target = f"{s.target}, {s.width}"
            yield f"{indent}turn_rows<{types[s.dtype]}>({of(s.rows)}, {size_text(s.depth)}, {source}, {target});"
        case Do():
            yield f"{indent}{of(s.value)};"
        case _:
            assert_never(s)


def _clauses(reductions: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"reduction({_CLAUSES[kind]}:{name})" for kind, name in reductions)
