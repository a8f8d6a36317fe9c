"""Compiling C++ into shared libraries, which are kept by the digest of their text."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from rewright.ir.errors import RewrightError

FLAGS = (
    "-O3",
    "-std=c++17",
    "-fopenmp",
    "-fPIC",
    "-fwrapv",
    "-shared",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-w",
)


NATIVE = "native"
"""The instructions of the processor at hand."""
LEVELS = {
    "x86_64": {
        "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
        "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
        "x86-64": "",
    },
    "aarch64": {"armv8-a": ""},
}
"""For machines of a kind, levels of instructions as compilers name them, and the features of each as Linux names them.

A level has those of the levels below it. AMD64 is as its psABI defines it; NEON is part of armv8-a.
"""


def features_of(machine: str) -> dict[str, list[str]]:
    """What a processor must have for each level of a kind of machine, with the most first."""
    levels = LEVELS.get(machine, {})
    names = list(levels)
    wanted = {n: {f for below in names[i:] for f in levels[below].split()} for i, n in enumerate(names)}
    return {name: sorted(features | {f"type {machine}"}) for name, features in wanted.items()}


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
    """Where compiled kernels are kept: the user's cache, as the XDG base directory specification has it."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "rewright" / "kernels"


def toolchain() -> tuple[str, ...]:
    """What compiled code depends on besides its text: the compiler, its version and flags, the processor."""
    command = compiler() or ""
    return (command, version_of(command) if command else "", *FLAGS, _machine())


def build(text: str, folder: Path | None = None) -> ctypes.CDLL:
    """The loaded library of a translation unit; raises NoCompiler where it cannot be compiled."""
    library = compile_for(NATIVE, text, folder)
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise NoCompiler(f"{library} cannot be loaded ({error}); remove it") from None


def compile_for(level: str, text: str, folder: Path | None = None) -> Path:
    """The library of a translation unit for a level of instructions; raises NoCompiler where it cannot be compiled.

    Beside every library lies the digest of its file: one that was damaged or exchanged is built again. Where the cache
    cannot be written, libraries are kept as long as this process.
    """
    command = compiler()
    if command is None:
        raise NoCompiler("no C++ compiler was found; install g++ or clang++, or use target='torch'")
    key = hashlib.sha256("\0".join((*toolchain(), level, text)).encode()).hexdigest()[:32]
    library = _folder(folder or cache_folder()) / f"{key}.so"
    if not _is_intact(library):
        _compile(command, level, text, library)
    return library


def _folder(wanted: Path) -> Path:
    """The folder, or one of this process where it cannot be written."""
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        if os.access(wanted, os.W_OK | os.X_OK):
            return wanted
    except OSError:
        pass
    return Path(_own_folder().name)


@cache
def _own_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="rewright-")


def _digest_file(library: Path) -> Path:
    return library.with_suffix(".sha256")


def _is_intact(library: Path) -> bool:
    """Whether a library is what was built: its file has the digest that lies beside it."""
    try:
        return hashlib.sha256(library.read_bytes()).hexdigest() == _digest_file(library).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return False


@cache
def version_of(command: str) -> str:
    """What a compiler says of itself."""
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


def _machine() -> str:
    """What -march=native depends on."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return os.uname().machine
    return next((line for line in info.read_text().splitlines() if line.startswith("flags")), "")


def _compile(command: str, level: str, text: str, library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        source, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        source.write_text(text)
        done = subprocess.run(
            [command, *FLAGS, f"-march={level}", str(source), "-o", str(made)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
            raise NoCompiler(f"{command} refuses a generated kernel ({first.strip()[:300]}); report it")
        (made.with_suffix(".sha256")).write_text(hashlib.sha256(made.read_bytes()).hexdigest() + "\n")
        os.replace(made, library)
        os.replace(made.with_suffix(".sha256"), _digest_file(library))
