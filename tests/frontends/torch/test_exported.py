"""Exported programs, files of them, and graph modules are captured like modules."""

from pathlib import Path

import pytest
import torch
import torch.fx
from torch import nn

from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.trace import trace
from rewright.interp.ranks import run
from rewright.ir.errors import CaptureError


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": torch.tanh(self.linear(x)) * scale}  # the only line


X, SCALE = torch.randn(4, 3, dtype=torch.float64), torch.randn(2, dtype=torch.float64)


@pytest.fixture
def model() -> Model:
    return Model().double()


def check(graph: object, model: Model) -> None:
    values = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    found = run(graph, {**values, "x": X.numpy(), "scale": SCALE.numpy()}).outputs  # pyright: ignore[reportArgumentType]
    assert abs(found["logits"] - model(X, scale=SCALE)["logits"].detach().numpy()).max() < 1e-12


def test_an_exported_program(model: Model) -> None:
    exported = torch.export.export(model, (X,), {"scale": SCALE})
    check(capture(exported, (X,), {"scale": SCALE}), model)
    check(capture(exported), model)


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # PyTorch 2.11 reads its own file so
def test_a_file(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model, (X,), {"scale": SCALE}), path)
    check(capture(path), model)


def test_source_lines_survive_the_export(model: Model) -> None:
    exported = torch.export.export(model, (X,), {"scale": SCALE})
    program = trace(exported).program
    (node,) = [n for n in program.module.graph.nodes if "tanh" in str(n.target)]
    lines = Path(__file__).read_text().splitlines()
    assert program.spans(node).line == next(i for i, line in enumerate(lines, 1) if line.endswith("# the only line"))


def test_a_symbolic_batch_survives_the_export(model: Model) -> None:
    dims = {"x": {0: torch.export.Dim("rows")}, "scale": None}
    graph = capture(torch.export.export(model, (X,), {"scale": SCALE}, dynamic_shapes=dims))
    (size,) = {str(s) for s in graph.nodes[graph.outputs["logits"]].type.shape} - {"2"}
    assert not size.isdigit()


def test_a_graph_module() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).double()
    graph = capture(torch.fx.symbolic_trace(model), (X,))
    values = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    found = run(graph, {**values, "input": X.numpy()}).outputs["output"]
    assert abs(found - model(X).detach().numpy()).max() < 1e-12


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_text("no")
    with pytest.raises(CaptureError, match=r"model\.pt2 cannot be read"):
        capture(path)


def test_a_file_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"no file nowhere\.pt2"):
        capture("nowhere.pt2")


def test_arguments_of_another_structure_are_refused(model: Model) -> None:
    exported = torch.export.export(model, (X,), {"scale": SCALE})
    with pytest.raises(CaptureError, match="structure"):
        capture(exported, (X, SCALE))
