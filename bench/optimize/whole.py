"""Whole models through ``torch.compile``: ``python -m bench.optimize.whole``.

Start-up, time and memory of eager PyTorch, Inductor and ours, in a first process with empty caches and in a second one,
at two sizes of the input, with and without gradients. Each row is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench.optimize.alone import Row, alone
from bench.optimize.gradients import listening
from bench.optimize.notes import Notes
from bench.optimize.outputs import tensors
from bench.optimize.programs import FAMILIES, PROGRAMS
from bench.tables import print_table
from rewright.optimize.backend import backend

TASK = (sys.executable, "-W", "ignore", "-m", "bench.optimize.whole", "--task")
PEERS: Mapping[str, Callable[[nn.Module], Any]] = {
    "eager": lambda model: model,
    "inductor": torch.compile,
    "rewright": lambda model: torch.compile(model, backend=backend),
}
TIMES = ("first calls s", "their CPU s", "ms")
HEADER = ("model", "gradients", "by", "process", *TIMES, *(f"new size: {what}" for what in TIMES), "peak MB", "said")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the options ask for, and print a table."""
    options = _options(arguments)

    def cells() -> Iterator[Sequence[str]]:
        for name in options.models:
            for gradients in options.gradients:
                for peer in options.peers:
                    for row in _processes(options, name, gradients, peer):
                        yield _cells(row)

    print(f"{options.size} sizes, {torch.get_num_threads()} threads\n")
    print_table(HEADER, cells())


def _processes(options: argparse.Namespace, name: str, gradients: bool, peer: str) -> Iterator[Row]:
    """A process with empty caches, and one after it."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"XDG_CACHE_HOME": f"{folder}/xdg", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        for process in ("first", "second") if peer != "eager" else ("first",):
            asked = {"model": name, "gradients": gradients, "peer": peer, "size": options.size, "runs": options.runs}
            row = {**asked, "process": process, **alone(asked, options.budget, command=TASK, variables=caches)}
            if options.json is not None:
                with options.json.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            yield row


def _cells(row: Row) -> Sequence[str]:
    def number(key: str, digits: int = 2) -> str:
        return f"{row[key]:.{digits}f}" if key in row else ""

    said = row.get("lines", [])
    left = [line for line in said if "left to" in line or "failed" in line]
    taken = sum(" kernels, " in line for line in said)
    text = row["ended"] if "ended" in row else f"{taken} graphs taken, {len(left)} left" if said else ""
    times = (number(f"{key} {what}") for what in ("one", "other") for key in ("first", "cpu", "ms"))
    asked = row["model"], "yes" if row["gradients"] else "no", row["peer"], row["process"]
    return (*asked, *times, number("peak", 0), text)


def task(path: str, asked: str) -> None:
    """What one process does: call the model at one size, then at another one."""
    options: Mapping[str, Any] = json.loads(asked)
    notes, said = Notes(Path(path)), listening()
    notes.doing("making the model")
    built = PROGRAMS[options["model"]].build(size=options["size"])
    assert isinstance(built.function, nn.Module)
    call = PEERS[options["peer"]](built.function)
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    step = _step(call, built.function) if options["gradients"] else torch.no_grad()(call)
    for what, given in (("one", built.args), ("other", tuple(map(_other, built.args)))):
        notes.doing(f"the first two calls at {what} size")
        wall, cpu = time.monotonic(), time.process_time() + _children()
        for _ in range(2):  # with a second step ours finds out what is fastest
            step(*given)
        notes.know(**{f"first {what}": time.monotonic() - wall, f"cpu {what}": time.process_time() + _children() - cpu})
        found = [_milliseconds(lambda given=given: step(*given)) for _ in range(options["runs"])]
        notes.know(**{f"ms {what}": statistics.median(found)}, lines=said.lines)
    notes.know(peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    notes.doing("the end")


def _step(call: Callable[..., Any], model: nn.Module) -> Callable[..., None]:
    def step(*args: Any) -> None:
        model.zero_grad()
        sum(t.square().mean() for t in tensors(call(*args)) if t.requires_grad).backward()  # type: ignore[union-attr]

    return step


def _other(value: Any) -> Any:
    """Another size of the same input: fewer tokens, or two images."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.cat((value, value)) if value.is_floating_point() else value[:, : 3 * value.shape[1] // 4].clone()


def _children() -> float:
    """Seconds of the processor in processes that were started, such as compilers."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _milliseconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - started)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.optimize.whole", description=__doc__)
    add = parser.add_argument
    names = [program.name for program in FAMILIES["models"]]
    add("--models", nargs="+", choices=names, default=names, metavar="NAME")
    add("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    add("--size", choices=("tiny", "full", "large"), default="large")
    add("--gradients", nargs="+", type=lambda text: text == "yes", default=[False, True], help="yes, no, or both")
    add("--runs", type=int, default=7)
    add("--budget", type=float, default=900.0, help="seconds by the clock for each process")
    add("--json", type=Path, help="a file that every row is added to, as a line")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        task(*sys.argv[2:])
    else:
        main()
