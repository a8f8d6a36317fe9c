"""Statements of loops as WGSL: one invocation for each block of rows of each index of the grid; text only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewright.ir.types import DType
from rewright.optimize.printing.language import Language, bare
from rewright.optimize.printing.statements import (
    AddRows,
    Assign,
    BlockProduct,
    Clear,
    Combine,
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
from rewright.optimize.printing.wgsl.functions import ELEMENTS, HEADER, TYPES, language
from rewright.optimize.scalars.expressions import number_of

_COMBINED = {
    "sum": "{0} + {1}",
    "product": "{0} * {1}",
    "maximum": "max({0}, {1})",
    "minimum": "min({0}, {1})",
    "or": "{0} | {1}",
    "and": "{0} & {1}",
}

Views = dict[str, tuple[str, str]]
"""Names of parts of buffers: the buffer, and the variable that has the start."""


def render(function: Function) -> str:
    """A kernel as a module; raises RewrightError where a tensor or a function is none of WGSL."""
    views: Views = {}

    def element(buffer: str, place: str) -> str:
        name, start = views.get(buffer, (buffer, ""))
        return f"{name}[{start} + {place}]" if start else f"{name}[{place}]"

    spoken, lines = language(element), [HEADER]
    if function.dtype is not DType.F32:
        raise spoken.missing(f"kernels that compute in {function.dtype.value}")
    for number, a in enumerate(function.arguments):
        if a.dtype not in ELEMENTS:
            raise spoken.missing(f"tensors of {a.dtype.value}")
        access = "read_write" if a.is_written else "read"
        head = f"@group(0) @binding({number}) var<storage, {access}> t{a.tensor}"
        lines.append(f"{head}: array<{ELEMENTS[a.dtype]}>;  // {a.title}")
    lines += [f"var<private> {b.name}: array<{TYPES[b.dtype]}, {b.count}>;" for b in function.buffers]
    blocks = -(-number_of(function.rows) // function.block)
    lines += [
        "@compute @workgroup_size(1)",
        f"fn {function.name}(@builtin(workgroup_id) group: vec3<u32>) {{",
        f"  var rest = i32(group.x) / {blocks};",
        f"  let first = i32(group.x) % {blocks} * {function.block};",
    ]
    for loop in reversed(function.grid):
        lines += [f"  let {loop.name} = rest % {loop.size};", f"  rest = rest / {loop.size};"]
    body = _render(spoken, views, (*function.prologue, *function.body), 1)
    return "\n".join([*lines, *body, "}"]) + "\n"


def _render(
    spoken: Language, views: dict[str, tuple[str, str]], body: Iterable[Statement], depth: int
) -> Iterator[str]:
    """The lines of statements at a depth of blocks; ``views`` gets what they name."""
    indent, of, element = "  " * depth, spoken.text, spoken.element
    for s in body:
        match s:
            case Let():
                yield f"{indent}{'var' if s.changes else 'let'} {s.name}: {TYPES[s.dtype]} = {of(s.value)};"
            case Assign():
                yield f"{indent}{of(s.target)} = {of(s.value)};"
            case Combine():
                yield f"{indent}{of(s.target)} = {_COMBINED[s.kind].format(of(s.target), of(s.value))};"
            case Store():
                yield f"{indent}t{s.tensor}[{bare(of(s.place))}] = {of(s.value)};"
            case Loop():
                step = f"{s.index} += {of(s.step)}"
                yield f"{indent}for (var {s.index} = {of(s.start)}; {s.index} < {of(s.stop)}; {step}) {{"
                yield from _render(spoken, views, s.body, depth + 1)
                yield indent + "}"
            case If():
                yield f"{indent}if ({bare(of(s.condition))}) {{"
                yield from _render(spoken, views, s.then, depth + 1)
                yield from (indent + "} else {",) if s.otherwise else ()
                yield from _render(spoken, views, s.otherwise, depth + 1)
                yield indent + "}"
            case Leave():
                yield f"{indent}{s.way};"
            case View():
                views[s.name] = s.buffer, f"{s.name}_start"
                yield f"{indent}let {s.name}_start = {of(s.start)};"
            case Clear():
                zero = f"{element(s.buffer, 'z')} = {TYPES[s.dtype]}(0);"
                yield f"{indent}for (var z = 0; z < {s.count}; z++) {{ {zero} }}"
            case AddRows():
                yield f"{indent}for (var p = 0; p < {of(s.rows)}; p++) {{ for (var j = 0; j < {s.columns}; j++) {{"
                yield f"{indent}  {s.target}[j] += {element(s.items, f'p * {s.columns} + j')};"
                yield indent + "} }"
            case BlockProduct():
                (left, m), (right, n), (target, k) = s.left, s.right, s.target
                into = element(target, f"i * {k} + j")
                product = f"{element(left, f'i * {m} + p')} * {element(right, f'p * {n} + j')}"
                yield f"{indent}for (var i = 0; i < {of(s.rows)}; i++) {{ for (var j = 0; j < {s.columns}; j++) {{"
                yield f"{indent}  var s = {into if s.is_added else 'f32(0.0)'};"
                yield f"{indent}  for (var p = 0; p < {of(s.depth)}; p++) {{ s += {product}; }}"
                yield f"{indent}  {into} = s;"
                yield indent + "} }"
            case ReadProduct():
                (left, m), (target, k) = s.left, s.target
                into = element(target, f"i * {k} + j")
                place = f"{s.stride} * p + j" if s.is_added else f"{s.stride} * j + p"
                product = f"{element(left, f'i * {m} + p')} * f32(t{s.tensor}[{of(s.start)} + {place}])"
                yield f"{indent}for (var i = 0; i < {of(s.rows)}; i++) {{ for (var j = 0; j < {of(s.columns)}; j++) {{"
                yield f"{indent}  var s = {into if s.is_added else 'f32(0.0)'};"
                yield f"{indent}  for (var p = 0; p < {of(s.depth)}; p++) {{ s += {product}; }}"
                yield f"{indent}  {into} = s;"
                yield indent + "} }"
            case TurnRows():
                into = element(s.target, f"{s.width} * d + c")
                source = f"t{s.tensor}[{of(s.start)} + {s.stride} * c + d]"
                yield f"{indent}for (var c = 0; c < {of(s.rows)}; c++) {{ for (var d = 0; d < {s.depth}; d++) {{"
                yield f"{indent}  {into} = f32({source});"
                yield indent + "} }"
            case _:
                raise spoken.missing(f"the statement {type(s).__name__}")
