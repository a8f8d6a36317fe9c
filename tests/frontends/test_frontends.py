"""Every front end passes the conformance kit, and none of their libraries is imported before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rewright
from rewright import ops
from rewright.frontends.frontend import Frontend
from rewright.frontends.registry import FRONTENDS, programs
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import building as rb
from tests.frontends.graph_json.captures import Capture
from tests.frontends.kit import Example, check

HLO = """HloModule example
ENTRY main {
  x = f32[3] parameter(0)
  two = f32[] constant(2)
  twos = f32[3] broadcast(two), dimensions={}
  one = f32[] constant(1)
  ones = f32[3] broadcast(one), dimensions={}
  doubled = f32[3] multiply(x, twos)
  ROOT y = f32[3] add(doubled, ones)
}
"""


def in_torch() -> tuple[object, list[object]]:
    import torch

    return lambda x: torch.add(x * 2, 1), [torch.zeros(3)]


def wrong_in_torch() -> tuple[object, list[object]]:
    import torch

    return lambda x: torch.add(x, torch.zeros(2)), [torch.zeros(3)]


def in_jax() -> tuple[object, list[object]]:
    import jax.numpy as jnp

    return lambda x: jnp.add(x * 2, 1), [jnp.zeros(3)]


def wrong_in_jax() -> tuple[object, list[object]]:
    import jax.numpy as jnp

    return lambda x: jnp.add(x, jnp.zeros(2)), [jnp.zeros(3)]


def in_graph_json(path: Path) -> None:
    capture = Capture()
    x = capture.input("x", [3])
    doubled = capture.call("aten.mul.Tensor", x, 2, shape=[3])
    path.write_text(json.dumps(capture.document([capture.call("aten.add.Tensor", doubled, 1, shape=[3])])))


def graph() -> Graph:
    builder = GraphBuilder("example")
    x = builder.input("x", ops.Input("x", TensorType((3,), DType.F32)))
    builder.output("y", rb.shift_by(builder, rb.scale_by(builder, x, 2.0), 1.0))
    return builder.build()


EXAMPLES = {
    "torch": Example(in_torch, wrong=wrong_in_torch),
    "jax": Example(in_jax, wrong=wrong_in_jax),
    "graph_json": Example(file=in_graph_json, name="example.json"),
    "rwt": Example(file=lambda path: rewright.save(graph(), path), name="example.rwt"),
    "hlo": Example(file=lambda path: path.write_text(HLO), name="example.hlo"),
}


@pytest.mark.parametrize("frontend", FRONTENDS, ids=lambda own: own.name)
def test_a_front_end_passes_the_kit(frontend: Frontend, tmp_path: Path) -> None:
    """A front end without an example fails."""
    assert check(frontend, EXAMPLES[frontend.name], tmp_path)


def test_knowing_of_front_ends_imports_no_library() -> None:
    packages = [package for own in programs().values() for package in own.packages]
    code = "import sys, rewright.frontends.registry; print([name for name in sys.argv[1:] if name in sys.modules])"
    command = [sys.executable, "-c", code, *packages, "numpy", "z3"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_what_no_front_end_reads_or_writes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RewrightError, match=r"ends in \.rwt, \.json, \.json\.gz, \.pb"):
        rewright.load(tmp_path / "program.onnx")
    with pytest.raises(RewrightError, match=r"ends in \.rwt, \.json, \.json\.gz$"):
        rewright.save(graph(), tmp_path / "program.hlo")
    with pytest.raises(RewrightError, match="are of torch or jax, and not of 'onnx'"):
        rewright.capture(print, (), framework="onnx")
