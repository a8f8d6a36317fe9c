"""Kernels in Triton's interpreter, in this process: values, and accesses outside of memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

pytest.importorskip("triton", reason="Triton is the extra [gpu]")

from triton.runtime.errors import InterpreterError

from rewright.frontends.triton.interpreting import OutOfBounds, interpreted
from rewright.frontends.triton.launches import intercepted, launch
from rewright.ir.errors import CaptureError
from tests.kernel import programs
from tests.kernel.references import REFERENCES


@pytest.mark.parametrize("name", ["add", "softmax", "sums", "rows"])
def test_values_in_the_interpreter(name: str) -> None:
    reference = REFERENCES[name]
    with interpreted():
        mine = getattr(programs, name)(*reference.args)

    torch.testing.assert_close(mine, reference.function(*reference.args))


def test_a_store_outside_of_memory_names_its_line_and_instance() -> None:
    with interpreted(), pytest.raises(InterpreterError, match="OutOfBounds") as error:
        programs.unmasked(*REFERENCES["add"].args)

    assert isinstance(error.value.__cause__, OutOfBounds)
    assert "writes outside" in str(error.value.__cause__) and "instance [2, 0, 0], lane [44]" in str(
        error.value.__cause__
    )


def test_kernels_compile_as_before_after_a_run() -> None:
    reference = REFERENCES["softmax"]
    with interpreted():
        programs.softmax(*reference.args)
    with intercepted(), torch.device("meta"):
        programs.softmax(torch.empty(4, 70))


def test_python_functions_compile_as_before_after_a_first_run() -> None:
    """``min`` of integers, of which the compiler keeps what it finds when it is first imported."""
    code = (
        "import torch\n"
        "from tests.kernel import programs\n"
        "from tests.kernel.references import REFERENCES\n"
        "from rewright.frontends.triton.interpreting import interpreted\n"
        "from rewright.frontends.triton.launches import intercepted\n"
        "with interpreted():\n"
        "    programs.add(*REFERENCES['add'].args)\n"
        "with intercepted(), torch.device('meta'):\n"
        "    programs.grouped(*(x.to('meta') for x in REFERENCES['grouped'].args))\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_memory_that_two_arguments_share_is_refused() -> None:
    x = torch.empty(4, device="meta").as_strided((3,), (1,))
    y = torch.empty(0, device="meta").set_(x.untyped_storage(), 1, (3,), (1,))
    arguments = "%x: !tt.ptr<f32>, %y: !tt.ptr<f32>"
    ttir = f"module {{ tt.func public @k({arguments}) {{\n tt.store %x, %y : !tt.ptr<f32>\n tt.return\n }} }}"
    with pytest.raises(CaptureError, match="share"):
        launch(ttir, {"x": x, "y": y}, frozenset(), (1,))
