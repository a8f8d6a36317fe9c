"""TTIR is read as Triton prints it: operations, attributes, regions, types and source lines."""

from __future__ import annotations

import pytest

from rewright.frontends.triton.text import Kind, all_operations, parse_module
from rewright.ir.errors import UnsupportedOperator

LOOP = """
#loc = loc("k.py":3:1)
#loc1 = loc("k.py":7:9)
#loc2 = loc("total"(#loc1))
#loc3 = loc(callsite(#loc1 at #loc2))
module {
  tt.func public @kernel(%x: !tt.ptr<f32> loc("x"(#loc)), %n: i32 loc("n"(#loc))) attributes {noinline = false} {
    %zero = arith.constant dense<0.000000e+00> : tensor<32x16xf32> loc(#loc)
    %c0 = arith.constant 0 : i32 loc(#loc)
    %c1 = arith.constant 1 : i32 loc(#loc)
    %o:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %p = %x) -> (tensor<32x16xf32>, !tt.ptr<f32>) : i32 {
      %t = tt.trans %a {order = array<i32: 1, 0>} : tensor<32x16xf32> -> tensor<16x32xf32> loc(#loc2)
      %s = "tt.reduce"(%a) <{axis = 1 : i32}> ({
      ^bb0(%l: f32 loc(#loc3), %r: f32 loc(#loc3)):
        %m = arith.maxnumf %l, %r : f32 loc(#loc3)
        tt.reduce.return %m : f32 loc(#loc3)
      }) : (tensor<32x16xf32>) -> tensor<32xf32> loc(#loc3)
      scf.yield %a, %p : tensor<32x16xf32>, !tt.ptr<f32> loc(#loc)
    } loc(#loc2)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
BRANCH = """
module {
  tt.func public @kernel(%c: i1) {
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    tt.return
  ^bb2:
    %0 = arith.constant 1 : i32
    tt.return
  }
}
"""


def test_a_loop_with_a_reduction() -> None:
    kernel = parse_module(LOOP).kernel
    loop = kernel.body.operations[3]

    assert kernel.body.arguments == (("%x", Kind("f32", (), is_pointer=True)), ("%n", Kind("i32")))
    assert loop.results == ("%o#0", "%o#1")
    assert loop.operands == ("%c0", "%n", "%c1", "%zero", "%x")
    assert [name for name, _ in loop.regions[0].arguments] == ["%i", "%a", "%p"]
    assert loop.given == (Kind("f32", (32, 16)), Kind("f32", (), is_pointer=True))
    transpose, reduction, _ = loop.regions[0].operations
    assert transpose.attributes == {"order": "array<i32:1,0>"}
    assert reduction.attributes == {"axis": "1"}
    assert [op.name for op in reduction.regions[0].operations] == ["arith.maxnumf", "tt.reduce.return"]


def test_lines_are_those_of_the_kernel_and_not_of_what_it_calls() -> None:
    loop = parse_module(LOOP).kernel.body.operations[3]

    assert (loop.location.line, loop.location.name) == (7, "total")
    assert loop.regions[0].operations[1].location.line == 7


def test_blocks_to_which_branches_lead() -> None:
    body = parse_module(BRANCH).kernel.body

    assert body.operations[0].words == ("^bb1", "^bb2")
    assert [(name, len(block.operations)) for name, block in body.others] == [("^bb1", 1), ("^bb2", 2)]
    assert len(list(all_operations(body))) == 4


@pytest.mark.parametrize("text", ["module { tt.func public @k() { %0 = arith.constant ` : i32 } }", "tt.func @k( {"])
def test_what_is_no_ttir_is_an_error_of_one_line(text: str) -> None:
    with pytest.raises(UnsupportedOperator) as error:
        parse_module(text)

    assert "\n" not in str(error.value)
