"""What the recorder notes is what PyTorch's own tracer notes."""

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

import rewright as rw
from rewright.frontends.torch.lower import lower
from rewright.frontends.torch.recorder import Recorder
from rewright.interp.program import run
from rewright.ir.errors import CaptureError
from tests.frontends.torch.lower.executing import program as named

WEIGHT = torch.randn(4, 3)


def loss(x):
    given = x.detach().requires_grad_()
    ((given @ WEIGHT).tanh() ** 2).sum().backward()
    return given.grad


def second_derivative(x):
    given = x.detach().requires_grad_()
    (first,) = torch.autograd.grad((given**3).sum(), given, create_graph=True)
    return torch.autograd.grad(first.sum(), given)[0]


def in_place(x):
    copy = x.clone()
    copy[1:] = x[:1]
    return copy.add_(1)


def several(x):
    values, places = x.topk(2)
    first, second = x.split(1)
    return values + places + (first + second)[:, :2]


def without_autograd(x):
    with torch.inference_mode():
        return nn.functional.silu(nn.functional.layer_norm(x, (4,)))


def again(x):
    given = x.detach().requires_grad_()
    checkpoint(lambda value: value.sin().exp(), given, use_reentrant=False).sum().backward()
    return given.grad


PROGRAMS = [loss, second_derivative, in_place, several, without_autograd, again]


def recorded(program, shape):
    """The program as the recorder notes it."""
    recorder, mode = Recorder({}), FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        value = torch.empty(shape)
    recorder.placeholder(value)
    with mode, recorder:
        return recorder.module([program(value)])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_is_what_pytorch_traces(program):
    theirs = make_fx(program, tracing_mode="fake", _allow_non_fake_inputs=True)(torch.randn(2, 4))
    assert lower(named(recorded(program, (2, 4)))).nodes == lower(named(theirs)).nodes


def test_only_the_tensor_itself_is_turned_in_place():
    def program(x):
        turned = x[:, None] * x
        view = turned[:]
        turned.t_()[0, 1] = 5
        turned.transpose_(0, 1).unsqueeze_(0)
        return view, turned

    x = torch.tensor([0.3, -1.2])
    found = run(rw.capture(program, (x,)), {"x": x.numpy()})
    for value, wanted in zip(found.values(), program(x), strict=True):
        np.testing.assert_allclose(value, wanted.numpy(), rtol=1e-6)


def given_other_memory(x):
    value = x * 1
    part, view = value[:], value.view(2)
    value.data = x + 5
    view.add_(1)
    return part * 1, value * 2


def given_a_part(x):
    both = torch.cat([x, x])
    value, whole = both[:2], both[:]
    value.data = both[1:3]
    value.mul_(3)
    return whole * 1, value * 1


@pytest.mark.parametrize("run_once", [False, True])
@pytest.mark.parametrize("program", [given_other_memory, given_a_part])
def test_data_gives_a_tensor_the_memory_of_another(program, run_once):
    x = torch.tensor([0.3, -1.2])
    graph = rw.capture(program, (x.clone(),), run=run_once, validate=False)
    for value, wanted in zip(run(graph, {"x": x.numpy()}).values(), program(x), strict=True):
        np.testing.assert_allclose(value, wanted.numpy(), rtol=1e-6)


def test_a_branch_on_a_value_is_named():
    def program(x):
        return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))

    with pytest.raises(CaptureError, match="reads a tensor's value"):
        rw.capture(program, (torch.ones(3),))


def test_a_write_to_a_constant_is_read():
    held = torch.tensor([1.0, 2.0, 3.0])

    def program(x):
        held.add_(x)
        return held * 2

    graph = rw.capture(program, (torch.ones(3),), validate=False)
    (result,) = run(graph, {"x": torch.ones(3).numpy()}).values()
    assert result.tolist() == [4.0, 6.0, 8.0]
    assert held.tolist() == [1.0, 2.0, 3.0]


def test_a_forward_derivative():
    def program(x):
        return torch.func.jvp(torch.sin, (x,), (x,))[1]

    x = torch.tensor([0.3, -1.2])
    (result,) = run(rw.capture(program, (x,)), {"x": x.numpy()}).values()
    np.testing.assert_allclose(result, (x * x.cos()).numpy(), rtol=1e-6)


def test_what_changes_the_size_of_its_result_is_named():
    def program(x):
        return torch.add(x, 1, out=torch.empty(0))

    with pytest.raises(CaptureError, match=r"aten.add.out at test_recorder.py:\d+ changes the size"):
        rw.capture(program, (torch.ones(3),))
