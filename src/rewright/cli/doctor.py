"""``rewright doctor``: what is installed here, and what each command still needs."""

from __future__ import annotations

import ctypes
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from rewright import __version__
from rewright.optimize.running.building import compiler, version_of
from rewright.packages import known, package


@dataclass(frozen=True)
class Use:
    """Something that a user may want, and the packages for it."""

    what: str
    packages: tuple[str, ...] = ()
    needs_compiler: bool = False
    needs_gpu: bool = False

    def lacks(self, gpu: str) -> list[str]:
        """What there is to do before it works here: commands, and what no command brings."""
        steps = [package(name).command for name in self.packages if not package(name).version]
        if self.needs_compiler and compiler() is None:
            steps.append("install g++ or clang++")
        return [*steps, *(["a CUDA device"] if self.needs_gpu and not gpu else [])]


USES = (
    Use("refine, equiv, audit, show: saved programs"),
    Use("refine, equiv, capture: PyTorch", ("torch",)),
    Use("refine, equiv, capture: JAX", ("jax",)),
    Use("refine, equiv: StableHLO", ("jaxlib",)),
    Use("refine --matrix --executor ray", ("ray",)),
    Use("demo", ("torch", "transformers")),
    Use("optimize, on the CPU", ("torch",), needs_compiler=True),
    Use("optimize, on a GPU", ("torch", "triton"), needs_gpu=True),
    Use("kernel", ("torch", "triton")),
    Use("env", ("jax", "jaxlib", "gymnasium")),
    Use("env passes --target", ("jax", "jaxlib", "jax-cuda12-pjrt")),
    Use("env patterns", ("jax", "jaxlib", "enzyme-ad")),
)


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON on stdout.")] = False) -> int:
    """Say what is installed here, and what each command still needs.

    Exit status: 0 where rewright itself can run, 3 where a package that all of it needs is missing or too old.
    """
    gpu = _gpu()
    if as_json:
        print(json.dumps(_document(gpu), indent=1))
    else:
        _print(gpu)
    return 0 if all(found.fits for found in known().values() if found.is_needed) else 3


def _print(gpu: str) -> None:
    console = Console(highlight=False)
    console.print(
        f"rewright {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    )
    console.print(f"C++ compiler: {_compiler() or 'none'}")
    console.print(f"CUDA driver: {gpu or 'none'}")
    packages = _table("package", "installed", "tested with")
    for found in known().values():
        state = found.version or "no"
        packages.add_row(found.name, state if found.fits or not found.version else f"{state} (!)", found.versions)
    console.print(packages)
    uses = _table("command", "works here")
    for use in USES:
        steps = use.lacks(gpu)
        uses.add_row(use.what, f"no: {_said(steps)}" if steps else "yes")
    console.print(uses)


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, title_justify="left", padding=(0, 2, 0, 0), show_edge=False)
    for name in names:
        table.add_column(name, overflow="fold", header_style="bold")
    return table


def _said(steps: Sequence[str]) -> str:
    """Several installs as one command."""
    pip = [step.removeprefix("pip install ") for step in steps if step.startswith("pip install ")]
    rest = [step for step in steps if not step.startswith("pip install ")]
    return "; ".join([*([f"pip install {' '.join(pip)}"] if pip else []), *rest])


def _document(gpu: str) -> dict[str, object]:
    packages = {p.name: {"installed": p.version, "tested": p.versions, "fits": p.fits} for p in known().values()}
    return {
        "rewright": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "compiler": _compiler(),
        "cuda": gpu,
        "packages": packages,
        "uses": [{**asdict(use), "lacks": use.lacks(gpu)} for use in USES],
    }


def _compiler() -> str:
    command = compiler()
    return "" if command is None else version_of(command)


def _gpu() -> str:
    """The version of the CUDA driver; empty where there is none, or no device. PyTorch need not be imported for it."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        version, count = ctypes.c_int(), ctypes.c_int()
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
            return ""
        driver.cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return ""
    return f"{version.value // 1000}.{version.value % 1000 // 10}"
