"""What tests on real ranks see of the gallery's bugs, and what they cost: ``python -m bench.compare``, as a table.

Each program of ``docs/explanation/gallery.md`` that has its gloo ranks is run as people test such programs: the same
seed and the same random batch on one process and on all ranks, outputs and gradients compared by ``torch.allclose``.
Then ``rewright refine`` is asked. Seconds are by the clock, of a process that is started for it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from bench.tables import print_table

GALLERY = Path(__file__).parents[1] / "docs" / "explanation" / "gallery.md"
_FILE = re.compile(r"^```python\n(# (?P<name>\w+\.py)\n.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Case:
    """A program of the gallery, its mesh, and how a batch is drawn and cut."""

    file: str
    axes: tuple[tuple[str, int], ...]
    cut: tuple[tuple[int, str, int], ...] = ()
    """(argument, axis of the mesh, axis of the tensor)."""
    backward: bool = False
    labels: tuple[str, ...] = ()
    """Arguments that hold classes."""
    data: str = "random"


CASES = (
    Case("scale.py", (("dp", 2), ("tp", 2)), ((0, "dp", 0), (1, "dp", 0))),
    Case("vocabulary.py", (("tp", 2),), ((0, "tp", 1),), labels=("1",)),
    Case("vocabulary.py", (("tp", 2),), ((0, "tp", 1),), labels=("1",), data="one label of -100"),
    Case("rope.py", (("cp", 2),), ((0, "cp", 1),)),
    Case("plan.py", (("tp", 2),), backward=True, labels=("input_ids", "labels")),
)


def load(folder: Path, file: str) -> Any:
    """The module of a file."""
    spec = importlib.util.spec_from_file_location(file.removesuffix(".py"), folder / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def draw(case: Case, args: Any) -> Any:
    """A random batch with the shapes of the arguments on one device; modules and numbers stay as they are."""
    generator = torch.Generator().manual_seed(1)

    def one(name: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if name in case.labels:
            found = torch.randint(0, 16, value.shape, generator=generator)
            if case.data != "random":
                found[0] = -100
            return found
        return torch.randn(value.shape, generator=generator)

    if isinstance(args, Mapping):
        return {name: one(name, value) for name, value in args.items()}
    tensors = [k for k, value in enumerate(args) if isinstance(value, torch.Tensor)]
    return tuple(one(str(tensors.index(k)), v) if k in tensors else v for k, v in enumerate(args))


def run(program: Any, args: Any, *, backward: bool) -> dict[str, torch.Tensor]:
    """Outputs and gradients, whole."""
    found = program(**args) if isinstance(args, Mapping) else program(*args)
    results = dict(found.items()) if isinstance(found, Mapping) else {} if found is None else {"output": found}
    modules = [m for m in (program, *(args if isinstance(args, tuple) else ())) if isinstance(m, torch.nn.Module)]
    if backward:
        results["loss"].backward()
    for module in modules:
        results |= {f"grad:{n}": p.grad for n, p in module.named_parameters() if p.grad is not None}
    return {n: whole(v).detach() for n, v in results.items() if isinstance(v, torch.Tensor)}


def whole(value: torch.Tensor) -> torch.Tensor:
    """A tensor, of all its shards where it is a DTensor."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def one_rank(rank: int, case: Case, folder: str, port: int, given: Any) -> None:
    """A rank: its part of the batch, and what it computes, into a file."""
    world = 1
    for _, size in case.axes:
        world *= size
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    names = tuple(name for name, _ in case.axes)
    mesh = init_device_mesh("cpu", tuple(size for _, size in case.axes), mesh_dim_names=names)
    torch.manual_seed(0)
    program, args = load(Path(folder), case.file).parallel(mesh)
    batch: Any
    if isinstance(args, Mapping):
        batch = given
    else:
        tensors = [k for k, value in enumerate(args) if isinstance(value, torch.Tensor)]
        parts = list(given)
        for number, axis, dimension in case.cut:
            own = mesh[axis] if len(names) > 1 else mesh
            parts[number] = parts[number].chunk(own.size(), dimension)[own.get_local_rank()].contiguous()
        batch = tuple(parts[tensors.index(k)] if k in tensors else value for k, value in enumerate(args))
    found = run(program, batch, backward=case.backward)
    torch.save(found, f"{folder}/rank{rank}.pt")
    dist.destroy_process_group()


def tested(case: Case, folder: Path, port: int) -> dict[str, str]:
    """Whether outputs, and gradients, of rank 0 are those of one device; outputs that are a part are cut."""
    torch.manual_seed(0)
    program, args = load(folder, case.file).sequential()
    batch = draw(case, args)
    given = batch if isinstance(batch, Mapping) else tuple(v for v in batch if isinstance(v, torch.Tensor))
    world = 1
    for _, size in case.axes:
        world *= size
    expected = run(program, batch, backward=case.backward)
    mp.spawn(one_rank, (case, str(folder), port, given), world)
    verdicts: dict[str, list[bool]] = {}
    for rank in range(world):
        for name, value in torch.load(folder / f"rank{rank}.pt").items():
            right = expected[name]
            for number, axis, dimension in case.cut if value.shape != right.shape else ():
                if number == 0:
                    right = right.chunk(dict(case.axes)[axis], dimension)[rank]
            kind = "gradients" if name.startswith("grad:") else "outputs"
            verdicts.setdefault(kind, []).append(torch.allclose(value, right, rtol=1e-4, atol=1e-5))
    return {kind: "equal" if all(found) else "differ" for kind, found in verdicts.items()}


def asked(case: Case, folder: Path) -> tuple[str, float]:
    """What ``rewright refine`` says, and its seconds."""
    mesh = ",".join(f"{name}={size}" for name, size in case.axes)
    command = [sys.executable, "-m", "rewright", "refine", f"{case.file}:sequential", f"{case.file}:parallel"]
    command += ["--mesh", mesh, "--json", *(["--backward"] if case.backward else [])]
    started = time.perf_counter()
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    said = json.loads(found.stdout)
    kind = said["findings"][0]["kind"].replace("_", " ") if said["findings"] else ""
    return f"{said['status']}: {kind}", time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all cases, each test in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.one:
        print(json.dumps(tested(CASES[int(chosen.one[0])], Path(chosen.one[1]), 29500 + int(chosen.one[0]))))
        return 0
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as name:
        for match in _FILE.finditer(GALLERY.read_text()):
            (Path(name) / match["name"]).write_text(match[1])
        for number, case in enumerate(CASES):
            started = time.perf_counter()
            command = [sys.executable, "-m", "bench.compare", "--one", str(number), name]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                print(ran.stderr[-2000:], file=sys.stderr)
                return 1
            seconds = time.perf_counter() - started
            found = json.loads(ran.stdout.splitlines()[-1])
            said, ours = asked(case, Path(name))
            mesh = ", ".join(f"{axis} {size}" for axis, size in case.axes)
            kinds = (found.get("outputs", "-"), found.get("gradients", "-"))
            rows.append((case.file, mesh, case.data, *kinds, f"{seconds:.1f}", said, f"{ours:.1f}"))
    print_table(("program", "mesh", "batch", "outputs", "gradients", "test s", "rewright", "rewright s"), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
