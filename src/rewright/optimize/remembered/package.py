"""Packages: a folder that runs with PyTorch alone, and carries its proof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rewright.frontends.torch.eager import calls
from rewright.ir.errors import RewrightError
from rewright.optimize.remembered import loader
from rewright.optimize.remembered.entry import FOREIGN_CALLS, calls_of, write_entry
from rewright.optimize.running import bare, operators
from rewright.optimize.sizes.runner import FlexibleRunner

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized


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
        if not write_entry(found, folder, texts):
            raise RewrightError("a call of the program runs in NumPy, or it is for no CPU: it cannot be written down")
    except OSError as error:
        raise RewrightError(f"cannot write to {folder}: {error.strerror or error}; name another folder") from None
    return sorted(folder.iterdir())
