"""Every node knows the user's line and the module path, backward nodes too."""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from rewright import ops
from rewright.frontends.torch.ranks import capture_ranks
from rewright.frontends.torch.trace import trace
from rewright.ir.types import SourceSpan


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))  # inner


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Inner(), Inner()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return torch.exp(x).sum()  # outer


def line(marker: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    (number,) = [i for i, text in enumerate(lines, 1) if text.endswith(f"# {marker}")]
    return number


def spans(operator: str) -> list[SourceSpan]:
    program = trace(Outer(), (torch.ones(2, 3),), backward=True).program
    nodes = [n for n in program.module.graph.nodes if str(n.target).startswith(f"aten.{operator}.")]
    return [program.spans(node) for node in nodes]


def test_forward_nodes_have_line_function_and_module() -> None:
    first, second = spans("tanh")
    assert (first.line, first.function, first.module_path) == (line("inner"), "forward", "layers.0")
    assert second.module_path == "layers.1"
    assert Path(first.file).name == "test_spans.py"


def test_nodes_inside_a_library_module_have_the_line_that_calls_it() -> None:
    assert {(s.line, s.module_path) for s in spans("addmm")} == {
        (line("inner"), "layers.0.linear"),
        (line("inner"), "layers.1.linear"),
    }


def test_the_root_module_has_an_empty_path() -> None:
    (span,) = spans("exp")
    assert (span.line, span.module_path) == (line("outer"), "")


def test_backward_nodes_have_the_place_of_their_forward_operation() -> None:
    found = spans("tanh_backward")
    assert [s.module_path for s in found] == ["layers.1", "layers.0"]
    assert all(s.backward and s.line == line("inner") for s in found)
    assert str(found[0]) == f"test_spans.py:{line('inner')} (backward)"


def test_weight_gradients_have_the_module_of_their_layer() -> None:
    backward = [s for s in spans("mm") if s.backward]
    assert {s.module_path for s in backward} == {"layers.0.linear", "layers.1.linear"}


def test_the_backward_of_an_autograd_function_has_its_own_line() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: object, *gradients: torch.Tensor) -> torch.Tensor:
            return gradients[0].cos()  # own backward

    program = trace(lambda x: Double.apply(x).sum(), (torch.ones(3, requires_grad=True),), backward=True).program
    (node,) = [n for n in program.module.graph.nodes if "cos" in str(n.target)]
    span = program.spans(node)
    assert span.backward
    assert span.line == line("own backward")


def test_a_module_without_user_code_has_its_path() -> None:
    program = trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), (torch.ones(1, 2),)).program
    (node,) = [n for n in program.module.graph.nodes if "relu" in str(n.target)]
    assert program.spans(node) == SourceSpan(module_path="1")


def deprecated(x: torch.Tensor) -> torch.Tensor:
    part = torch.zeros(1)
    dist._reduce_scatter_base(part, x)  # deprecated
    return part


def test_collectives_behind_a_deprecation_have_the_line_that_calls_them() -> None:
    program = capture_ranks(lambda _: (deprecated, (torch.zeros(2),)), {"x": 2})
    (node,) = [node for node in program.graphs[0].nodes if isinstance(node.op, ops.ReduceScatter)]
    assert node.span is not None
    assert (Path(node.span.file).name, node.span.line) == ("test_spans.py", line("deprecated"))
