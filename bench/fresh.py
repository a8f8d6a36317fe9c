"""Fresh environments: ``python -m bench.fresh --python python3.11 python3.12 --torch 2.13.0``, as a table.

For each Python and each version of PyTorch a virtual environment is made and rewright installed into it, from this
checkout or from ``dist``. Then, in processes of their own: an import, the help, a proof and a refutation, and with
``--demo`` the demonstration. Seconds are of the processor, the best of three; those of installing are by the clock. It
ends with status 1 where a verdict is not what it has to be. It needs nothing but Python itself.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.tables import print_table

ROOT = Path(__file__).parents[1]
PROGRAM = """
import torch
import torch.distributed as dist
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, width, inner, group=None, reduces=True):
        super().__init__()
        inner //= group.size() if group else 1
        self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)
        self.group, self.reduces = group, reduces

    def forward(self, x):
        y = self.down(torch.relu(self.up(x)))
        if self.group and self.reduces:
            dist.all_reduce(y, group=self.group)
        return y


def sequential():
    return FeedForward(8, 32), (torch.zeros(3, 8),)


def parallel(mesh):
    return FeedForward(8, 32, mesh.get_group()), (torch.zeros(3, 8),)


def broken(mesh):
    return FeedForward(8, 32, mesh.get_group(), reduces=False), (torch.zeros(3, 8),)
"""
HEADER = ("python", "torch", "install s", "MB", "import s", "--help s", "proof s", "refutation s", "demo s", "said")


@dataclass(frozen=True)
class Place:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / ("Scripts" if os.name == "nt" else "bin") / "python")

    def pip(self, *arguments: str) -> None:
        """Install something; raises RuntimeError where that fails."""
        done = _run([self.python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *arguments])
        if done.returncode:
            raise RuntimeError(f"pip install {' '.join(arguments)}: {done.stderr.strip().splitlines()[-1:]}")

    def seconds(self, arguments: Sequence[str], status: int = 0, runs: int = 3) -> float:
        """Of the processor, in the best of some runs; raises RuntimeError for another exit status."""
        found: list[float] = []
        for _ in range(runs):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = _run([self.python, *arguments], cwd=self.folder)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode != status:
                said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
                raise RuntimeError(f"{' '.join(arguments[1:])}: status {done.returncode} and not {status}: {said}")
            found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(found)

    def megabytes(self) -> float:
        """Of all files of its packages."""
        return sum(p.stat().st_size for p in self.folder.rglob("*") if p.is_file() and not p.is_symlink()) / 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the options ask for; 1 where something fails."""
    options = _options(arguments)
    failed: list[str] = []

    def rows() -> Iterator[Sequence[str]]:
        for python in options.python:
            for torch in options.torch:
                with tempfile.TemporaryDirectory() as folder:
                    found: dict[str, str] = {}
                    try:
                        _measure(Place(Path(folder) / "venv"), python, torch, options, found)
                    except RuntimeError as error:
                        found["said"] = str(error)
                        failed.append(str(error))
                    yield [found.get(name, "") for name in HEADER]

    print_table(HEADER, rows())
    return 1 if failed else 0


def _measure(place: Place, python: str, torch: str, options: argparse.Namespace, found: dict[str, str]) -> None:
    done = _run([python, "-m", "venv", str(place.folder)])
    if done.returncode:
        raise RuntimeError(f"{python} -m venv: {done.stderr.strip()}")
    found["python"] = _run([place.python, "-c", "import platform; print(platform.python_version())"]).stdout.strip()
    found["torch"] = torch
    started = time.monotonic()
    if torch:
        place.pip(f"torch=={torch}", *options.pip)
    extra = "torch,models" if options.demo else "torch"
    what = str(ROOT) if options.dist is None else str(_only(options.dist, options.kind))
    place.pip(f"{what}[{extra}]", *([f"torch=={torch}"] if torch else []), *options.pip)
    found["install s"] = f"{time.monotonic() - started:.0f}"
    found["MB"] = f"{place.megabytes():.0f}"
    version = "import importlib.metadata; print(importlib.metadata.version('torch'))"
    found["torch"] = _run([place.python, "-c", version]).stdout.strip()
    (place.folder / "model.py").write_text(PROGRAM)
    claim = ["-m", "rewright", "refine", "model.py:sequential"]
    for name, command, status in (
        ("import s", ["-c", "import rewright"], 0),
        ("--help s", ["-m", "rewright", "--help"], 0),
        ("proof s", [*claim, "model.py:parallel", "--mesh", "tp=4"], 0),
        ("refutation s", [*claim, "model.py:broken", "--mesh", "tp=4"], 1),
    ):
        found[name] = f"{place.seconds(command, status):.2f}"
    if options.demo:
        found["demo s"] = f"{place.seconds(['-m', 'rewright', 'demo'], runs=1):.1f}"
    found["said"] = _run([place.python, "-m", "rewright", "--version"]).stdout.strip()


def _only(folder: Path, kind: str) -> Path:
    """The wheel or the source distribution in a folder."""
    found = list(folder.resolve().glob("*.whl" if kind == "wheel" else "*.tar.gz"))
    if len(found) != 1:
        raise RuntimeError(f"{folder} holds {len(found)} files of kind {kind}; run make dist")
    return found[0]


def _run(command: Sequence[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    variables: Mapping[str, str] = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=variables)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.fresh", description=__doc__)
    add = parser.add_argument
    add("--python", nargs="+", default=[sys.executable], metavar="COMMAND", help="interpreters; by default this one")
    add("--torch", nargs="+", default=[""], metavar="VERSION", help="of PyTorch; by default what rewright asks for")
    add("--dist", type=Path, metavar="DIR", help="take rewright from there, and not from this checkout")
    add("--kind", choices=("wheel", "sdist"), default="wheel", help="what to take from there")
    add("--demo", action="store_true", help="with the demonstration, which needs Transformers")
    add("--pip", nargs="+", default=[], metavar="ARGUMENT", help="further arguments of pip install")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
