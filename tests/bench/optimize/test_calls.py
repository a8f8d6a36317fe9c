"""The sweep of random calls: the same draws again, nothing different from itself, and what is different told."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.optimize.calls.drawing import LAYOUTS, Call, Kind, arguments, draw_call, draw_kind
from bench.optimize.calls.judging import difference, in_double, outcome
from bench.optimize.calls.programs import PROGRAMS
from bench.optimize.calls.spec import Spec
from bench.optimize.calls.task import Door, compare, modes

X = torch.tensor([[1.0, -2.0], [math.nan, math.inf]])


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's, of one row and of expanded tensors
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("door", [Door("optimize"), Door("train")], ids=lambda door: door.name)
def test_a_program_is_no_different_from_itself(door: Door, name: str) -> None:
    program, chance = PROGRAMS[name], random.Random(name)
    refused = 0
    for _ in range(6):
        kind = door.of(draw_kind(program, chance, plain=True))
        function = program.made(kind.sizes)
        with modes(kind.mode):
            refused += bool(outcome(door.calling(function), arguments(program, Call(kind, "normal", 1))).error)
        for _ in range(2):
            call = draw_call(program, kind, chance)
            call = replace(call, kind=door.of(call.kind))
            assert not compare(program, call, function, door), call
    assert refused < 6 or door.name == "train"  # what is written to an argument cannot have its gradient


def test_the_same_call_has_the_same_arguments() -> None:
    program, chance = PROGRAMS["masked_attention"], random.Random(3)
    call = draw_call(program, draw_kind(program, chance, plain=False), chance)
    for one, two in zip(arguments(program, call), arguments(program, call), strict=True):
        torch.testing.assert_close(one, two, equal_nan=True)
        assert one.stride() == two.stride()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_of_the_size_that_is_asked_for(layout: str) -> None:
    program = PROGRAMS["softmaxes"]
    kind = Kind({"b": 3, "s": 5}, layouts=(layout,))
    (x,) = arguments(program, Call(kind, "normal", 1))
    assert x.shape == (3, 5)
    assert x.is_contiguous() == (layout in ("contiguous", "offset", "negative"))
    assert x.is_neg() == (layout == "negative")


WRONG: dict[str, Callable[[torch.Tensor], Any]] = {
    "value": lambda x: x * 1.001,
    "dtype": lambda x: x.double(),
    "strides": lambda x: x.clone().t().contiguous().t(),
    "not a number": lambda x: x.nan_to_num(),
    "structure": lambda x: (x.clone(),),
    "memory": lambda x: x,
    "written": lambda x: x.mul_(2) / 2,
    "error": lambda x: x[7],
    "gradient": lambda x: x.clone().requires_grad_(),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_different_is_told(name: str) -> None:
    theirs, exact = outcome(torch.clone, (X.clone(),)), outcome(torch.clone, (in_double(X),))
    assert difference(outcome(WRONG[name], (X.clone(),)), theirs, exact)
    assert not difference(outcome(lambda x: x.clone() * (1 + 1e-7), (X.clone(),)), theirs, exact)


def test_a_kind_of_argument_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="'q b s' begins with none of"):
        Spec.of("q b s")
