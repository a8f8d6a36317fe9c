"""What one process does: ``python -m bench.optimize.calls.task NOTES ASKED``, started by ``bench.optimize.alone``."""

from __future__ import annotations

import contextlib
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from bench.optimize.calls.drawing import Call, Kind, arguments, draw_call, draw_kind
from bench.optimize.calls.judging import Outcome, bits, difference, in_double, outcome
from bench.optimize.calls.programs import PROGRAMS
from bench.optimize.calls.spec import Program
from bench.optimize.notes import Notes
from rewright.optimize.api import optimize
from rewright.optimize.backend import backend
from rewright.optimize.running.bare import Steps

TARGET = {"target": "cpu", "floor": False, "remember": False}
Function = Callable[..., Any]


class Runs:
    """How often kernels ran."""

    def __init__(self) -> None:
        self.number = 0
        run = Steps.__call__

        def counted(steps: Steps, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            self.number += 1
            return run(steps, inputs)

        Steps.__call__ = counted  # both doors lead there


@dataclass(frozen=True)
class Door:
    """How a program is optimised: by ``optimize``, by ``compile``, or by that with gradients, which is ``train``."""

    name: str

    def of(self, kind: Kind) -> Kind:
        """Such a kind of call: all that can have a gradient wants one, where gradients are compared."""
        return replace(kind, mode="requires_grad") if self.name == "train" else kind

    def calling(self, function: Function) -> Function:
        """What is compared: the program, and with it its gradients."""
        return partial(_with_gradients, function) if self.name == "train" else function


def _with_gradients(function: Function, *args: Any) -> tuple[Any, Any]:
    """What it returns, and the gradients of its arguments and parameters for numbers of either sign as weights."""
    results = function(*args)
    tensors = [x for x in pytree.tree_leaves(results) if isinstance(x, torch.Tensor) and x.requires_grad]
    parameters = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    wanted = [x for x in (*args, *parameters) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not tensors or not wanted:
        return results, None
    weights = [torch.arange(x.numel(), dtype=torch.float64).cos().to(x.dtype).reshape(x.shape) for x in tensors]
    return results, torch.autograd.grad(tensors, wanted, weights, allow_unused=True)


def main(path: str, asked: str) -> None:
    """Make calls, and write down how many, by what, and which differ."""
    options: Mapping[str, Any] = json.loads(asked)
    notes, program, door = Notes(Path(path)), PROGRAMS[options["program"]], Door(options["door"])
    chance, runs = random.Random(options["seed"]), Runs()
    found: Counter[str] = Counter()
    differences: list[str] = []
    theirs: list[str] = []
    torch.set_num_threads(1)
    while found["calls"] < options["calls"]:
        kind = door.of(draw_kind(program, chance, plain=chance.random() < 0.8))
        notes.doing(f"kernels for {kind}")
        made = _made(program, kind, door, chance)
        found[f"kernels: {made[1]}"] += 1
        wrong: list[tuple[Call, str]] = []
        for _ in range(min(options["each"], options["calls"] - found["calls"])):
            call = draw_call(program, kind, chance)
            call = replace(call, kind=door.of(call.kind))
            notes.doing(str(call))
            before = runs.number
            why = compare(program, call, made[0], door)
            found["calls"] += 1
            found["by kernels"] += runs.number > before
            if why:
                wrong.append((call, f"{why} | made for {kind} | {call}"))
        for call, text in wrong:
            (theirs if is_pytorchs(program, kind, call, door) else differences).append(text)
        notes.know(found=dict(found), differences=differences, theirs=theirs)
    notes.doing("the end")


def _made(program: Program, kind: Kind, door: Door, chance: random.Random) -> tuple[Function | None, str]:
    """What is called, made for a call with normal values, and its status; None where eager refuses such a call."""
    call = Call(kind, "normal", chance.randrange(2**31))
    function = program.made(kind.sizes)
    with modes(kind.mode):
        if outcome(door.calling(function), arguments(program, call)).error:
            return None, "eager refuses"
        if door.name != "optimize":
            torch._dynamo.reset()
            compiled = torch.compile(function, backend=backend, options=TARGET, dynamic=chance.choice((None, True)))
            return compiled, "compile"
        dynamic = _dynamic(program, function) if chance.random() < 0.3 else None
        found = optimize(function, arguments(program, call), dynamic=dynamic, **TARGET)
        return found, found.status if found.status != "fallback" else f"fallback ({found.reason[:90]})"


def _dynamic(program: Program, function: Function) -> dict[str, dict[int, str]] | None:
    """Names for all sizes of a function's arguments."""
    if program.module:
        return None
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    found: dict[str, dict[int, str]] = {}
    for name, spec in zip(names, program.specs, strict=True):
        words = spec.words[1:] if spec.kind == "i" else spec.words
        if axes := {k: f"size_{word}" for k, word in enumerate(words) if not word.isdigit() and spec.is_tensor}:
            found[name] = axes
    return found or None


def compare(program: Program, call: Call, made: Function | None, door: Door) -> str:
    """How a call differs from eager PyTorch, in words; a module of other sizes is its own."""
    if made is None:
        return ""
    eager = _program_of(made)
    with modes(call.kind.mode):
        state = _state(eager)
        theirs = outcome(door.calling(eager), arguments(program, call))
        _restore(eager, state)
        precise = None if _writes_shared(program, call, theirs) else _exactly(program, eager, call, door)
        _restore(eager, state)
        ours = outcome(door.calling(made), arguments(program, call))
        _restore(eager, state)
    return difference(ours, theirs, precise)


def is_pytorchs(program: Program, kind: Kind, call: Call, door: Door) -> bool:
    """Whether ``torch.compile`` without any compiler, or with its own, differs from eager PyTorch in this call too.

    It is asked for the call alone, and after the call that it was made for.
    """
    function = program.made(kind.sizes)
    first = Call(kind, "normal", call.seed)
    names, befores = ("aot_eager", "aot_eager_decomp_partition", "inductor"), ((), (first,))
    for name, before, dynamic in product(names, befores, (None, True)):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=name, dynamic=dynamic)
        for one in before:
            compare(program, one, compiled, door)
        if compare(program, call, compiled, door):
            return True
    return False


def _program_of(made: Function) -> Function:
    """The program itself; a module shares its parameters and buffers with what was made of it."""
    original = getattr(made, "original", None) or getattr(made, "_torchdynamo_orig_callable", None)
    return original or getattr(made, "_orig_mod", made)


def _writes_shared(program: Program, call: Call, made: Outcome) -> bool:
    """Whether a call writes to arguments that share memory, which they do not in float64."""
    if call.kind.share not in ("view", "shifted"):
        return False
    pairs = zip(arguments(program, call), made.left, strict=True)
    return not all(torch.equal(bits(x), bits(y)) for x, y in pairs if isinstance(x, torch.Tensor))


def _exactly(program: Program, eager: Function, call: Call, door: Door) -> Outcome | None:
    """The call in float64, where that is the same function; None where a program has no such call."""
    if not program.exact:
        return None
    function = deepcopy(eager).double() if isinstance(eager, torch.nn.Module) else eager
    given = arguments(program, call)
    known = {id(value): in_double(value) for value in given}
    return outcome(door.calling(function), tuple(known[id(value)] for value in given))


def _state(function: Function) -> dict[str, torch.Tensor]:
    if not isinstance(function, torch.nn.Module):
        return {}
    return {name: value.clone() for name, value in function.named_buffers()}


def _restore(function: Function, state: Mapping[str, torch.Tensor]) -> None:
    if isinstance(function, torch.nn.Module):
        with torch.no_grad():
            for name, value in function.named_buffers():
                value.copy_(state[name])


@contextlib.contextmanager
def modes(mode: str) -> Iterator[None]:
    """The modes of PyTorch that a call is made in."""
    with contextlib.ExitStack() as stack:
        if mode == "inference":
            stack.enter_context(torch.inference_mode())
        elif mode == "autocast":
            stack.enter_context(torch.no_grad())
            stack.enter_context(torch.autocast("cpu", torch.bfloat16))
        else:
            stack.enter_context(torch.set_grad_enabled(mode in ("grad", "requires_grad")))
        yield


if __name__ == "__main__":
    main(*sys.argv[1:])
