"""The JSON form: exact round trips, strict JSON, and one-line errors for everything that is no graph."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.json_form import decode, encode, from_json, to_json
from rewright.ir.text import print_graph
from rewright.ir.types import DType, TensorType
from rewright.ops import REGISTRY
from rewright.ops.files import load_graph, parse, save_graph

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.txt"))


def through_json(graph: Graph) -> Graph:
    return from_json(json.loads(json.dumps(to_json(graph), allow_nan=False)), REGISTRY)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_round_trip_of_programs(path: Path) -> None:
    graph = parse(path.read_text())
    again = through_json(graph)
    assert print_graph(again) == print_graph(graph)
    assert list(again.inputs.items()) == list(graph.inputs.items())
    assert again.metadata == graph.metadata


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(),
        st.sampled_from(DType),
        st.builds(TensorType, st.lists(st.integers(0, 9)).map(tuple), st.sampled_from(DType)),
    ),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
)


@given(VALUES)
def test_every_attribute_value_survives(value: object) -> None:
    again = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert again == value
    assert type(again) is type(value)


def test_not_a_number_survives() -> None:
    again = decode(json.loads(json.dumps(encode(math.nan), allow_nan=False)))
    assert isinstance(again, float)
    assert math.isnan(again)


@given(st.lists(st.floats(), min_size=1, max_size=6))
def test_constants_survive_in_text_too(values: list[float]) -> None:
    builder = GraphBuilder()
    builder.output("c", builder.add(ops.Constant(TensorType((len(values),), DType.F64), tuple(values))))
    graph = builder.build()
    for again in (through_json(graph), parse(print_graph(graph))):
        constant = again.nodes[0].op
        assert isinstance(constant, ops.Constant)
        assert [float(v).hex() for v in constant.values] == [float(v).hex() for v in values]


def data() -> dict[str, Any]:
    """A small valid file to spoil."""
    builder = GraphBuilder("g")
    x = builder.input("x", ops.Input("x", TensorType((2, 3), DType.F32)))
    builder.output("y", builder.add(ops.Reduce("sum", (1,)), x))
    return json.loads(json.dumps(to_json(builder.build())))


SPOILED: dict[str, tuple[list[Any], Any, str]] = {
    "format": (["format"], "aten", 'expected "format": "rewright.graph"'),
    "version": (["version"], 99, "version 99 of the graph format is not known"),
    "nodes missing": (["nodes"], None, "nodes must be a list and is null"),
    "node too short": (["nodes", 1], ["reduce"], "node 1 must have 5 entries"),
    "operator number": (["nodes", 1, 0], 3, "operator of node 1 must be a string and is 3"),
    "operator unknown": (["nodes", 1, 0], "einsum", "node 1: there is no operator 'einsum'"),
    "operand later": (["nodes", 1, 1], [1], "operand %1 is not an earlier node"),
    "operand negative": (["nodes", 1, 1], [-1], "operand %-1 is not an earlier node"),
    "operand true": (["nodes", 1, 1], [True], "operand of node 1 must be an integer and is true"),
    "type unknown": (["nodes", 1, 2], 7, "node 1 refers to type 7"),
    "type wrong": (["nodes", 1, 2], 0, "the node says 2x3xf32 and the operator gives 2xf32"),
    "type text": (["types", 0], "2x3xreal", "'2x3xreal' is no tensor type"),
    "attribute missing": (["nodes", 1, 4], {"kind": "sum"}, "node 1: reduce needs attribute 'dimensions'"),
    "attribute kind": (["nodes", 1, 4, "kind"], "mean", "must be one of sum, maximum"),
    "attribute object": (["nodes", 1, 4, "dimensions"], {"py/object": "os.system"}, "is no attribute value"),
    "attribute float": (["nodes", 1, 4, "dimensions"], [{"float": "one"}], "is no attribute value"),
    "span short": (["spans"], [["f.py", 3]], r"spans\[0\] must have 6 entries and has 2"),
    "output unknown": (["outputs"], [["y", 9]], "'y' names node %9, but the graph has 2 nodes"),
    "output twice": (["outputs"], [["y", 1], ["y", 1]], "outputs name 'y' twice"),
    "metadata": (["metadata"], {"a": 1}, "metadata 'a' must be a string and is 1"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_bad_files_are_refused_in_one_line(name: str) -> None:
    place, value, message = SPOILED[name]
    spoiled = copy.deepcopy(data())
    target: Any = spoiled
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    with pytest.raises(RewrightError, match=message) as caught:
        from_json(spoiled, REGISTRY)
    assert "\n" not in str(caught.value)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(sorted(data())), inner, max_size=9),
        max_leaves=12,
    )
)
def test_any_json_is_a_graph_or_refused(value: object) -> None:
    with pytest.raises(RewrightError):
        from_json(value, REGISTRY)


@pytest.mark.parametrize("extension", [".rwt", ".json", ".json.gz"])
def test_files_by_extension(tmp_path: Path, extension: str) -> None:
    graph = from_json(data(), REGISTRY)
    path = tmp_path / f"model{extension}"
    save_graph(graph, path)
    assert load_graph(path) == graph
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_saving_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    graph = from_json(data(), REGISTRY)
    for name in ("a.json.gz", "b.json.gz"):
        save_graph(graph, tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def refused(path: Path, contents: bytes | None = None) -> str:
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(RewrightError) as caught:
        load_graph(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "missing.json")
    assert "has no known extension" in refused(tmp_path / "model.pickle", b"")
    assert "this is no JSON" in refused(tmp_path / "cut.json", b'{"format": ')
    assert "it is not UTF-8 text" in refused(tmp_path / "binary.rwt", b"\xff\xfe\x00")
    assert "cannot read" in refused(tmp_path / "plain.json.gz", b"{}")
    assert "cannot read" in refused(tmp_path / "cut.json.gz", b"\x1f\x8b\x08\x00")
    assert "this is no JSON" in refused(tmp_path / "deep.json", b"[" * 100_000)
    assert "broken.rwt: line 1:" in refused(tmp_path / "broken.rwt", b"graf")


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(RewrightError, match="cannot write"):
        save_graph(from_json(data(), REGISTRY), tmp_path / "missing" / "model.json")
