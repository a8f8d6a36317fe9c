"""HLO modules as text and as protocol buffers: what they compute, over how many devices, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rewright import ops
from rewright.frontends.files import load
from rewright.frontends.hlo.devices import iota_groups
from rewright.frontends.hlo.layouts import row_major
from rewright.frontends.hlo.proto import write
from rewright.frontends.hlo.text import parse
from rewright.frontends.hlo.writing import Writer
from rewright.interp.program import run
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import RankProgram
from rewright.ir.types import DType, TensorType
from rewright.ir.unknowns import unknowns
from rewright.refine import refine
from tests.frontends.hlo.modules import REGION, llama, read_proto, read_text, relations

RANDOM = np.random.default_rng(0)


def module(body: str, header: str = "") -> str:
    return f"HloModule m{header}\n{REGION}\nENTRY main {{\n{body}\n}}\n"


def computed(text: str, **inputs: np.ndarray) -> list[np.ndarray]:
    graph = read_text(text)
    assert isinstance(graph, Graph)
    return list(run(graph, inputs).values())


def devices(text: str, count: int | None = None) -> RankProgram:
    program = read_text(text, count)
    assert isinstance(program, RankProgram)
    return program


@pytest.mark.parametrize(("degree", "layers"), [(2, 1), (4, 1), (2, 3)])
def test_a_partitioned_model_is_proved_from_text_and_from_bytes(tmp_path: Path, degree: int, layers: int) -> None:
    for name, count in (("s", 1), ("d", degree)):
        (tmp_path / f"{name}.hlo").write_text(llama(count, layers))
        (tmp_path / f"{name}.pb").write_bytes(write(parse(llama(count, layers))))
    for form in ("hlo", "pb"):
        sequential, distributed = load(tmp_path / f"s.{form}"), load(tmp_path / f"d.{form}")
        assert isinstance(sequential, Graph)
        assert isinstance(distributed, RankProgram)
        verdict = refine(sequential, distributed, relations=relations(degree, layers))
        assert verdict.status == "proved", verdict.reason
        assert [r.placement for r in verdict.relation.values()] == ["Shard(0)", "Shard(1)"]


def test_a_missing_reduction_is_found() -> None:
    sequential = read_text(llama())
    assert isinstance(sequential, Graph)
    verdict = refine(sequential, devices(llama(2, broken=True), 2), relations=relations(2, 1))
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind == "missing_reduction"


def test_bytes_and_text_are_one_program() -> None:
    assert read_proto(write(parse(llama(2)))) == read_text(llama(2))


def test_slices_pads_and_products() -> None:
    x, y = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(4, 2))
    text = module("""
      x = f32[3,4]{1,0} parameter(0), metadata={op_name="x" source_file="model.py" source_line=7}
      y = f32[4,2]{1,0} parameter(1)
      s = f32[2,4] slice(f32[3,4]{1,0} %x), slice={[0:3:2], [0:4]}
      z = f32[] constant(1)
      p = f32[2,6] pad(s, z), padding=0_0x1_1
      t = f32[6,2] transpose(p), dimensions={1,0}
      d = f32[3,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT r = (f32[6,2], /*index=1*/f32[3,2]) tuple(t, d)
    """)
    first, second = computed(text, x=x, y=y)
    np.testing.assert_allclose(first, np.pad(x[::2], ((0, 0), (1, 1)), constant_values=1).T)
    np.testing.assert_allclose(second, x @ y)


def test_calls_fusions_and_loops_of_known_length_are_written_out() -> None:
    text = f"""HloModule m
{REGION}
body {{
  state = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  v = f32[2] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[2] add(v, v)
  ROOT both = (s32[], f32[2]) tuple(next, twice)
}}
condition {{
  before = (s32[], f32[2]) parameter(0)
  at = s32[] get-tuple-element(before), index=0
  limit = s32[] constant(5)
  ROOT goes_on = pred[] compare(at, limit), direction=LT
}}
fused {{
  a = f32[2] parameter(0)
  ROOT n = f32[2] negate(a)
}}
ENTRY main {{
  x = f32[2] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[2]) tuple(zero, x)
  w = (s32[], f32[2]) while(start), condition=condition, body=body
  out = f32[2] get-tuple-element(w), index=1
  ROOT f = f32[2] fusion(out), kind=kLoop, calls=fused
}}
"""
    np.testing.assert_allclose(computed(text, x=np.array([1.0, 3.0]))[0], [-32.0, -96.0])


def test_convolution_in_the_layout_that_is_named() -> None:
    x, kernel = RANDOM.normal(size=(1, 5, 2)), RANDOM.normal(size=(3, 2, 4))
    text = module("""
      x = f32[1,5,2] parameter(0)
      k = f32[3,2,4] parameter(1)
      ROOT c = f32[1,5,4] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
    """)
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    expected = sum(padded[:, k : k + 5] @ kernel[k] for k in range(3))
    np.testing.assert_allclose(computed(text, x=x, k=kernel)[0], expected)


def test_elided_constants_are_unknown() -> None:
    graph = read_text(module("  x = f32[8] constant({...})\n  ROOT r = f32[8] negate(x)"))
    assert isinstance(graph, Graph)
    assert list(unknowns(graph)) == ["x"]


@pytest.mark.parametrize(
    ("attributes", "header", "expected"),
    [
        ("replica_groups={{0,2},{1,3}}", ", replica_count=4", ((0, 2), (1, 3), (0, 2), (1, 3))),
        ("replica_groups={}", ", replica_count=2", ((0, 1), (0, 1))),
        (
            "channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true",
            ", num_partitions=4",
            ((0, 2), (1, 3), (0, 2), (1, 3)),
        ),
        ("channel_id=1, replica_groups={{0}}", ", num_partitions=2", ((0, 1), (0, 1))),
        (
            "channel_id=1, replica_groups={{0,1}}",
            ", replica_count=2, num_partitions=2",
            ((0, 1, 2, 3),) * 4,
        ),
        ("replica_groups={{0,1}}", ", replica_count=2, num_partitions=2", ((0, 2), (1, 3), (0, 2), (1, 3))),
    ],
)
def test_who_takes_part(attributes: str, header: str, expected: tuple[tuple[int, ...], ...]) -> None:
    text = module(
        f"  x = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(x), {attributes}, to_apply=region_sum", header
    )
    found = [node.op for graph in devices(text).graphs for node in graph.nodes if isinstance(node.op, ops.AllReduce)]
    assert found == [ops.AllReduce("sum", (group,)) for group in expected]


def test_a_device_knows_its_number() -> None:
    program = devices(module("  p = u32[] partition-id()\n  ROOT r = s32[] convert(p)", ", num_partitions=3"))
    assert [int(run(graph, {})["output"]) for graph in program.graphs] == [0, 1, 2]


def test_groups_in_short_form() -> None:
    assert iota_groups((2, 3), (3, 2), (1, 0)) == ((0, 2, 4), (1, 3, 5))
    with pytest.raises(RewrightError, match="do not fit"):
        iota_groups((2, 3), (4, 2), (1, 0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "does not start with HloModule"),
        ("HloModule m\n", "has no computation"),
        ("HloModule m\nENTRY main {\n  x = f32[2] parameter(0)\n", "line 2: a computation is not closed"),
        (module("  ROOT r = f32[2] negate(y)"), "reads 'y', which does not exist"),
        (module("  x = f32[2] parameter(1)\n  ROOT r = f32[2] negate(x)"), "not numbered from 0"),
        (module("  a = f32[2] negate(b)\n  ROOT b = f32[2] negate(a)"), "in a circle"),
        (module("  x = c64[2] parameter(0)\n  ROOT r = c64[2] negate(x)"), "tensors of c64 are not supported"),
        (module("  x = f32[<=2] parameter(0)\n  ROOT r = f32[2] negate(x)"), "compile with fixed sizes"),
        (module("  x = f32[2] parameter(0)\n  ROOT r = f32[3] negate(x)"), "the module says 3xf32"),
        (module("  x = f32[2] parameter(0)\n  ROOT r = f32[2] cholesky(x)"), "instruction r cholesky"),
        (module('  x = f32[2] parameter(0)\n  ROOT r = f32[2] custom-call(x), custom_call_target="recv"'), "no def"),
        (module("  x = f32[2] parameter(0)\n  ROOT r = f32[2] call(x), to_apply=nowhere"), "no computation 'nowhere'"),
        (module("  x = f32[2] parameter(0)\n  ROOT r = f32[2] call(x), to_apply=main"), "called in a circle"),
    ],
)  # fmt: skip
def test_a_module_that_is_wrong_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(RewrightError, match=said) as caught:
        read_text(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cut", [0, 1, 5, 40, 200, -1])
def test_bytes_that_are_wrong_are_refused_in_one_line(cut: int) -> None:
    with pytest.raises(RewrightError) as caught:
        read_proto(write(parse(llama()))[:cut])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("f32[2,3]{1,0}", "f32[3,2]{1,0}", lambda x: x.reshape(3, 2)),
        ("f32[2,3]{0,1}", "f32[3,2]{1,0}", lambda x: x.T),
        ("f32[2,3]{1,0}", "f32[3,2]{0,1}", lambda x: x.T),
        ("f32[2,3,4]{1,0,2}", "f32[24]{0}", lambda x: x.transpose(2, 0, 1).reshape(24)),
        ("f32[2,3,4]{2,0,1}", "f32[4,2,3]{0,1,2}", lambda x: x.transpose(1, 0, 2).reshape(3, 2, 4).transpose(2, 1, 0)),
        ("f32[2,1,3]{1,2,0}", "f32[6]{0}", lambda x: x.reshape(6)),
    ],
)
def test_a_bitcast_reads_the_memory_by_another_layout(source: str, target: str, expected) -> None:
    sizes = tuple(int(size) for size in source[4 : source.index("]")].split(","))
    x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    text = module(f"  p = {source.split('{')[0]} parameter(0)\n  c = {source} copy(p)\n  ROOT r = {target} bitcast(c)")
    assert np.array_equal(computed(text, p=x)[0], expected(x))


def test_a_bitcast_of_tiles_is_refused() -> None:
    with pytest.raises(RewrightError, match="tiles"):
        read_text(module("  p = f32[2,3]{1,0:T(8,128)} parameter(0)\n  ROOT r = f32[6]{0} bitcast(p)"))


@pytest.mark.parametrize("layout", [(), (1, 0), (0, 1)])
def test_the_bytes_of_a_literal_lie_by_its_layout(layout: tuple[int, ...]) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    lying = values.T.reshape(-1) if layout == (0, 1) else values.reshape(-1)
    assert row_major(lying.tolist(), (2, 3), layout) == tuple(values.reshape(-1).tolist())


@pytest.mark.parametrize(("start", "expected"), [(-1, 6 & 14), (1, 6 & 14 & 1), (4, 6 & 14 & 4)])
def test_a_conjunction_of_bits_starts_with_what_the_module_says(start: int, expected: int) -> None:
    """All bits are what changes nothing, and not the number one."""
    text = (
        "HloModule m\nfold {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT c = s32[] and(a, b)\n}\n"
        f"ENTRY main {{\n  x = s32[2] parameter(0)\n  one = s32[] constant({start})\n"
        "  ROOT r = s32[] reduce(x, one), dimensions={0}, to_apply=fold\n}\n"
    )
    (found,) = computed(text, x=np.array([6, 14], np.int32))
    assert found == expected


def test_what_is_written_is_read_again_as_it_was() -> None:
    b = GraphBuilder("m")
    x = b.input("x", ops.Input("x", TensorType((2, 3), DType.I32)))
    flags = b.add(ops.Compare("LT"), x, b.add(ops.Constant(TensorType((2, 3), DType.I32), (2,))))
    bits = b.add(ops.Reduce("and", (1,)), x)
    b.output("all", b.add(ops.Reduce("and", (0, 1)), flags))
    b.output("bits", b.add(ops.Slice((1,), (2,), (1,)), b.add(ops.Reverse((0,)), bits)))
    graph = b.build()
    writer = Writer()
    places = writer.graph(graph, {"x": writer.add(TensorType((2, 3), DType.I32), "parameter", ["0"])})
    text = writer.text("m", places, ["pred[]", "s32[1]"])
    value = np.array([[6, 14, 7], [1, 1, 1]], np.int32)
    again = read_text(text)
    assert isinstance(again, Graph)
    found = run(again, {again.nodes[next(iter(again.inputs.values()))].op.label: value})
    for one, other in zip(found.values(), run(graph, {"x": value}).values(), strict=True):
        assert np.array_equal(one, other)
