"""Programs that depend on more than values of tensors, and what may change of that between two calls."""

from __future__ import annotations

import enum
import functools
import math
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.optimize.programs import normal

Change = Callable[[], Any]
Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Change]]
SCALE = 2.0
TABLE: dict[str, Any] = {"scale": 2.0, "order": [0, 1]}
HELD = torch.arange(8.0)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """What is fused."""
    return torch.softmax(x, -1)


def a_global() -> Case:
    """A number in the module."""
    return lambda x: softmax(x * SCALE), (normal(3, 8),), {"other": lambda: globals().update(SCALE=5.0)}


def a_global_of_a_function_that_is_called() -> Case:
    """The function is another one afterwards."""

    def other(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(-x, -1)

    return lambda x: softmax(x) * 2, (normal(3, 8),), {"other": lambda: globals().update(softmax=other)}


def a_nested_table() -> Case:
    """A number and a list within a dictionary."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * TABLE["scale"] + TABLE["order"][-1], -1) * TABLE["order"][0] + x

    return (
        program,
        (normal(3, 8),),
        {
            "number": lambda: TABLE.update(scale=-1.0),
            "list": lambda: TABLE["order"].append(3),
            "element": lambda: TABLE["order"].__setitem__(0, 2),
        },
    )


def a_closure() -> Case:
    """A number that an inner function sets."""
    scale = 2.0

    def change() -> None:
        nonlocal scale
        scale = 3.0

    return lambda x: torch.softmax(x * scale, -1), (normal(3, 8),), {"other": change}


def a_default() -> Case:
    """Defaults of the program, by position and by keyword."""

    def program(x: torch.Tensor, a: float = 1.0, *, b: float = 2.0) -> torch.Tensor:
        return torch.softmax(x * a + x * x * b, -1)

    return (
        program,
        (normal(3, 8),),
        {
            "position": lambda: setattr(program, "__defaults__", (3.0,)),
            "keyword": lambda: setattr(program, "__kwdefaults__", {"b": -1.0}),
        },
    )


def a_function_attribute() -> Case:
    """An attribute of the program itself."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * program.scale, -1)  # type: ignore[attr-defined]

    program.scale = 2.0  # type: ignore[attr-defined]
    return program, (normal(3, 8),), {"other": lambda: setattr(program, "scale", 4.0)}


def other_code() -> Case:
    """The code of a function that is called is replaced."""

    def inner(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def another(x: torch.Tensor) -> torch.Tensor:
        return x - 2 * x * x

    return (
        lambda x: torch.softmax(inner(x), -1),
        (normal(3, 8),),
        {"code": lambda: setattr(inner, "__code__", another.__code__)},
    )


class Gain(nn.Module):
    """Numbers of an object, of its class, a flag, modes, hooks, and modules that are replaced."""

    bias = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.gain, self.causal = 1.0, False
        self.drop, self.norm = nn.Dropout(0.0), nn.LayerNorm(8)
        self.register_buffer("shift", torch.zeros(8))
        self.parts = {"last": nn.Identity()}

    @property
    def power(self) -> float:
        """Computed from what the object has."""
        return self.gain + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Everything once."""
        y = self.norm(self.drop(x)) * self.gain + self.bias + self.get_buffer("shift") * self.power
        y = y.masked_fill(torch.ones(y.shape[-2:]).triu(1).bool(), -1.0) if self.causal else y
        return self.parts["last"](torch.softmax(y if not self.training else y * 3, -1))


def a_module() -> Case:
    """Whatever a module has."""
    module = Gain().eval().requires_grad_(False)

    def replace_parameter() -> None:
        module.norm.weight = nn.Parameter(normal(8, seed=3), requires_grad=False)

    return (
        module,
        (normal(3, 8),),
        {
            "attribute": lambda: setattr(module, "gain", 3.0),
            "flag": lambda: setattr(module, "causal", True),
            "class": lambda: setattr(Gain, "bias", -0.5),
            "train": module.train,
            "eval": module.eval,
            "written parameter": lambda: module.norm.weight.fill_(2.0),
            "data of a parameter": lambda: module.norm.weight.data.mul_(0.5),
            "other parameter": replace_parameter,
            "other data": lambda: setattr(module.norm.bias, "data", normal(8, seed=4)),
            "buffer": lambda: setattr(module, "shift", normal(8, seed=5)),
            "epsilon": lambda: setattr(module.norm, "eps", 0.5),
            "submodule": lambda: setattr(module, "norm", nn.Identity()),
            "hidden module": lambda: module.parts.update(last=nn.ReLU()),
            "hook": lambda: module.drop.register_forward_hook(lambda m, a, out: out * 2),
            "hook before": lambda: module.drop.register_forward_pre_hook(lambda m, a: (a[0] + 1,)),
            "forward": lambda: setattr(module, "forward", lambda x: torch.tanh(x)),
        },
    )


def a_method() -> Case:
    """A bound method, and an instance with slots."""

    class Slots:
        __slots__ = ("scale",)

        def __init__(self) -> None:
            self.scale = 2.0

        def run(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x * self.scale, -1)

    owner = Slots()
    return (
        owner.run,
        (normal(3, 8),),
        {
            "slot": lambda: setattr(owner, "scale", 5.0),
            "method": lambda: setattr(Slots, "run", lambda self, x: torch.tanh(x)),
        },
    )


def a_callable_object() -> Case:
    """An object that is called."""

    class Called:
        def __init__(self) -> None:
            self.table = SimpleNamespace(scale=2.0)

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x * self.table.scale, -1)

    called = Called()
    return called, (normal(3, 8),), {"deep": lambda: setattr(called.table, "scale", 9.0)}


def a_partial() -> Case:
    """Arguments that are bound before."""
    table = {"scale": 2.0}

    def program(t: dict[str, float], x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * t["scale"], -1)

    return functools.partial(program, table), (normal(3, 8),), {"bound": lambda: table.update(scale=0.1)}


def a_held_tensor() -> Case:
    """Tensors of a closure, a global and a list, written to in ways that no counter counts."""
    mine, several = torch.arange(8.0), [torch.ones(8)]

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * mine + HELD * several[0], -1)

    return (
        program,
        (normal(3, 8),),
        {
            "in place": lambda: mine.mul_(2),
            "data": lambda: HELD.data.add_(1),
            "numpy": lambda: several[0].numpy().__setitem__(2, 7.0),
            "other": lambda: several.__setitem__(0, torch.full((8,), 3.0)),
            "undefined": lambda: mine[1:2].fill_(math.nan),
        },
    )


def an_array() -> Case:
    """Numbers of NumPy, which become tensors or Python numbers."""
    array, number = np.arange(8.0), [np.float32(2.0)]

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * float(array[3]) + float(number[0]), -1)

    return (
        program,
        (normal(3, 8),),
        {
            "element": lambda: array.__setitem__(3, -4.0),
            "scalar": lambda: number.__setitem__(0, np.float32(1.0)),
        },
    )


class Kind(enum.Enum):
    """A choice."""

    FIRST = 1
    SECOND = 2


def a_choice() -> Case:
    """An enumeration and a set."""
    state = SimpleNamespace(kind=Kind.FIRST, wanted={"a"}, text="sum")

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 if state.kind is Kind.FIRST else x * 3
        y = y + 1 if "b" in state.wanted else y
        return torch.softmax(getattr(y, state.text)(0, keepdim=True) + x, -1)

    return (
        program,
        (normal(3, 8),),
        {
            "enum": lambda: setattr(state, "kind", Kind.SECOND),
            "set": lambda: state.wanted.add("b"),
            "text": lambda: setattr(state, "text", "mean"),
        },
    )


@dataclass
class Config:
    """Read by name."""

    scale_q: float = 2.0
    scale_k: float = 1.0


def by_name() -> Case:
    """Attributes whose names are computed."""
    config = Config()

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * sum(getattr(config, f"scale_{name}") for name in "qk"), -1)

    return program, (normal(3, 8),), {"one": lambda: setattr(config, "scale_k", 3.0)}


def a_decorated_function() -> Case:
    """The function that a decorator of PyTorch wraps."""
    state = {"scale": 2.0}

    @torch.no_grad()
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * state["scale"], -1)

    return program, (normal(3, 8),), {"inside": lambda: state.update(scale=3.0)}


def a_type_of_number() -> Case:
    """Two and two point zero give other dtypes."""
    state: dict[str, Any] = {"by": 2, "zero": 0.0}

    def program(x: torch.Tensor) -> Any:
        count = torch.arange(8) * state["by"]
        return torch.softmax(x, -1), count, torch.full((8,), math.copysign(1.0, state["zero"])) * x.exp()

    return (
        program,
        (normal(3, 8),),
        {
            "float": lambda: state.update(by=2.0),
            "bool": lambda: state.update(by=True),
            "sign": lambda: state.update(zero=-0.0),
        },
    )


def the_default_dtype() -> Case:
    """What new tensors are."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1) * torch.ones(8)

    return (
        program,
        (normal(3, 8),),
        {
            "double": lambda: torch.set_default_dtype(torch.float64),
            "single": lambda: torch.set_default_dtype(torch.float32),
        },
    )


def a_recursive_object() -> Case:
    """Objects that refer to each other."""
    first, second = SimpleNamespace(scale=1.0), SimpleNamespace(scale=2.0)
    first.other, second.other = second, first

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * first.other.other.other.scale, -1)

    return (
        program,
        (normal(3, 8),),
        {
            "far": lambda: setattr(second, "scale", 7.0),
            "link": lambda: setattr(first, "other", first),
        },
    )


def a_generic_function() -> Case:
    """Functions in a table, one of which is exchanged for one of PyTorch."""
    table: dict[str, Any] = {"f": torch.exp, "g": lambda x: x * 2}

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(table["g"](table["f"](x)), -1)

    return (
        program,
        (normal(3, 8),),
        {
            "torch": lambda: table.update(f=torch.tanh),
            "own": lambda: table.update(g=lambda x: x * 3),
        },
    )


def a_named_tuple() -> Case:
    """Fields by name."""
    kind = namedtuple("kind", "scale shift")
    state = [kind(1.0, 2.0)]

    def program(x: torch.Tensor) -> Any:
        return kind(torch.softmax(x * state[0].scale, -1), x.exp() + state[0].shift)

    return program, (normal(3, 8),), {"field": lambda: state.__setitem__(0, kind(1.0, 3.0))}


def a_cached_function() -> Case:
    """A function whose results are kept."""

    @functools.lru_cache
    def scale(n: int) -> float:
        return n * 2.0

    state = {"n": 1}
    return lambda x: torch.softmax(x * scale(state["n"]), -1), (normal(3, 8),), {"key": lambda: state.update(n=4)}


def a_metadata_branch() -> Case:
    """A program that looks at how its argument lies in memory, and at whether it is a parameter."""

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 if x.is_contiguous() else x * 3
        return torch.softmax(y + 1 if isinstance(x, nn.Parameter) else y, -1)

    return program, (normal(8, 8),), {}


CASES: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (
        *(a_global, a_global_of_a_function_that_is_called, a_nested_table, a_closure, a_default, a_function_attribute),
        *(other_code, a_module, a_method, a_callable_object, a_partial, a_held_tensor, an_array, a_choice, by_name),
        *(a_decorated_function, a_type_of_number, the_default_dtype, a_recursive_object, a_generic_function),
        *(a_named_tuple, a_cached_function, a_metadata_branch),
    )
}
