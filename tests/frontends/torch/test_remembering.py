"""What is remembered of an operator is what PyTorch finds anew."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from rewright.frontends.torch.recorder import Recorder
from rewright.frontends.torch.remembering import KnownResults

aten = torch.ops.aten
CALLS = {
    "add": lambda x: (aten.add.Tensor, (x, x)),
    "scaled": lambda x: (aten.add.Scalar, (x, 1)),
    "scaled by a float": lambda x: (aten.add.Scalar, (x, 1.0)),
    "view": lambda x: (aten.view.default, (x, [2, 12])),
    "turned": lambda x: (aten.transpose.int, (x, 0, 1)),
    "part": lambda x: (aten.slice.Tensor, (x, 1, 1, 3)),
    "parts": lambda x: (aten.split.Tensor, (x, 2, 1)),
    "best": lambda x: (aten.topk.default, (x, 2)),
    "joined": lambda x: (aten.cat.default, ([x, x], 1)),
    "normal": lambda x: (aten.native_layer_norm.default, (x, [3], None, None, 1e-5)),
    "cast": lambda x: (aten._to_copy.default, (x,)),
    "kept": lambda x: (aten.detach.default, (x,)),
    "reduced": lambda x: (aten.sum.dim_IntList, (x, [1])),
}
INPUTS = {
    "rows": lambda: torch.empty(2, 4, 3),
    "columns": lambda: torch.empty(2, 3, 4).transpose(1, 2),
    "a part": lambda: torch.empty(4, 4, 3)[1:3],
    "whole": lambda: torch.empty(2, 4, 3, dtype=torch.int64),
    "half": lambda: torch.empty(2, 4, 3, dtype=torch.bfloat16),
}


def leaves(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def described(result, x):
    """Everything that a program can see of a result but its values."""
    same = [leaf.untyped_storage()._cdata == x.untyped_storage()._cdata for leaf in leaves(result)]
    found = [
        (leaf.shape, leaf.stride(), leaf.dtype, leaf.device, leaf.storage_offset(), leaf.untyped_storage().nbytes())
        for leaf in leaves(result)
    ]
    return type(result), found, same


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_as_pytorch_finds_it(name, kind):
    if name == "normal" and kind == "whole":
        return  # PyTorch refuses it
    mode = FakeTensorMode()
    known = KnownResults(mode)
    with mode:
        values = [make() for make in INPUTS.values()] + [INPUTS[kind]()]
    for value in values:  # all kinds before, so that one is not taken for another
        func, args = CALLS[name](value)
        try:
            with mode:
                wanted = func(*args)
        except (RuntimeError, ValueError):
            continue
        with mode:
            found = [known.run(func, args, {}) for _ in range(3)]
        assert [described(result, value) for result in found] == [described(wanted, value)] * 3
        assert all(isinstance(leaf, FakeTensor) for result in found for leaf in leaves(result))


def test_results_are_tensors_of_their_own():
    mode = FakeTensorMode()
    with mode:
        x = torch.empty(3)
    known = KnownResults(mode)
    with mode:
        first, second, third = (known.run(aten.neg.default, (x,), {}) for _ in range(3))
    assert len({value.untyped_storage()._cdata for value in (first, second, third)}) == 3


def test_numbers_differ_by_their_type():
    mode = FakeTensorMode()
    with mode:
        x = torch.empty(3, dtype=torch.int64)
    known = KnownResults(mode)
    with mode:
        found = [known.run(aten.mul.Scalar, (x, by), {}).dtype for by in (1, 1, 1.0, 1.0, True, True)]
    assert found == [torch.int64, torch.int64, torch.float32, torch.float32, torch.int64, torch.int64]


def test_a_remembered_view_takes_part_in_gradients():
    mode = FakeTensorMode()
    with mode:
        x = torch.empty(2, 3, requires_grad=True)
    recorder = Recorder({}, KnownResults(mode))
    recorder.placeholder(x)
    with mode, recorder:
        for _ in range(3):
            turned = x.t()
            assert turned._base is x
            turned.mul(2).sum().backward()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"), mode, recorder:
        x.t().mul_(2)
