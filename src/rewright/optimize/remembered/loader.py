"""Fused kernels that PyTorch alone runs: ``load(folder)`` gives a function of tensors by name.

    from run import load
    program = load()
    results = program(x=x, weight=weight)   # tensors by name

``program.register("namespace::name")`` is the same as an operator of PyTorch, which ``torch.export`` keeps and a
``.pt2`` calls; it takes tensors in the order of ``program.names``.

It is for the sizes and dtypes that ``manifest.json`` names, and says so where a call does not fit. ``libraries.json``
names the kernels for several levels of instructions: of those that the processor has all of, the first run. The proof
is in ``certificate.json.gz``, which ``rewright audit`` checks; ``explanation.txt`` says what was fused.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
LIBRARIES = "libraries.json"
"""The file that says which features of a processor each library needs, the fastest library first."""


class Program:
    """The program of a folder, with the kernels for this processor or those of a library that is named.

    Raises RuntimeError where it was changed, or is for another processor.
    """

    def __init__(self, folder: Path, library: str | None = None) -> None:
        digests: dict[str, str] = json.loads((folder / "digests.json").read_text())
        for name, digest in digests.items():
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
                raise RuntimeError(f"{folder / name} was changed since the package was written; write it again")
        bare, calls, self.operators = (_module(folder, name) for name in ("bare", "calls", "operators"))
        self.manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
        needed: dict[str, list[str]] = json.loads((folder / LIBRARIES).read_text())
        there = bare.processor()
        fits = [name for name in needed if library in (None, name) and there.issuperset(needed[name])]
        if not fits:
            missing = sorted(set(needed[library or list(needed)[-1]]) - there)
            raise RuntimeError(f"the kernels need a processor with {', '.join(missing[:6])}; write the package here")
        self.library = fits[0]
        """The file of the kernels that run."""
        loaded = ctypes.CDLL(str(folder / self.library))
        names: dict[str, str] = self.manifest["kernels"]
        launches = {k: bare.native(getattr(loaded, symbol), torch.get_num_threads) for k, symbol in names.items()}
        constants = torch.load(folder / "constants.pt", weights_only=True)

        def bind(entry: dict[str, Any]) -> Any:
            function, arguments = getattr(calls, entry["call"]), entry["arguments"]

            def call(operands: Sequence[torch.Tensor]) -> torch.Tensor:
                found: torch.Tensor = function(*operands, **arguments)
                return found

            return call

        self.steps = bare.Steps(self.manifest["manifest"], constants, launches, bind)
        self.domain = bare.Domain(self.manifest["domain"], {}, bind)
        for part in self.manifest["parts"]:
            if part["by"] == "eager":
                inner = bare.Steps(part["part"], {}, {}, bind)
                self.steps.replace(part["steps"], part["given"], part["made"], inner)

    @property
    def names(self) -> list[str]:
        """The tensors that a call takes."""
        return [name for name, *_ in self.steps.inputs]

    def __call__(self, **tensors: torch.Tensor) -> dict[str, torch.Tensor]:
        """The results by name; raises ValueError where a tensor is missing, or the program is not defined on them.

        A result that is named ``updated:`` and an input is what the program would have written to that input.
        """
        for name in self.names:
            value = tensors.get(name)
            if value is not None and (value.device.type != "cpu" or value.layout is not torch.strided):
                raise ValueError(f"input {name!r} must be a dense tensor of the CPU; move it there")
        given = {name: value.resolve_neg().resolve_conj() for name, value in tensors.items()}
        with torch.no_grad():
            why = self.domain.violation(given)
            if why:
                raise ValueError(why)
            results: dict[str, torch.Tensor] = self.steps(given)
        return results

    def register(self, name: str) -> Any:
        """``torch.ops.<namespace>.<name>``, of tensors in the order of ``names``; ValueError for a name that is none.

        It returns one tensor, or a tuple of them, in the order of the results.
        """
        kinds: dict[str, tuple[list[int], str]] = self.manifest["types"]

        def run(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            return self(**given)

        def types(tensors: Sequence[torch.Tensor]) -> list[tuple[list[int], torch.dtype]]:
            return [(shape, getattr(torch, kind)) for shape, kind in kinds.values()]

        return self.operators.register(name, self.names, list(kinds), run, types)


def load(folder: str | Path = HERE, library: str | None = None) -> Program:
    """The program of a folder, by default of the one that this file is in, as ``Program`` has it."""
    return Program(Path(folder), library)


def _module(folder: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"rewright_package_{name}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
