"""The two forms of a module say the same, to us and to XLA: its parser of text against ours, its proto against ours."""

from __future__ import annotations

import pytest
from jaxlib import _hlo, xla_client

from rewright.frontends.hlo.attributes import ATTRIBUTES, Window, read_attribute, write_attributes
from rewright.frontends.hlo.module import Instruction, Module
from rewright.frontends.hlo.proto import read, write
from rewright.frontends.hlo.reading import lower
from rewright.frontends.hlo.shapes import ELEMENTS, Shape, read_literal, read_shape, write_literal, write_shape
from rewright.frontends.hlo.sharding import Sharding
from rewright.frontends.hlo.text import parse
from rewright.ir.placement import RankProgram
from tests.env.modules import DTYPES, LOOP, RATES

WINDOWS = """HloModule windows, num_partitions=2
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main_spmd {
  x = f32[2,8,8,3]{3,2,1,0} parameter(0), sharding={devices=[2,1,1,1]<=[2]}
  k = f32[3,3,3,4]{3,2,1,0} parameter(1)
  i = s32[2,1]{1,0} parameter(2)
  conv = f32[2,4,4,4]{3,2,1,0} convolution(x, k), window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_01io->b01f
  zero = f32[] constant(0)
  pooled = f32[2,2,2,4]{3,2,1,0} reduce-window(conv, zero), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=sum
  table = f32[5,4]{1,0} constant({{1,2,3,4},{5,6,7,8},{9,-1,0.5,inf},{0,0,0,0},{1,1,1,1}})
  rows = f32[2,4]{1,0} gather(table, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,4}
  put = f32[5,4]{1,0} scatter(table, i, rows), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  cut = f32[2,2]{1,0} slice(put), slice={[1:3], [0:4:2]}
  wide = f32[4,5]{1,0} pad(cut, zero), padding=1_1x0_2_1
  both = f32[4,5]{1,0} all-reduce(wide), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=sum
  sent = f32[4,5]{1,0} collective-permute(both), source_target_pairs={{0,1},{1,0}}, channel_id=2
  ROOT out = (f32[2,2,2,4]{3,2,1,0}, f32[4,5]{1,0}) tuple(pooled, sent)
}
"""


def by_xla(text: str) -> tuple[str, Module]:
    """A text as XLA prints it, and the module as XLA's parser reads it."""
    module = _hlo.hlo_module_from_text(text)
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return module.to_string(options), read(module.as_serialized_hlo_module_proto())


def said(i: Instruction) -> dict[str, object]:
    """All that an instruction says, defaults aside."""
    own = {name: i.attribute(name) for name in ATTRIBUTES}
    plain = {"feature_group_count": 1, "batch_group_count": 1}
    told = {name: value for name, value in own.items() if value and plain.get(name) != value and name != "type"}
    shape = (i.shape.element, i.shape.sizes, i.shape.parts and len(i.shape.parts))
    return told | {"shape": shape, "literal": i.literal, "operands": i.operands, "called": i.called}


@pytest.mark.parametrize("text", [WINDOWS, LOOP, RATES, DTYPES], ids=["windows", "loop", "rates", "dtypes"])
def test_text_is_read_as_xla_reads_it(text: str) -> None:
    printed, theirs = by_xla(text)
    ours = parse(printed)
    assert ours.entry == theirs.entry
    for name, computation in theirs.computations.items():
        own = ours.computations[name]
        assert own.root == computation.root
        assert {i.name: said(i) for i in own.in_order} == {i.name: said(i) for i in computation.in_order}


def test_a_module_lowers_alike_from_both_forms() -> None:
    printed, _ = by_xla(WINDOWS)
    found = lower(parse(printed))
    assert isinstance(found, RankProgram)
    assert found == lower(read(write(parse(printed))))


def test_what_is_written_of_a_text_is_a_module_to_xla() -> None:
    ours = parse(by_xla(LOOP)[0])
    again = parse(xla_client.XlaComputation(write(ours)).as_hlo_text())
    assert [said(i) for i in again.main.in_order] == [said(i) for i in ours.main.in_order]


VALUES = {
    "dimensions": (2, 0),
    "window": (Window(3, 2, 1, 0, 1, 1, 0), Window(1, 1, -1, 4, 2, 3, 1)),
    "slice": ((1, 5, 2),),
    "padding": ((-1, 2, 0), (0, 0, 1)),
    "dim_labels": ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)),
    "lhs_batch_dims": (0,),
    "rhs_contracting_dims": (1, 2),
    "scatter_index_vector_dim": 1,
    "replica_groups": ((0, 2), (1, 3)),
    "source_target_pairs": ((0, 1), (1, 0)),
    "sharding": Sharding("tuple", parts=(Sharding("replicated"), Sharding("tiled", (2, 2), (0, 1, 2, 3), ("manual",)))),
    "custom_call_target": "Sharding",
    "is_stable": True,
}


def test_attributes_are_read_as_they_were_written() -> None:
    fields = write_attributes(VALUES)
    assert {name: read_attribute(fields, name) for name in VALUES} == VALUES
    assert read_attribute(fields, "lhs_contracting_dims") is None
    assert read_attribute(fields, "offset_dims") is None


@pytest.mark.parametrize("element", [name for name, own in ELEMENTS.items() if own.field])
def test_values_are_read_as_they_were_written(element: str) -> None:
    shape = Shape(element, (2, 2), (0, 1))
    values = (0, 1, 1, 0) if element == "pred" else (0, 1, 100, 3)
    assert read_literal(write_literal(values, shape), shape) == values
    assert read_shape(write_shape(shape)) == shape


@pytest.mark.parametrize(
    ("element", "value", "held"),
    [("bf16", 1.00390625, 1.0), ("bf16", 3.4e38, float("inf")), ("f16", 0.1, 0.0999755859375), ("s8", -3, -3)],
)
def test_numbers_are_rounded_to_their_type(element: str, value: float, held: float) -> None:
    assert read_literal(write_literal([value], Shape(element)), Shape(element)) == (held,)
