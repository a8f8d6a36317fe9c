"""Calls in graphs that others captured are run by PyTorch beside what they are lowered to."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewright.frontends.aten import tables
from rewright.frontends.graph_json import reading
from rewright.frontends.graph_json.reading import read_alone, read_ranks
from rewright.frontends.torch.validation import calls
from rewright.frontends.validation.record import validation_of
from rewright.frontends.validation.store import Store
from rewright.ir.errors import CaptureError
from rewright.ir.graph import Graph
from tests.frontends.graph_json.captures import LONG, Capture


def checked_calls(graph: Graph) -> list[str]:
    record = validation_of(graph)
    assert record is not None
    assert record.program == "it is a graph in a file"
    return list(record.calls)


def test_every_distinct_call_is_run() -> None:
    """Sizes are shrunk as those of a capture; a device that is not here is replaced, and dtypes are read."""
    c = Capture()
    x = c.input("x", [640, 512])
    y = c.call("aten.mm.default", x, c.call("aten.t.default", x, shape=[512, 640]), shape=[640, 640])
    to = {"dtype": {"dtype": "int64"}, "device": {"device": "cuda:3"}, "layout": "torch.strided"}
    z = c.node("call_function", "aten._to_copy.default", [y], to, [640, 640], LONG)
    again = c.call("aten.mm.default", x, c.call("aten.t.default", x, shape=[512, 640]), shape=[640, 640])
    names = [call.partition("(")[0] for call in checked_calls(read_alone(c.document([z, again])))]
    assert names == ["aten.t.default", "aten.mm.default", "aten._to_copy.default"]


def test_results_of_several_are_told_apart() -> None:
    c = Capture()
    call = c.call("aten.max.dim", c.input("x", [3, 4]), 1)
    found = checked_calls(read_alone(c.document([c.part(call, 0, [3]), c.part(call, 1, [3], LONG)])))
    assert found == ["aten.max.dim(f32[3, 4]#0, 1) -> [0, 1]"]


def test_a_call_that_pytorch_computes_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(calls, "open_store", lambda framework: Store(tmp_path / "validated.txt", framework))
    monkeypatch.setitem(tables.PURE, "aten.exp.default", tables.PURE["aten.sin.default"])
    c = Capture()
    data = c.document([c.call("aten.exp.default", c.input("x", [2, 3]), shape=[2, 3])])
    with pytest.raises(CaptureError, match=r"operator aten\.exp\.default at model\.py:1: the capture is not the prog"):
        read_alone(data)
    assert validation_of(read_alone(data, validate=False)) is None


def test_what_cannot_be_run_is_named() -> None:
    c = Capture()
    x = c.input("x", [{"sym": "s0"}, 3])
    record = validation_of(read_alone(c.document([c.call("aten.neg.default", x, shape=[{"sym": "s0"}, 3])])))
    assert record is not None
    assert not record.calls
    assert "aten.neg.default" in [name for name, _ in record.skipped]


def test_a_file_makes_pytorch_run_no_operator_that_is_not_lowered(tmp_path: Path) -> None:
    """``from_file`` makes a file of the size that it is told."""
    c, path = Capture(), tmp_path / "made"
    call = c.node("call_function", "aten.from_file.default", [str(path), True, 4], {}, [4], "float32")
    graph = read_alone(c.document([call]))
    assert checked_calls(graph) == []
    assert not path.exists()


def test_a_call_with_huge_results_is_not_run() -> None:
    c = Capture()
    call = c.node("call_function", "aten.full.default", [[1 << 40], 1.0], {}, [2], "float32")
    record = validation_of(read_alone(c.document([call])))
    assert record is not None
    assert [name for name, _ in record.skipped] == ["aten.full.default"]
    assert "too large" in record.skipped[0][1]


def test_ranks_have_one_record() -> None:
    documents = []
    for rank in range(2):
        c = Capture(rank=rank)
        documents.append(c.document([c.call("aten.exp.default", c.input("x", [2]), shape=[2])]))
    records = {graph.metadata["validation"] for graph in read_ranks(documents).graphs}
    assert len(records) == 1


def test_without_pytorch_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="torch")

    monkeypatch.setattr(reading, "import_module", missing)
    c = Capture()
    record = validation_of(read_alone(c.document([c.call("aten.exp.default", c.input("x", [2]), shape=[2])])))
    assert str(record) == "the capture was not checked: the package torch is not installed"
