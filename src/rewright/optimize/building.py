"""Compiling C++ into shared libraries, which are kept by the digest of their text."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from rewright.ir.errors import RewrightError

FLAGS = (
    "-O3",
    "-march=native",
    "-std=c++17",
    "-fopenmp",
    "-fPIC",
    "-shared",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-w",
)


class NoCompiler(RewrightError):
    """There is no C++ compiler, or it refuses the code."""


def compiler() -> str | None:
    """The system's C++ compiler."""
    for name in ("g++", "clang++", "c++"):
        found = shutil.which(name)
        if found is not None:
            return found
    return None


def cache_folder() -> Path:
    """Where compiled kernels are kept: the user's cache."""
    return Path.home() / ".cache" / "rewright" / "kernels"


def build(text: str, folder: Path | None = None) -> ctypes.CDLL:
    """The loaded library of a translation unit; raises NoCompiler where it cannot be compiled."""
    command = compiler()
    if command is None:
        raise NoCompiler("no C++ compiler was found; install g++ or clang++, or use target='torch'")
    where = folder or cache_folder()
    key = hashlib.sha256("\0".join((command, *FLAGS, _machine(), text)).encode()).hexdigest()[:32]
    library = where / f"{key}.so"
    if not library.exists():
        where.mkdir(parents=True, exist_ok=True)
        _compile(command, text, library)
    return ctypes.CDLL(str(library))


def _machine() -> str:
    """What -march=native depends on."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return os.uname().machine
    return next((line for line in info.read_text().splitlines() if line.startswith("flags")), "")


def _compile(command: str, text: str, library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        source, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        source.write_text(text)
        done = subprocess.run(
            [command, *FLAGS, str(source), "-o", str(made)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
            raise NoCompiler(f"{command} refuses a generated kernel ({first.strip()[:300]}); report it")
        os.replace(made, library)
