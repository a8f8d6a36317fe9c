"""Packages: a folder that runs with PyTorch alone, and carries its proof."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rewright.frontends.torch.eager import calls
from rewright.ir.errors import RewrightError
from rewright.optimize.floor.measuring import agree
from rewright.optimize.floor.peers import drawn
from rewright.optimize.remembered import loader
from rewright.optimize.remembered.entry import FOREIGN_CALLS, calls_of, write_entry
from rewright.optimize.running import bare, building, operators
from rewright.optimize.sizes.runner import FlexibleRunner

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized

SOURCE = "kernels.cpp"


def write_package(found: Optimized, folder: Path) -> list[Path]:
    """Write a package; returns its files. Raises RewrightError where there can be none, or the folder has others."""
    if found.runner is None:
        raise RewrightError(f"there are no kernels to write ({found.reason}); a package is made of kernels")
    if isinstance(found.runner, FlexibleRunner):
        raise RewrightError("the kernels take its sizes; leave these fixed to package it")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / "manifest.json").exists())):
        raise RewrightError(f"{folder} is there and is no package; name a new folder")
    if unknown := calls_of(found) & FOREIGN_CALLS:
        raise RewrightError(f"the program leaves {min(unknown)} to calls that only rewright runs; package a part of it")
    files = {"run.py": loader, "bare.py": bare, "calls.py": calls, "operators.py": operators}
    texts = {name: Path(str(module.__file__)).read_text() for name, module in files.items()}
    try:
        if not write_entry(found, folder, {**texts, **_libraries(found)}):
            raise RewrightError("a call of the program runs in NumPy, or it is for no CPU: it cannot be written down")
    except OSError as error:
        raise RewrightError(f"cannot write to {folder}: {error.strerror or error}; name another folder") from None
    _check_libraries(found, folder)
    return sorted(folder.iterdir())


def _check_libraries(found: Optimized, folder: Path) -> None:
    """Run each library that this processor can run: their kernels for products are other code than ``kernels.so``.

    Raises RewrightError, and removes the package, where one computes something else.
    """
    assert found.graph is not None and found.runner is not None
    given = drawn(found.graph, bare.CPU)
    if loader.load(folder).domain.violation(given):
        return  # these draws are none of its inputs
    expected = found.runner(given)
    needed: dict[str, list[str]] = json.loads((folder / loader.LIBRARIES).read_text())
    for name, features in needed.items():
        if not bare.processor().issuperset(features):
            continue
        program = loader.load(folder, name)
        if not agree(list(expected.values()), list(program.steps(given).values())):
            shutil.rmtree(folder)
            raise RewrightError(f"the kernels of {name} compute something else than those of this processor; report it")


def _libraries(found: Optimized) -> dict[str, str | bytes]:
    """The kernels for less of a processor than there is here, and what each library needs.

    A call of the package runs the first one that the processor has all instructions for.
    """
    needed = {"kernels.so": sorted(bare.processor())}
    files: dict[str, str | bytes] = {}
    text = found.entry.text(SOURCE) if found.entry is not None else found.printed.files[SOURCE] if found.printed else ""
    for level, features in building.features_of(platform.machine()).items():
        try:
            library = building.compile_for(level, text).read_bytes()
        except building.NoCompiler:  # an older one does not know the level
            continue
        files[f"kernels-{level}.so"] = library
        needed[f"kernels-{level}.so"] = features
    return {**files, loader.LIBRARIES: json.dumps(needed, indent=1)}
