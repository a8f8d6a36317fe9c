"""What is timed in turns, and what is kept: never something slower than what a user would have had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
import torch

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.optimize.floor import measuring, peers
from rewright.optimize.floor.measuring import agree, timed
from rewright.optimize.floor.timings import Timing
from tests.optimize.programs import normal


def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A kernel, a library's product, and a kernel."""
    return torch.softmax(torch.tanh(x) @ w, -1)


ARGS = normal(64, 256), normal(256, 256, seed=1)


def clock_of(*ticks: float) -> Callable[[], float]:
    given = iter(ticks)
    return lambda: next(given)


def seconds(**known: float) -> Callable[..., dict[str, float]]:
    """Times as if they had been measured; every contestant runs once all the same."""

    def measured(contestants: Mapping[str, Callable[[], Any]], notes: list[str]) -> dict[str, float]:
        for call in contestants.values():
            call()
        return {name: known[name] for name in contestants}

    return measured


def test_the_least_of_several_turns_counts_and_the_first_one_does_not() -> None:
    starts: Iterator[float] = iter([0.0, 9.0, 10.0, 10.4, 20.0, 20.1, 30.0, 30.3])
    found = timed({"a": lambda: None}, [], lambda: next(starts))

    assert found == {"a": pytest.approx(0.1)}


def taken(**seconds: float) -> tuple[dict[str, float], Counter[str]]:
    """What is found of contestants that take so long, and how often each one ran."""
    calls = Counter[str]()
    now = 0.0

    def call(name: str) -> None:
        nonlocal now
        now += seconds[name]
        calls[name] += 1

    return timed({name: partial(call, name) for name in seconds}, [], lambda: now), calls


def test_what_is_far_slower_than_another_and_takes_long_has_no_further_turn() -> None:
    found, calls = taken(a=30.0, b=0.5, c=0.2)

    assert found == {"a": pytest.approx(30.0), "b": pytest.approx(0.5), "c": pytest.approx(0.2)}
    assert calls == {"a": 3, "b": 4, "c": 4}


def test_where_one_is_clearly_faster_there_are_few_turns() -> None:
    found, calls = taken(a=0.003, b=0.001)
    assert found == {"a": pytest.approx(0.003), "b": pytest.approx(0.001)}
    assert calls == {"a": 4, "b": 4}

    _, calls = taken(a=0.0015, b=0.001)
    assert calls == {"a": 31, "b": 31}


def test_long_runs_have_two_turns() -> None:
    _, calls = taken(a=1.5, b=1.4)
    assert calls == {"a": 3, "b": 3}


def test_a_contestant_that_raises_is_none_and_a_note_says_why() -> None:
    notes: list[str] = []

    def fails() -> None:
        raise ValueError("no such thing\nat all")

    found = timed({"a": lambda: None, "b": fails}, notes)

    assert set(found) == {"a"} and notes == ["b was not timed (ValueError: no such thing)"]


@pytest.mark.parametrize(
    ("known", "runs"),
    [
        ({"kernels": 1.0, "eager": 2.0}, "kernels"),
        ({"kernels": 1.0, "eager": 0.99}, "kernels"),  # as fast, but for noise
        ({"kernels": 1.0, "eager": 0.5}, "eager"),
    ],
)
def test_the_faster_one_runs_and_the_result_says_which(
    known: dict[str, float], runs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "timed", seconds(**known))
    fast = rw.optimize(program, ARGS, target="cpu", floor=["eager"], remember=False)

    assert fast.status == "proved" and fast.runs == runs, fast.reason
    assert f"the program: {runs} is kept" in fast.explain()
    torch.testing.assert_close(fast(*ARGS), program(*ARGS))


def test_parts_that_torch_computes_faster_are_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(contestants: Mapping[str, Callable[[], Any]], notes: list[str]) -> dict[str, float]:
        for call in contestants.values():
            call()
        whole = len(measured.__dict__.setdefault("seen", [])) in (0, 3)
        measured.__dict__["seen"].append(0)
        return {"kernels": 1.0, "eager": 2.0 if whole else 0.1}

    monkeypatch.setattr(measuring, "timed", measured)
    fast = rw.optimize(program, ARGS, target="cpu", floor=["eager"], remember=False)

    assert fast.runs == "kernels" and fast.floor is not None and fast.runner is not None
    assert [part.kept for part in fast.floor.parts] == ["eager", "eager"]
    assert len(fast.runner.others) == 2
    torch.testing.assert_close(fast(*ARGS), program(*ARGS))


def test_a_program_without_kernels_is_the_faster_of_the_other_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "timed", seconds(eager=2.0, inductor=1.0))
    x = normal(4, 9)
    fast = rw.optimize(lambda x: x.sort().values, (x,), target="cpu", remember=False)

    assert (fast.status, fast.runs) == ("fallback", "inductor")
    assert torch.equal(fast(x), x.sort().values)


def test_what_a_program_writes_is_undone_after_it_was_timed() -> None:
    norm = torch.nn.BatchNorm1d(8)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    with torch.no_grad():
        fast = rw.optimize(norm, (normal(16, 8),), target="cpu", floor=["eager"], remember=False)

    assert fast.floor is not None
    for name, value in norm.state_dict().items():
        assert torch.equal(value, before[name])


def test_nothing_is_timed_without_values_or_where_nobody_asks() -> None:
    meta = tuple(t.to("meta") for t in ARGS)
    assert rw.optimize(program, ARGS, target="cpu", floor=False, remember=False).floor is None
    found = rw.optimize(program, meta, target="cpu", remember=False)

    assert found.floor is None and any("no values" in note for note in found.notes)
    with pytest.raises(RewrightError, match="floor='tpu' is no peer"):
        rw.optimize(program, ARGS, floor=["tpu"])  # type: ignore[list-item]


def test_a_timing_reads_as_a_sentence() -> None:
    timing = Timing("the program", {"kernels": 0.001, "eager": 0.002}, "kernels")

    assert str(timing) == (
        "the program: kernels is kept (kernels 1.000 ms, eager 2.000 ms, 2.00 times as fast as the next)"
    )


@pytest.mark.parametrize(("whole", "share", "asked"), [(2.0, 1.0, 0), (0.5, 1.0, 2), (0.5, 0.01, 0)])
def test_inductor_compiles_parts_where_that_may_help(
    whole: float, share: float, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is faster at the whole program, the large parts; it takes seconds for each."""
    compiled: list[object] = []

    def measured(calls: Mapping[str, Callable[[], Any]], notes: list[str]) -> dict[str, float]:
        is_whole = measured.__dict__.setdefault("seen", 0) == 0
        measured.__dict__["seen"] += 1
        return {n: (whole if n == "inductor" else 1.0) if is_whole else share for n in calls}

    def compile_part(given: Callable[..., Any], args: Any) -> Callable[..., Any]:
        compiled.append(given)
        return given

    monkeypatch.setattr(peers, "compile_program", lambda given, args: given)
    monkeypatch.setattr(measuring, "compile_graph", compile_part)
    monkeypatch.setattr(measuring, "timed", measured)
    fast = rw.optimize(program, ARGS, target="cpu", remember=False)

    assert fast.floor is not None and len(fast.floor.parts) == 2
    assert len(compiled) == asked


@pytest.mark.parametrize(("whole", "count"), [(True, 1), (False, 2)])
def test_who_computes_something_else_does_not_run_however_fast(
    whole: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole program is wrong, or each of its two parts."""

    def compiled(given: Callable[..., Any], args: Any) -> Callable[..., Any]:
        return lambda *tensors: given(*tensors) * (1.01 if whole else 1.0)

    def compiled_part(given: Callable[..., Any], args: Any) -> Callable[..., Any]:
        return lambda *tensors: tuple(y + 1 for y in given(*tensors))

    monkeypatch.setattr(peers, "compile_program", compiled)
    monkeypatch.setattr(measuring, "compile_graph", compiled_part)
    monkeypatch.setattr(measuring, "timed", lambda calls, _: {n: 0.9 if n == "inductor" else 1.0 for n in calls})
    fast = rw.optimize(program, ARGS, target="cpu", remember=False)

    assert fast.floor is not None and (not whole or fast.runs in ("kernels", "eager"))
    assert sum("computes something else than the kernels" in note for note in fast.floor.notes) == count
    torch.testing.assert_close(fast(*ARGS), program(*ARGS))


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ([1.0, 2.0], [1.0, 2.0001], True),
        ([1.0, 2.0], [1.0, 2.1], False),
        ([1.0, float("nan")], [1.0, float("nan")], True),
        ([1.0, float("nan")], [1.0, 2.0], False),
        ([1.0, float("inf")], [1.0, float("-inf")], False),
        ([0.0, 0.0], [0.0, 1e-3], False),
        ([], [], True),
    ],
)
def test_results_are_near_where_only_rounding_is_between_them(one: list[float], other: list[float], near: bool) -> None:
    assert agree(torch.tensor(one), (torch.tensor(other),)) is near


def test_results_of_other_types_sizes_and_numbers_are_not_near() -> None:
    x = torch.ones(3)
    assert not agree(x, x.double())
    assert not agree(x, torch.ones(4))
    assert not agree(x, (x, x))
    assert not agree(torch.arange(9), torch.arange(9) + 1)


@pytest.mark.parametrize("runs", ["eager", "inductor"])
def test_a_graph_runs_as_it_was_fastest_too(runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "timed", seconds(**{"kernels": 3.0, "eager": 2.0, "inductor": 2.0, runs: 1.0}))
    graph = rw.capture(program, ARGS)
    found = rw.optimize(graph, target="cpu", remember=False)

    assert found.runs == runs, found.notes
    (result,) = found(**dict(zip(graph.inputs, ARGS, strict=True))).values()
    torch.testing.assert_close(result, program(*ARGS))
    with pytest.raises(RewrightError, match="has no value"):
        found(x=ARGS[0])


def test_a_module_that_inductor_is_kept_for_runs_though_it_has_no_length() -> None:
    """What ``torch.compile`` makes of a module asks the module for its length where it is taken for a truth value."""
    module = torch.nn.LayerNorm(64).requires_grad_(False)
    fast = rw.optimize(module, (ARGS[0][:, :64],), target="cpu", floor=False, remember=False)
    fast.runs, fast.compiled = "inductor", torch.compile(module, backend="eager")

    torch.testing.assert_close(fast(ARGS[0][:, :64]), module(ARGS[0][:, :64]))


def test_a_peer_may_be_as_far_from_the_program_as_kernels_are() -> None:
    program, kernels = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.4])
    assert not agree(program, torch.tensor([1.5, 2.0]))
    assert agree(program, torch.tensor([1.5, 2.0]), as_near_as=kernels)
    assert not agree(program, torch.tensor([3.5, 2.0]), as_near_as=kernels)
    assert not agree(program, torch.tensor([float("nan"), 2.0]), as_near_as=kernels)
    assert not agree(program, torch.tensor([1.5, 2.0]), as_near_as=torch.tensor([float("nan"), 2.0]))
    assert not agree(program, torch.tensor([1.5, 2.0]), as_near_as=[kernels, kernels])


def test_inductor_compiles_a_part_for_its_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With symbols for them it would be slower than what a user would have had."""
    import torch._inductor.compile_fx as inductor

    sizes: list[Any] = []
    inner: Any = inductor._compile_fx_inner

    def looking(graph: torch.fx.GraphModule, examples: Any, **options: Any) -> Any:
        sizes.extend(size for given in examples for size in given.shape)
        return inner(graph, examples, **options)

    module = torch.fx.symbolic_trace(lambda x, w: torch.tanh(x @ w))
    monkeypatch.setattr(inductor, "_compile_fx_inner", looking)
    with torch._inductor.config.patch(force_disable_caches=True):
        compiled = peers.compile_program(module, ARGS)
    torch.testing.assert_close(compiled(*ARGS), torch.tanh(ARGS[0] @ ARGS[1]))
    assert sizes and all(type(size) is int for size in sizes)
