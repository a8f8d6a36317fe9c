"""StableHLO in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rewright.frontends.files import load
from rewright.interp.program import run
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph

jax = pytest.importorskip("jax")


def test_stablehlo_text_is_a_program(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    lowered = jax.jit(lambda x: jax.numpy.maximum(x @ x.T, 4)).lower(x)
    (tmp_path / "f.mlir").write_text(str(lowered.compiler_ir("stablehlo")))
    graph = load(tmp_path / "f.mlir")
    assert isinstance(graph, Graph)
    (name,) = graph.inputs
    (value,) = run(graph, {name: x}).values()
    np.testing.assert_allclose(value, np.maximum(x @ x.T, 4))


def test_what_is_no_stablehlo_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "f.stablehlo").write_text("module {")
    with pytest.raises(RewrightError, match="no StableHLO module") as error:
        load(tmp_path / "f.stablehlo")
    assert "\n" not in str(error.value)
