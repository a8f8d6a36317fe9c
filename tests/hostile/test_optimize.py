"""What hostile use of ``optimize`` found: each test says what happened before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import rewright as rw
from rewright.optimize.backend import backend

Program = Callable[..., Any]


def softmax_of(*args: Any, **kwargs: Any) -> Any:
    """Optimise for the reference target, without the runs on numbers: these are about calls."""
    found = rw.optimize(*args, target="torch", verify=False, **kwargs)
    assert found.status == "proved", found.reason
    return found


def scaled(x: torch.Tensor, scale: float, causal: bool = False) -> torch.Tensor:
    scores = x @ x.transpose(-1, -2) * scale
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return torch.softmax(scores, -1) @ x


class Gain(torch.nn.Module):
    gain = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(torch.softmax(x * self.gain, -1))


def test_a_number_a_flag_an_attribute_a_mode_and_a_held_tensor_are_those_of_the_call() -> None:
    """Before, the values of the first call were used for ever."""
    with torch.no_grad():
        x = torch.randn(2, 32, 16)
        fast = softmax_of(scaled, (x, 0.25))
        torch.testing.assert_close(fast(x, 1.0), scaled(x, 1.0))
        torch.testing.assert_close(fast(x, 0.25, causal=True), scaled(x, 0.25, causal=True))
        module = Gain().eval()
        fast = softmax_of(module, (x,))
        module.gain = 4.0
        torch.testing.assert_close(fast(x), module(x))
        module.train()
        assert (fast(x) == 0).any()
        table = torch.randn(16)
        fast = softmax_of(lambda x: torch.softmax(x * table, -1), (x,))
        table.mul_(3)
        torch.testing.assert_close(fast(x), torch.softmax(x * table, -1))


@pytest.mark.parametrize("way", ["optimize", "torch.compile"])
def test_results_are_tensors_of_their_own(way: str) -> None:
    """Before, ``x.clone()`` was x and ``y.clone()`` was y, so that writing to a result wrote to what the caller had."""

    def program(x: torch.Tensor) -> Any:
        y = torch.softmax(x, -1)
        return y, x.clone(), x * 1.0, y.clone()

    with torch.no_grad():
        x = torch.randn(8, 64)
        options: Any = {"target": "torch", "verify": False}
        made = torch.compile(program, backend=backend, options=options) if way != "optimize" else None
        fast: Any = made or softmax_of(program, (x,))
        for k in (1, 2):
            kept, out = x.clone(), fast(x)
            out[k].zero_()
            assert torch.equal(x, kept)
        out = fast(x)
        out[3].zero_()
        assert out[0].any()


def test_memory_that_is_shared_negative_bits_and_autocast() -> None:
    """Before, all of these gave wrong values, or another dtype, in silence."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return torch.softmax(x + y, -1)

    with torch.no_grad():
        fast = softmax_of(program, (torch.randn(8, 64), torch.randn(8, 64)))
        a = torch.randn(8, 64)
        b = a.clone()
        torch.testing.assert_close(fast(a, a), program(b, b))
        a = torch.randn(9 * 64)
        b = a.clone()
        torch.testing.assert_close(
            fast(a[:512].view(8, 64), a[64:].view(8, 64)), program(b[:512].view(8, 64), b[64:].view(8, 64))
        )
        fast, x = (
            softmax_of(lambda x: torch.softmax(x, -1), (a[:512].view(8, 64),)),
            torch._neg_view(torch.randn(8, 64)),
        )
        torch.testing.assert_close(fast(x), torch.softmax(x, -1))
        module = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.Linear(64, 64))
        x = torch.randn(8, 64)
        fast = softmax_of(module, (x,))
        with torch.autocast("cpu", torch.bfloat16):
            assert fast(x).dtype == module(x).dtype == torch.bfloat16
            inside = rw.optimize(module, (x,), target="torch", verify=False)
        assert inside(x).dtype == module(x).dtype == torch.float32


def test_a_tensor_of_another_device_runs_the_program() -> None:
    """Before, its pointer went to the C++ kernel: a segmentation fault."""
    fast = rw.optimize(
        lambda x: torch.softmax(x * 3, -1),
        (torch.randn(4, 33),),
        target="cpu",
        verify=False,
        floor=False,
        remember=False,
    )

    assert fast(torch.empty(4, 33, device="meta")).device.type == "meta"
    sparse = torch.randn(4, 33).to_sparse()
    assert fast.original is not None
    for wrong in (None, sparse, "text", torch.empty(0), torch.randn(4, 33, dtype=torch.complex64)):
        assert outcome(fast, wrong) == outcome(fast.original, wrong)


def outcome(function: Program, argument: Any) -> object:
    """The layout and dtype of what a call returns, or the kind of its error with its words."""
    try:
        found = function(argument)
    except Exception as error:
        return type(error), str(error)
    return found.layout, found.dtype, found.shape


class Output(dict[str, torch.Tensor]):
    """A mapping of a class of its own, which PyTorch does not take apart."""


STRUCTURES: dict[str, Program] = {
    "list": lambda x: [torch.softmax(x, -1)],
    "none": lambda x: (torch.softmax(x, -1), None),
    "number": lambda x: (torch.softmax(x, -1), 3),
    "nested": lambda x: ((torch.softmax(x, -1), x.exp()), x.sum()),
    "named": lambda x: {"output": torch.softmax(x, -1)},
    "deep": lambda x: {"a": [torch.softmax(x, -1), {"b": (x.exp(),)}], "c": "text"},
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_structure_of_what_is_returned(name: str) -> None:
    """Before, lists were tuples, None and numbers were left out, and nested values were flat."""
    from torch.utils import _pytree as pytree

    program, x = STRUCTURES[name], torch.randn(8, 64)
    with torch.no_grad():
        got, want = softmax_of(program, (x,))(x), program(x)
    left, right = pytree.tree_flatten(got), pytree.tree_flatten(want)
    assert left[1] == right[1]
    for a, b in zip(left[0], right[0], strict=True):
        assert type(a) is type(b)
        torch.testing.assert_close(a, b) if isinstance(a, torch.Tensor) else None


def test_what_cannot_be_taken_apart_is_returned_by_the_program() -> None:
    found = rw.optimize(lambda x: Output(a=torch.softmax(x, -1)), (torch.randn(8, 64),), target="torch")

    assert found.status == "fallback" and "returns a Output" in found.reason
    assert isinstance(found(torch.randn(8, 64)), Output)


def shares(total: torch.Tensor, parts: torch.Tensor) -> Any:
    rest = torch.fmod(total, parts), torch.div(total, parts, rounding_mode="trunc")
    return total // parts, (total % parts).sum(-1), *rest


def test_integers_are_divided_as_eager_divides_them() -> None:
    """Before, the self-test drew a divisor of zero, and SIGFPE ended the process."""
    total, parts = torch.randint(-50, 50, (4, 33)), torch.randint(1, 7, (4, 33))
    fast = rw.optimize(shares, (total, parts), target="cpu", floor=False, remember=False)
    assert fast.status == "proved", fast.reason

    for sign in (1, -1):
        for mine, other in zip(fast(total, sign * parts), shares(total, sign * parts), strict=True):
            assert torch.equal(mine, other)
    parts[2, 3] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        fast(total, parts)
    assert "divides by zero" in fast.notes[0]


def test_integers_wrap_within_an_expression() -> None:
    """Before, kernels computed in 64 bits and wrapped at stores only."""
    programs: dict[str, Program] = {
        "int8": lambda a: (a + a).sum(-1),
        "int16": lambda a: (-a * a).amax(-1),
        "int32": lambda a: ((a * a) > 0).sum(-1),
        "uint8": lambda a: (a * 3 - 7 > a).sum(-1),
    }
    for name, program in programs.items():
        kind = getattr(torch, name)
        x = torch.arange(-66, 66).mul(2**29 + 12345).reshape(4, 33).to(kind)
        fast = rw.optimize(program, (x,), target="cpu", verify=False, floor=False, remember=False)
        assert fast.status == "proved" and torch.equal(fast(x), program(x)), name


def test_places_of_few_bits_wrap() -> None:
    """Places that a program computes are no integers without end: before, 10,000,000 times 299 fitted 32 bits."""

    def program(x: torch.Tensor) -> torch.Tensor:
        i = torch.arange(300, dtype=torch.int32)
        return ((i * 10_000_000 > 0) * x + i.to(torch.int8) * x).sum(-1)

    x = torch.randn(2, 300, dtype=torch.float64)
    fast = rw.optimize(program, (x,), target="torch", verify=False)

    torch.testing.assert_close(fast(x), program(x))


def test_an_index_out_of_range_is_an_error() -> None:
    """Before, it was brought into range."""
    table, places = torch.randn(7, 16), torch.tensor([1, -1, 3])
    fast = softmax_of(lambda t, i: torch.softmax(t[i], -1), (table, places))

    torch.testing.assert_close(fast(table, places), torch.softmax(table[places], -1))
    for wrong in (7, -8):
        with pytest.raises(IndexError, match="out of bounds"):
            fast(table, torch.tensor([0, wrong, 1]))
    assert len(fast.notes) == 1 and "reads out of range" in fast.notes[0]


WRITES = {
    "index_put": lambda x, i, u: torch.index_put(x, (i,), u),
    "index_add": lambda x, i, u: x.index_add(0, i, u),
    "scatter": lambda x, i, u: x.scatter(0, i[:, None].expand(2, 5), u),
    "scatter_reduce": lambda x, i, u: x.scatter_reduce(0, i[:, None].expand(2, 5), u, "amax"),
}


@pytest.mark.parametrize("name", WRITES)
def test_writing_out_of_range_is_an_error(name: str) -> None:
    """Before, what was written there was left out."""
    x, places, updates = torch.randn(4, 5), torch.tensor([1, 3]), torch.randn(2, 5)
    fast = softmax_of(lambda x, i, u: torch.softmax(WRITES[name](x, i, u), -1), (x, places, updates))

    torch.testing.assert_close(fast(x, places, updates), torch.softmax(WRITES[name](x, places, updates), -1))
    for wrong in (4, -5):
        with pytest.raises((IndexError, RuntimeError), match="out of"):
            fast(x, torch.tensor([0, wrong]), updates)
    assert "writes out of range" in fast.notes[0]


@pytest.mark.long
def test_a_periodic_stencil_has_kernels() -> None:
    """Before, a plan was written with a tensor of 46 rows for one of 24, and the program ran as it was.

    The proof takes about as long as the usual budget, which a busy machine would not keep.
    """

    def heat(u: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            around = [torch.roll(u, step, axis) for axis in (0, 1) for step in (1, -1)]
            u = u + 0.1 * (sum(around) - 4 * u)
        return u

    fast, u = softmax_of(heat, (torch.randn(24, 16),), budget=60), torch.randn(24, 16)

    torch.testing.assert_close(fast(u), heat(u))


@pytest.mark.long
def test_a_llama_has_kernels() -> None:
    """Before, a statistic of rows that two kernels read was replaced in one of them: ``KeyError: 106``."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=1000,
    )
    model, ids = transformers.LlamaForCausalLM(config).eval(), torch.randint(0, 1000, (1, 64))
    with torch.no_grad():
        fast = softmax_of(lambda i: model(i, use_cache=False).logits, (ids,))
        torch.testing.assert_close(fast(ids), model(ids).logits, atol=1e-4, rtol=1e-4)
    assert not fast.notes


def test_a_model_output_is_one() -> None:
    """Before, what a model of Transformers returns lost its attributes."""
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, vocab_size=50
    )
    model, ids = transformers.BertModel(config).eval(), torch.arange(14).reshape(2, 7)
    with torch.no_grad():
        fast, other = softmax_of(model, (ids,)), model(ids)
        found = fast(ids)
    assert type(found) is type(other) and list(found) == list(other) and not fast.notes
    torch.testing.assert_close(found.last_hidden_state, other.last_hidden_state)


@pytest.mark.parametrize("target", ["torch", "cpu"])
@pytest.mark.parametrize(
    "dtypes", [(torch.float32, torch.float16), (torch.float32, torch.bfloat16), (torch.float64, torch.float32)]
)
def test_a_cast_rounds_inside_of_a_kernel(target: str, dtypes: tuple[torch.dtype, torch.dtype]) -> None:
    """Before, what a cast rounds away was kept, and the error of rounding was zero."""
    wide, narrow = dtypes

    def program(x: torch.Tensor) -> Any:
        y = x.to(narrow)
        z = (x * 3).to(narrow).to(wide)
        return (
            x - y.to(wide),
            (y * 2).to(wide),
            y.to(wide) * 1.5,
            (x - y.to(wide)).amax(-1),
            y.to(wide).argmax(-1),
            z / 2,
        )

    with torch.no_grad():
        x = torch.randn(8, 33, dtype=wide) * 30
        fast = rw.optimize(program, (x,), target=target, floor=False, remember=False)
        assert fast.status == "proved", fast.reason
        for mine, theirs in zip(fast(x), program(x), strict=True):
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16])
def test_sums_and_products_of_what_is_rounded(narrow: torch.dtype) -> None:
    """Factors left these sums through the cast, and values of attention were those from before it."""

    def program(x: torch.Tensor) -> Any:
        y = (x * 3).to(narrow).float()
        return (y / 3).sum(-1), torch.softmax(y @ x.mT, -1) @ y, (x - y).abs().sum(-1)

    with torch.no_grad():
        x = torch.randn(33, 65)
        for mine, theirs in zip(softmax_of(program, (x,))(x), program(x), strict=True):
            torch.testing.assert_close(mine, theirs)


def test_an_infinite_side_is_an_infinite_length_whatever_the_other_is() -> None:
    """Before, ``hypot`` of an infinity and NaN was NaN."""
    values = torch.tensor([0.0, -0.0, -3.0, math.inf, -math.inf, math.nan, 1e30, 1e-30])
    x, y = (side.contiguous() for side in torch.meshgrid(values, values, indexing="ij"))
    with torch.no_grad():
        torch.testing.assert_close(softmax_of(torch.hypot, (x, y))(x, y), torch.hypot(x, y), equal_nan=True)
