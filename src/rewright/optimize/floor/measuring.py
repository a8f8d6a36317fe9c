"""Timing in turns, and what is kept: for each part, and for the whole, the faster of what there is.

Other work on the machine makes a run slower and never faster, so the least of several is compared, and what is compared
runs in turns.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from rewright.optimize.floor.parts import Part, parts_of, with_parts
from rewright.optimize.floor.peers import Example, compile_graph, has_inductor
from rewright.optimize.floor.timings import OURS, PEERS, Floor, Peer, Timing
from rewright.optimize.running.execution import Other, Runner
from rewright.optimize.sizes.runner import FlexibleRunner

Ours = Callable[[Runner], Any]
ROUNDS, LEAST, MOST = 30, 3, 0.3
"""At most so many turns, at least so many, and seconds of one contestant after which there are no more."""
LONG, LEAST_OF_LONG = 1.0, 2
"""Seconds of a run that evens out by itself what other work does to it, and the least turns of such runs."""
HOPELESS, CLEAR = 3.0, 2.0
"""What takes more than this many times as long as the fastest has no further turn, if it takes long; and after the
least number of turns."""
FEW, ROUNDED = 0.01, 4.0
"""Of integers this share may differ; floats so many square roots of their precision, of the largest one."""
LITTLE = 0.05
"""Of the time of a program: where a part takes less, Inductor, which takes seconds to compile it, is not asked."""
NEAR = 0.98
"""Something else replaces a kernel where it takes less than this much of its time: less is noise."""


def measure(
    runner: Runner | FlexibleRunner, example: Example, call: Ours, peers: Sequence[Peer], seconds: float
) -> Floor:
    """Time a plan against its peers, part by part and as a whole, and say what is kept.

    ``call`` is what a user calls, with a runner of the plan. A peer that fails is none, and a note says so. No more
    parts are timed after so many seconds. A plan for all sizes is timed at those of the example, and its parts against
    eager PyTorch alone, as what Inductor makes of a part is for its sizes.
    """
    if isinstance(runner, FlexibleRunner):
        floor = _measure(runner.at(example.tensors), example, call, peers, seconds, ("eager",))
        assert isinstance(floor.runner, Runner)
        chosen = {other.steps for other in floor.runner.others.values()}
        return replace(floor, runner=with_parts(runner, chosen))
    return _measure(runner, example, call, peers, seconds, peers)


def _measure(
    runner: Runner, example: Example, call: Ours, peers: Sequence[Peer], seconds: float, of_parts: Sequence[Peer]
) -> Floor:
    began = time.monotonic()
    notes: list[str] = []
    with torch.no_grad(), example.unchanged(), _quiet():
        contestants: dict[str, Callable[[], Any]] = {}
        compiled: Callable[..., Any] | None = None
        if "eager" in peers:
            contestants["eager"] = example.by_eager()
        if "inductor" in peers and has_inductor():
            try:
                compiled, contestants["inductor"] = example.by_inductor()
            except Exception as error:  # whatever it cannot compile
                notes.append(f"Inductor does not compile the program ({type(error).__name__})")
        if "inductor" in contestants and not _stands_for(example, lambda: call(runner), contestants["inductor"]):
            notes.append("Inductor computes something else than the kernels, and is not timed")
            compiled, _ = None, contestants.pop("inductor")
        found = timed({OURS: lambda: call(runner), **contestants}, notes)
        # Inductor takes seconds to compile a part, and is not asked where it is no faster at the whole.
        several = [n for n in contestants if n in of_parts and (n != "inductor" or _kept(found) == n)]
        whole_seconds = min(found.values(), default=0.0)
        parts, others = _measure_parts(runner, example, several, whole_seconds, began + seconds, notes)
        best = Runner(runner.plan, runner.launches, others, runner.device) if others else runner
        kept = _kept(found)
        if others:  # the peers' times stand, and the fastest of them takes turns with what is new
            rivals = sorted((name for name in contestants if name in found), key=lambda name: found[name])[:1]
            last = timed({OURS: lambda: call(best), **{name: contestants[name] for name in rivals}}, notes)
            kept = _kept(last)
            found |= {name: min(seconds, found[name]) if name in rivals else seconds for name, seconds in last.items()}
    whole = Timing("the program", found, kept)
    return Floor(whole, parts, notes, best, compiled if whole.kept == "inductor" else None)


def measure_peers(example: Example, peers: Sequence[Peer]) -> Floor | None:
    """The faster of eager PyTorch and Inductor, for a program that has no kernels; None where one is not asked for."""
    if set(peers) != set(PEERS) or not has_inductor():
        return None
    notes: list[str] = []
    with torch.no_grad(), example.unchanged(), _quiet():
        try:
            compiled, call = example.by_inductor()
        except Exception as error:  # whatever it cannot compile
            return Floor(
                Timing("the program", {}, "eager"), [], [f"Inductor does not compile it ({type(error).__name__})"]
            )
        found = timed({"eager": example.by_eager(), "inductor": call}, notes)
    kept = min(found, key=lambda name: found[name], default="eager")
    return Floor(Timing("the program", found, kept), [], notes, None, compiled if kept == "inductor" else None)


def _kept(seconds: Mapping[str, float]) -> str:
    """The fastest; kernels where nothing is faster by more than noise."""
    best = min(seconds, key=lambda name: seconds[name], default=OURS)
    return OURS if OURS in seconds and seconds[best] > NEAR * seconds[OURS] else best


def _measure_parts(
    runner: Runner, example: Example, peers: Sequence[str], whole: float, until: float, notes: list[str]
) -> tuple[list[Timing], dict[int, Other]]:
    """For each part of a plan, equal ones once, its kernels against torch's calls and Inductor on the same tensors.

    Inductor is asked where a part and those that are equal to it take more than little of the time of the ``whole``.
    """
    by_first = {part.steps[0]: part for part in parts_of(runner.plan)}
    counts = Counter(part.key for part in by_first.values())
    values = runner.bare.start(example.tensors)
    known: dict[str, tuple[str, Callable[..., Sequence[torch.Tensor]] | None]] = {}
    found: list[Timing] = []
    others: dict[int, Other] = {}
    for number in range(len(runner.bare.steps)):
        part = by_first.get(number)
        if part is not None and not all(p in values for p in part.given):  # what merges its pieces reads more
            del by_first[number]
            part = None
        if part is not None and part.key not in known and time.monotonic() < until:
            least = LITTLE * whole / counts[part.key]
            timing, function = _measure_part(runner, part, dict(values), peers, least, notes)
            known[part.key] = timing.kept, function
            found.append(timing)
        if part is not None and (function := known.get(part.key, ("", None))[1]) is not None:
            by, named = known[part.key][0], _by_name(part, function)
            others[number] = Other(part.steps, part.given, part.made, part.graph, part.kinds, by, named)
        runner.bare.run_step(number, values)
    late = [part for part in by_first.values() if part.key not in known]
    if late:
        notes.append(f"{len(late)} parts were not timed: the time for it was over, and their kernels run")
    return found, others


def _measure_part(
    runner: Runner, part: Part, values: dict[int, torch.Tensor], peers: Sequence[str], least: float, notes: list[str]
) -> tuple[Timing, Callable[..., Sequence[torch.Tensor]] | None]:
    given = [values[p] for p in part.given]
    eager = part.by_torch(runner.device)
    functions: dict[str, Callable[..., Sequence[torch.Tensor]]] = {"eager": eager}
    what = ", ".join(
        dict.fromkeys(f"{part.plan.graph.nodes[p].op.name} at {part.plan.graph.nodes[p].span}" for p in part.made)
    )

    def ours() -> None:
        for number in part.steps:
            runner.bare.steps[number](values)

    contestants: dict[str, Callable[[], Any]] = {OURS: ours, "eager": lambda: eager(*given)}
    seconds = timed(contestants, notes)
    if "inductor" in peers and min(seconds.values(), default=0.0) > least:
        try:
            compiled = functions["inductor"] = compile_graph(eager, given)
            ours()
            if agree([values[p] for p in part.made], compiled(*given)):
                seconds = timed({**contestants, "inductor": lambda: compiled(*given)}, notes)
            else:
                notes.append(f"Inductor computes something else than the kernels of {what}, and is not timed")
        except Exception as error:  # whatever it cannot compile
            notes.append(f"Inductor does not compile {what} ({type(error).__name__})")
    kept = _kept(seconds)
    return Timing(what, seconds, kept), functions.get(kept)


def _copy(example: Example, call: Callable[[], Any]) -> Any:
    """What a call returns, in memory of its own, with what it writes to its arguments undone; None where it fails."""
    try:
        with example.unchanged():
            return pytree.tree_map(_own, call())
    except Exception:  # it is then not timed either, and a note says why
        return None


def _own(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf


def _stands_for(example: Example, ours: Callable[[], Any], theirs: Callable[[], Any]) -> bool:
    """Whether what a peer gives is near what kernels give, or as near as that to what the program itself gives."""
    one, other = _copy(example, ours), _copy(example, theirs)
    return agree(one, other) or agree(_copy(example, example.by_eager()), other, as_near_as=one)


def agree(one: Any, other: Any, as_near_as: Any = None) -> bool:
    """Whether the tensors of two results are near each other, as two orders of summation leave them.

    Who is to run instead of kernels that are proved has to give what they give. Of integers and truth values one in a
    hundred may differ, as places of values that are rounded. Where a third result is given, the second may be twice as
    far from the first as that is: in 16 bits the roundings of a long program may lie far apart.
    """
    mine, theirs, thirds = (_tensors(result) for result in (one, other, as_near_as))
    if len(mine) != len(theirs) or (as_near_as is not None and len(thirds) != len(mine)):
        return False
    far = [2 * _distance(a, c) for a, c in zip(mine, thirds, strict=True)] if thirds else [0.0] * len(mine)
    allowed = [f if math.isfinite(f) else 0.0 for f in far]
    return all(_distance(a, b) <= max(_rounding(a), f) for a, b, f in zip(mine, theirs, allowed, strict=True))


def _tensors(result: Any) -> list[torch.Tensor]:
    return [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]


def _rounding(tensor: torch.Tensor) -> float:
    """The distance that other roundings explain, relative to the largest element; of integers the share of them."""
    return ROUNDED * math.sqrt(torch.finfo(tensor.dtype).eps) if tensor.is_floating_point() else FEW


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference relative to the largest element, or of integers the share that differs.

    Infinite for tensors of other types, and where one is a number and the other is none.
    """
    if one.shape != other.shape or one.dtype != other.dtype:
        return math.inf
    if not one.is_floating_point():
        return float((one != other).double().mean()) if one.numel() else 0.0
    a, b = one.double(), other.double()
    finite = a.isfinite() & b.isfinite()
    same = (a == b) | (a.isnan() & b.isnan())
    if not bool((finite | same).all()):
        return math.inf
    if not bool(finite.any()):
        return 0.0
    size = max(float(a[finite].abs().amax()), torch.finfo(one.dtype).tiny)
    return float((a[finite] - b[finite]).abs().amax()) / size


def _by_name(
    part: Part, function: Callable[..., Sequence[torch.Tensor]]
) -> Callable[[Mapping[str, torch.Tensor]], dict[str, torch.Tensor]]:
    """A function of a part's tensors in their order as one of tensors by name."""

    def call(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        found = function(*given.values())
        return {f"t{p}": value for p, value in zip(part.made, found, strict=True)}

    return call


def timed(
    contestants: Mapping[str, Callable[[], Any]], notes: list[str], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The least seconds of each contestant, which take turns; one that raises is left out, and a note says why."""
    best: dict[str, float] = {}
    spent: dict[str, float] = {}
    left = dict(contestants)
    for turn in range(ROUNDS + 1):  # the first one warms up
        for name, call in list(left.items()):
            started = clock()
            try:
                _wait(call())
            except Exception as error:  # a peer that fails is none
                notes.append(f"{name} was not timed ({type(error).__name__}: {str(error).partition(chr(10))[0]})")
                best.pop(name, None)
                del left[name]
                continue
            needed = clock() - started
            if turn:
                best[name] = min(best.get(name, needed), needed)
                spent[name] = spent.get(name, 0.0) + needed
                slower = best[name] / max(min(best.values()), 1e-12)
                is_known = turn >= (LEAST_OF_LONG if best[name] > LONG else LEAST)
                if (spent[name] > MOST and (is_known or slower > HOPELESS)) or (is_known and slower > CLEAR):
                    del left[name]
        if not left or (turn >= LEAST and len(left) == 1 < len(contestants)):
            break
    return best


@contextmanager
def _quiet() -> Generator[None]:
    """Without the warnings of peers, also where warnings are errors; builds for CUDA say that there is no GPU."""
    log = logging.getLogger("torch.utils.cpp_extension")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _wait(result: Any) -> None:
    """Until a GPU has done what was asked of it."""
    leaves = pytree.tree_leaves(result)
    if any(isinstance(leaf, torch.Tensor) and leaf.is_cuda for leaf in leaves) or torch.cuda.is_available():
        torch.cuda.synchronize()
