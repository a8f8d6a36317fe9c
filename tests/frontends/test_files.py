"""Programs in files come back equal, and what is no program is refused with one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rewright
from rewright import ops
from rewright.frontends.rwt.files import text_form
from rewright.ir.dims import symbol
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, SourceSpan, TensorType


def sum_over_ranks() -> Graph:
    """``y = all_reduce(x)`` over two ranks, with a symbolic size."""
    builder = GraphBuilder("sum")
    x = builder.input("x", ops.Input("x", TensorType((symbol("b"), 4), DType.F32)))
    y = builder.add(ops.AllReduce("sum", ((0, 1),)), x, span=SourceSpan("model.py", 3))
    builder.output("y", y)
    return builder.build()


def two_ranks() -> RankProgram:
    mesh = Mesh.of({"tp": 2})
    shape = (symbol("b"), 4)
    outputs = {"y": place(shape, mesh, ["Replicate()"])}
    inputs = {"x": place(shape, mesh, ["Partial(sum)"]), "w": place((3, 4), mesh, ["Shard(0)"])}
    return RankProgram((sum_over_ranks(), sum_over_ranks()), mesh, inputs, outputs, ("a note",))


@pytest.mark.parametrize("name", ["g.json", "g.json.gz", "g.rwt"])
def test_a_graph_comes_back_equal(tmp_path: Path, name: str) -> None:
    rewright.save(sum_over_ranks(), tmp_path / name)
    assert rewright.load(tmp_path / name) == sum_over_ranks()


@pytest.mark.parametrize("name", ["r.json", "r.json.gz"])
def test_rank_programs_come_back_equal(tmp_path: Path, name: str) -> None:
    rewright.save(two_ranks(), tmp_path / name)
    assert rewright.load(tmp_path / name) == two_ranks()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_rank_programs_have_no_text_file_but_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(RewrightError, match=r"save them as \.json"):
        rewright.save(two_ranks(), tmp_path / "r.rwt")
    assert list(tmp_path.iterdir()) == []
    text = text_form(two_ranks())
    assert text.startswith('// mesh tp=2\n// input x: Partial("sum")\n// input w: Shard(0)\n// output y: Replicate()\n')
    assert text.count("all_reduce") == 2


def test_graphs_of_ranks_become_a_program() -> None:
    program = rewright.ranks([sum_over_ranks(), sum_over_ranks()], mesh={"tp": 2})
    assert program.mesh.size == 2
    assert program.inputs == {}
    with pytest.raises(RewrightError, match=r"1 rank graphs for a mesh tp=2 of 2 ranks; give one graph per rank"):
        rewright.ranks([sum_over_ranks()], mesh={"tp": 2})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2 of rank programs is not known"),
        ({"mesh": [["tp", 4]]}, "2 graphs for a mesh of 4 ranks"),
        ({"mesh": None}, "malformed"),
        ({"inputs": {"x": {}}}, "malformed"),
        (
            {"inputs": {"x": {"runs": [[]], "printed": [], "partial": [], "reduction": "sum"}}},
            "of 1 ranks on a mesh of 2",
        ),
        ({"graphs": [1, 2]}, "must be an object"),
        ({"format": "other"}, "this is no graph"),
    ],
)
def test_malformed_files_are_refused_with_their_name(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "ranks.json"
    rewright.save(two_ranks(), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RewrightError, match=message) as caught:
        rewright.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
