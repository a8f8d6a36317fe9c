"""WGSL: the loops that C++ has too, as text that is well formed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import torch

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.printing.loops.context import Tiling
from rewright.optimize.printing.loops.kernel import lower, with_few_rows
from rewright.optimize.printing.statements import Name, call
from rewright.optimize.printing.wgsl.functions import FUNCTIONS, language
from rewright.optimize.printing.wgsl.renderer import render
from tests.optimize.programs import PROGRAMS, Program, normal

WORDS = frozenset(
    [
        "fn",
        "let",
        "var",
        "for",
        "if",
        "else",
        "continue",
        "break",
        "return",
        "true",
        "false",
        "array",
        "bitcast",
        "private",
        "storage",
        "read",
    ]
)
BUILTINS = frozenset(
    [
        "abs",
        "ceil",
        "cos",
        "exp",
        "exp2",
        "floor",
        "inverseSqrt",
        "log",
        "max",
        "min",
        "pow",
        "round",
        "select",
        "sign",
        "sin",
        "sqrt",
        "tanh",
    ]
)
TYPES = frozenset(["f32", "i32", "u32", "bool", "vec3", "read_write", "group", "x"])


def modules(program: Program) -> Iterator[str]:
    """The modules of all kernels of a program, without comments."""
    plan = Planner(prepare_graph(rw.capture(*program))).plan()
    few = with_few_rows(plan.kernels)
    for kernel in plan.kernels:
        found = lower(plan.graph, plan.table, kernel, Tiling(8, 16), reads_rows=kernel.name in few)
        yield re.sub("//.*", "", render(found))


def undeclared(text: str) -> set[str]:
    """The names that are used where no block around has declared them."""
    text = re.sub(r"@\w+(\([^()]*\))?", "", text)
    blocks, found = [WORDS | BUILTINS | TYPES | {*re.findall(r"fn (\w+)", text)}], set[str]()
    parameters = r"fn \w+\(([^()]*)\)"
    for piece in re.findall(rf"{parameters}|(?:let|var)(?:<[^>]*>)? (\w+)|([{{}}])|\b([a-z_]\w*)", text):
        given, declared, brace, used = piece
        if brace == "{":
            blocks.append(blocks[-1])
        elif brace == "}":
            blocks.pop()
        elif given or declared:
            blocks[-1] = blocks[-1] | {declared, *re.findall(r"(\w+):", given)}
        elif used and used not in blocks[-1]:
            found.add(used)
    assert len(blocks) == 1, "braces do not match"
    return found


@pytest.mark.parametrize("name", ["causal", "deviation", "residual_norm", "weights_entropy", "gated", "masked_mean"])
def test_every_name_is_declared_in_a_block_around_it(name: str) -> None:
    program, args = PROGRAMS[name]()
    for text in modules((program, tuple(a.float() for a in args))):
        assert undeclared(text) == set()
        assert text.count("(") == text.count(")")


def test_keys_and_values_of_few_queries_are_read_as_they_lie() -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v

    (text,) = modules((attend, (normal(2, 1, 16), normal(2, 40, 16), normal(2, 40, 16))))

    assert undeclared(text) == set()
    assert "packed" not in text
    assert re.findall(r"s \+= left\w*\[i \* 16 \+ p\] \* f32\(t1\[.*\+ 16 \* j \+ p\]\)", text)
    assert re.findall(r"s \+= weight\w*\[i \* 16 \+ p\] \* f32\(t2\[.*\+ 16 \* p \+ j\]\)", text)


def test_a_kernel_reads_bindings_and_writes_those_that_may_be_written() -> None:
    (text,) = modules((lambda x: torch.softmax(x, -1), (normal(3, 40),)))

    bindings = re.findall(r"@binding\((\d)\) var<storage, (\w+)> (t\d+): array<f32>;", text)
    assert [way for _, way, _ in bindings] == ["read", "read_write"]
    assert set(re.findall(r"(t\d+)\[[^]]*\] = ", text)) == {bindings[1][2]}
    assert re.findall(r"for \(var begin = 0; begin < 40; begin \+= 16\)", text)


@pytest.mark.parametrize(
    ("dtype", "reason"), [(torch.float16, "tensors of f16"), (torch.float64, "kernels that compute in f64")]
)
def test_what_wgsl_has_not_is_an_error(dtype: torch.dtype, reason: str) -> None:
    with pytest.raises(RewrightError, match=f"no WGSL for {reason}; use target='cpu'"):
        list(modules((torch.exp, (normal(3, 8, dtype=dtype),))))


def test_no_function_is_that_of_another_language() -> None:
    """What C++ and Python write alike, as ``a + b``, WGSL has too; a whole quotient they do not."""
    assert [name for name, text in FUNCTIONS.items() if "torch" in text or "std::" in text] == []
    with pytest.raises(RewrightError, match="no WGSL for the function divide_integer"):
        language("{}[{}]".format).text(call("divide_integer", Name("a"), Name("b")))
