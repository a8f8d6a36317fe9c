"""Every notebook of the documentation runs from top to bottom, and prints what is stored in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def printed(cell: dict[str, Any]) -> tuple[str, list[str]]:
    """What a cell prints, in however many pieces, and which kinds of pictures it shows."""
    text, kinds = "", list[str]()
    for output in cell.get("outputs", []):
        assert output["output_type"] != "error", output
        if output["output_type"] == "stream":
            text += "".join(output["text"])
        else:
            kinds += sorted(kind for kind in output["data"] if kind != "text/plain")
    return text, kinds


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[str(path.relative_to(ROOT)) for path in NOTEBOOKS])
def test_a_notebook_prints_what_is_stored(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra rewright[dev]")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    for cell in fresh.cells:
        cell.pop("outputs", None)
        if cell["cell_type"] == "code":
            cell["outputs"] = []
    client = nbclient.NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    for old, new in zip(stored.cells, fresh.cells, strict=True):
        assert printed(old) == printed(new), old["source"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[str(path.relative_to(ROOT)) for path in NOTEBOOKS])
def test_a_notebook_names_no_machine(path: Path) -> None:
    text = path.read_text()
    assert "/home/" not in text
    assert "/tmp/" not in text
    assert json.loads(text)["metadata"]["kernelspec"]["name"] == "python3"


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
