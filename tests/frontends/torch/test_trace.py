"""What a trace holds: names of inputs and outputs, gradients, and errors of one line."""

import collections
import functools
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.trace import trace
from rewright.interp.ranks import run
from rewright.ir.errors import CaptureError


class Tied(nn.Module):
    """An embedding whose weight is the output projection too."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.unused = nn.Linear(2, 2)
        self.register_buffer("scale", torch.full((4,), 2.0))

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        logits = self.head(self.embedding(tokens) * self.scale)
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


TOKENS = torch.tensor([1, 2, 3])


def test_inputs_are_parameters_buffers_and_arguments_and_outputs_are_keys() -> None:
    program = trace(Tied(), (TOKENS,)).program
    assert program.inputs == ("embedding.weight", "unused.weight", "unused.bias", "scale", "tokens")
    assert program.outputs == ("logits",)


def test_backward_names_gradients_and_notes_parameters_without_one() -> None:
    traced = trace(Tied(), (TOKENS,), {"labels": TOKENS}, backward=True)
    assert traced.program.outputs == ("loss", "logits", "grad:embedding.weight")
    assert traced.notes == ("no gradient reaches unused.weight, unused.bias",)


def test_gradients_are_those_of_pytorch() -> None:
    model = Tied().double()
    graph = capture(model, (TOKENS,), {"labels": TOKENS}, backward=True)
    model(TOKENS, TOKENS)["loss"].backward()
    values = {name: value.detach().numpy() for name, value in model.state_dict().items() if name in graph.inputs}
    found = run(graph, {**values, "tokens": TOKENS.numpy(), "labels": TOKENS.numpy()}).outputs
    expected = model.embedding.weight.grad
    assert expected is not None
    assert abs(found["grad:embedding.weight"] - expected.numpy()).max() < 1e-12


def test_tracing_leaves_the_module_as_it_was() -> None:
    model = Tied()
    before, weight = model.state_dict(), model.embedding.weight
    trace(model, (TOKENS,), {"labels": TOKENS}, backward=True)
    assert model.embedding.weight is weight is model.head.weight
    assert weight.grad is None
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_step_function_that_calls_backward_needs_no_flag() -> None:
    def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().sum()
        loss.backward()
        return loss

    program = trace(step, (nn.Linear(3, 2), torch.randn(4, 3))).program
    assert program.inputs == ("weight", "bias", "x")
    assert program.outputs == ("output", "grad:weight", "grad:bias")


def test_a_forward_that_keeps_tensors_leaves_none_behind() -> None:
    class Keeping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last: object = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = x * 2
            self.register_buffer("mask", x > 0, persistent=False)
            return self.last + 1

    model = Keeping()
    assert capture(model, (torch.ones(2),)) == capture(model, (torch.ones(2),))
    assert model.last is None
    assert not list(model.buffers())


def test_a_function_that_closes_over_a_module_has_its_parameters_as_inputs() -> None:
    model = nn.Linear(3, 2)
    assert trace(lambda x: model(x).tanh(), (torch.ones(1, 3),)).program.inputs == ("weight", "bias", "x")
    assert trace(model.forward, (torch.ones(1, 3),)).program.inputs == ("weight", "bias", "input")


def test_modules_in_containers_partial_functions_and_objects_are_found() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.model = nn.Linear(3, 2, bias=False)

        def step(self, x: torch.Tensor) -> torch.Tensor:
            return self.model(x)

    def apply(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return model(x)

    models = {"a": [nn.Linear(3, 2, bias=False)]}
    for program in (Trainer().step, functools.partial(apply, nn.Linear(3, 2, bias=False)), lambda x: models["a"][0](x)):
        assert trace(program, (torch.ones(1, 3),)).program.inputs == ("weight", "x")


def test_a_parameter_of_a_module_that_nobody_names_is_refused() -> None:
    model = nn.Linear(3, 2, bias=False)

    def inner(x: torch.Tensor) -> torch.Tensor:
        return model(x)

    assert "a parameter of a module that it does not name at test_trace.py" in refuse(lambda x: inner(x), torch.ones(3))


def test_a_compiled_module_is_captured_as_it_was_written() -> None:
    model = nn.Linear(3, 2)
    assert capture(torch.compile(model, backend="eager"), (torch.ones(1, 3),)) == capture(model, (torch.ones(1, 3),))


def test_recomputed_activations_are_part_of_the_program() -> None:
    model = nn.Linear(3, 3)

    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(lambda x: model(x).tanh(), x, use_reentrant=False).sum()

    targets = [str(n.target) for n in trace(loss, (model, torch.ones(2, 3)), backward=True).program.module.graph.nodes]
    assert sum("tanh.default" in target for target in targets) == 2


def test_two_modules_are_told_apart_by_argument_name() -> None:
    def both(left: nn.Module, right: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return left(x) + right(x)

    program = trace(both, (nn.Linear(3, 2), nn.Linear(3, 2), torch.randn(4, 3))).program
    assert program.inputs == ("left.weight", "left.bias", "right.weight", "right.bias", "x")


def test_arguments_that_require_a_gradient_get_one() -> None:
    x = torch.randn(3, requires_grad=True)
    program = trace(lambda x: (x * x).sum(), (x,), backward=True).program
    assert program.outputs == ("loss", "grad:x")


def test_nested_arguments_and_results_are_named_by_path() -> None:
    Pair = collections.namedtuple("Pair", "first second")

    def function(past: list[dict[str, torch.Tensor]], pair: Pair) -> tuple[torch.Tensor, list[torch.Tensor]]:
        return past[0]["k"] + pair.second, [pair.first]

    k, first, second = torch.ones(2), torch.ones(3), torch.ones(2)
    program = trace(function, ([{"k": k}], Pair(first, second))).program
    assert program.inputs == ("past.0.k", "pair.0", "pair.1")
    assert program.outputs == ("output.0", "output.1.0")


def test_a_buffer_that_the_program_overwrites_is_an_output() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen += x.sum()
            return x * 2

    graph = capture(Counter(), (torch.ones(2),))
    found = run(graph, {"seen": torch.tensor(1.0).numpy(), "x": torch.ones(2).numpy()}).outputs
    assert found["updated:seen"] == 3.0


def test_gradient_hooks_and_attributes_of_parameters_take_part() -> None:
    model = nn.Linear(2, 1, bias=False)
    model.weight.scale = 3.0

    def scale(parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        parameter.grad.mul_(parameter.scale)

    model.weight.register_post_accumulate_grad_hook(scale)
    x = torch.tensor([[1.0, 2.0]])
    graph = capture(lambda model, x: model(x).sum(), (model, x), backward=True)
    found = run(graph, {"weight": model.weight.detach().numpy(), "x": x.numpy()}).outputs
    assert found["grad:weight"].tolist() == [[3.0, 6.0]]


def test_real_fake_and_meta_modules_give_the_same_program() -> None:
    x = torch.randn(4, 3)
    with torch.device("meta"):
        meta = nn.Linear(3, 2)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        fake = nn.Linear(3, 2)
    assert capture(meta, (x,)) == capture(fake, (x,)) == capture(nn.Linear(3, 2), (x.to("meta"),))


def refuse(function: object, *args: object, **options: object) -> str:
    with pytest.raises(CaptureError) as caught:
        trace(function, args, **options)  # pyright: ignore[reportArgumentType]
    text = str(caught.value)
    assert "\n" not in text
    return text


def here(marker: str) -> str:
    """``file:line`` of the line of this file that ends with a marker comment."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if line.endswith(f"# {marker}")]
    return f"test_trace.py:{number}"


def test_control_flow_that_reads_values_is_refused_with_its_line() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:  # reads a value
            return x
        return -x

    text = refuse(function, torch.ones(2))
    assert here("reads a value") in text
    assert "torch.where" in text


def test_item_is_refused_with_its_line() -> None:
    text = refuse(lambda x: x if x.sum().item() > 0 else -x, torch.ones(2))  # item
    assert here("item") in text


def test_a_result_shape_that_depends_on_values_is_refused() -> None:
    assert "reads a tensor's value" in refuse(lambda x: x[x > 0], torch.ones(2))


def test_an_operator_without_meta_kernel_is_refused() -> None:
    library = torch.library.Library("rewright_test", "DEF")
    library.define("opaque(Tensor x) -> Tensor")
    library.impl("opaque", lambda x: x.clone(), "CPU")
    text = refuse(lambda x: torch.ops.rewright_test.opaque(x), torch.ones(2))
    assert "meta kernel" in text
    assert "rewright_test.opaque" in text


def test_a_closed_over_fake_tensor_is_refused() -> None:
    with torch._subclasses.FakeTensorMode():
        hidden = torch.randn(3)
    text = refuse(lambda x: x + hidden, torch.ones(3))
    assert "register it as a buffer" in text


def test_a_closed_over_real_tensor_is_a_constant() -> None:
    hidden = torch.tensor([1.0, 2.0, 3.0])
    graph = capture(lambda x: x + hidden, (torch.ones(3),))
    assert run(graph, {"x": torch.ones(3).numpy()}).outputs["output"].tolist() == [2.0, 3.0, 4.0]


def test_backward_without_a_scalar_is_refused() -> None:
    assert "scalar loss" in refuse(nn.Linear(2, 2), torch.ones(1, 2), backward=True)


def test_a_loss_without_parameters_is_refused() -> None:
    assert "requires a gradient" in refuse(lambda x: x.sum(), torch.ones(2), backward=True)


def test_a_program_without_tensors_is_refused() -> None:
    assert "in which there is no tensor" in refuse(lambda x: 3, torch.ones(2))


def test_what_is_no_program_is_refused() -> None:
    assert "3 is no program" in refuse(3)


def test_arguments_that_do_not_fit_are_refused() -> None:
    assert "do not fit" in refuse(nn.Linear(2, 2), torch.ones(2), torch.ones(2))


def test_an_error_in_the_model_is_one_line_with_its_place() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(5, 5)  # does not fit

    assert here("does not fit") in refuse(function, torch.ones(2, 3))
