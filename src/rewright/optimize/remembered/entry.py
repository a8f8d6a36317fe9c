"""What is kept of an optimised program: a folder of files, with the digest of each."""

from __future__ import annotations

import ctypes
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rewright.frontends.torch.eager.operators import FOREIGN, Call
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.floor.peers import compile_graph
from rewright.optimize.remembered.domains import domain_document
from rewright.optimize.remembered.folders import DIGESTS, is_whole, write_folder
from rewright.optimize.running.bare import Steps, native, processor
from rewright.optimize.running.execution import Runner
from rewright.optimize.running.manifest import Manifest, constants_of, manifest_of_graph, types_document
from rewright.optimize.sizes.inputs import SizedDomain
from rewright.optimize.sizes.runner import FlexibleRunner

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized
    from rewright.optimize.planning.plan import Plan

FORMAT = 3
FOREIGN_CALLS = {FOREIGN}
"""Calls that PyTorch alone cannot make."""
CERTIFICATE = "certificate.json.gz"
"""The file of the certificate, for ``rewright audit``."""


@dataclass(frozen=True)
class Entry:
    """A folder that was read, and is whole."""

    folder: Path
    document: Mapping[str, Any]

    @property
    def is_sized(self) -> bool:
        """Whether its kernels take sizes."""
        return "sized" in self.document

    def sized_runner(self, captured: Graph, hints: Mapping[str, int], verify: bool) -> FlexibleRunner:
        """The kernels that take sizes; raises RewrightError where they cannot be built.

        Those for sizes that nobody asked for yet are tested against the program, where ``verify`` says so.
        """
        from rewright.optimize.remembered.sized import sized_runner
        from rewright.optimize.sizes.testing import Tests

        return sized_runner(self.document["sized"], self.folder, Tests(captured, hints) if verify else None)

    @property
    def certificate(self) -> Path:
        """Where the certificate is, if there is one."""
        return self.folder / CERTIFICATE

    def runner(self) -> Steps:
        """The kernels and the calls of a library; raises RewrightError where they cannot be loaded."""
        library = self.folder / "kernels.so"
        try:
            loaded = ctypes.CDLL(str(library))
            constants = torch.load(self.folder / "constants.pt", weights_only=True)
            names: dict[str, str] = self.document["kernels"]
            launches = {name: native(getattr(loaded, symbol), torch.get_num_threads) for name, symbol in names.items()}
        except (OSError, AttributeError, RuntimeError) as error:
            raise RewrightError(f"{library} cannot be loaded ({error}); remove {self.folder}") from None
        found = Steps(self.document["manifest"], constants, launches, bind_entry)
        for part in self.document["parts"]:
            self._replace(found, part)
        return found

    def _replace(self, steps: Steps, part: Mapping[str, Any]) -> None:
        """Compute a part as it was fastest: by torch's calls, or by what Inductor makes of them at the first call."""
        inner = Steps(part["part"], {}, {}, bind_entry)
        names = [f"t{p}" for p in part["given"]]
        compiled: list[Callable[..., Any]] = []

        def by_inductor(given: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
            values = [given[name] for name in names]
            if not compiled:
                compiled.append(_compiled(inner, names, values))
            return dict(zip(inner.outputs, compiled[0](*values), strict=True))

        steps.replace(part["steps"], part["given"], part["made"], by_inductor if part["by"] == "inductor" else inner)

    def text(self, name: str) -> str:
        """A file of it."""
        return (self.folder / name).read_text()


def _compiled(inner: Steps, names: list[str], values: list[torch.Tensor]) -> Callable[..., Any]:
    def call(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(inner(dict(zip(names, given, strict=True))).values())

    try:
        return compile_graph(call, values)
    except Exception:  # what it cannot compile here runs call by call
        return call


def bind_entry(entry: Mapping[str, Any]) -> Call:
    """The call of an entry."""
    return Call(entry["call"], entry["arguments"])


def write_entry(found: Optimized, folder: Path, more: Mapping[str, str | bytes]) -> bool:
    """Write a folder whole, or not at all; false where the program cannot be written down.

    ``more`` is what further files have. Raises OSError where the folder cannot be written.
    """
    return write_folder(folder, lambda made: _fill(found, made), more)


def _fill(found: Optimized, folder: Path) -> bool:
    if found.entry is not None:
        for path in found.entry.folder.iterdir():
            if path.name != DIGESTS:
                shutil.copy(path, folder)
        return True
    document = _document(found)
    if document is None or found.printed is None or found.plan is None:
        return False
    found.emit(folder)
    if isinstance(found.runner, FlexibleRunner):
        from rewright.optimize.remembered.sized import sized_texts  # and so the planner

        for name, text in sized_texts(found.runner).items():
            (folder / name).write_text(text)
    elif found.printed.library is None:
        return False
    else:
        shutil.copyfile(found.printed.library, folder / "kernels.so")
        torch.save(constants_of(found.plan.graph), folder / "constants.pt")
    (folder / "manifest.json").write_text(json.dumps(document))
    return True


def _document(found: Optimized) -> dict[str, Any] | None:
    """All that JSON holds of a program; None where a call of it cannot be written down."""
    printed, plan = found.printed, found.plan
    if printed is None or plan is None or printed.target != "cpu":
        return None
    own = _sized(found.runner, plan) if isinstance(found.runner, FlexibleRunner) else _fixed(found)
    if own is None:
        return None
    return {
        "format": FORMAT,
        "processor": sorted(processor()),
        "status": found.status,
        "reason": found.reason,
        "runs": found.runs,
        "evidence": found.trust.evidence,
        "assumptions": list(found.trust.assumptions),
        "calls": [] if found.calls is None else found.calls.lines(),
        "timings": [] if found.floor is None else found.floor.lines(),
        "work": None if found.work is None else [found.work.program, found.work.plan],
        "kernels": {k.name: s.name for k, s in zip(plan.kernels, printed.sources, strict=True)},
        "library": len(plan.steps) - len(plan.kernels),
        **own,
    }


def _sized(runner: FlexibleRunner, plan: Plan) -> dict[str, Any] | None:
    """What kernels that take sizes are made of."""
    from rewright.optimize.remembered.sized import sized_document

    document = sized_document(runner, plan)
    return None if document is None else {"sized": document}


def _fixed(found: Optimized) -> dict[str, Any] | None:
    """The steps of a program whose sizes are numbers, and where it is defined."""
    runner, plan = found.runner, found.plan
    if not isinstance(runner, Runner) or plan is None:
        return None
    assert not isinstance(found.domain, SizedDomain)
    manifest: Manifest = runner.manifest
    parts: list[Any] = []
    for other in runner.others.values():
        inner = manifest_of_graph(other.graph, other.kinds)
        if not inner.is_complete:
            return None
        said = {"steps": list(other.steps), "given": list(other.given), "made": list(other.made), "by": other.by}
        parts.append({**said, "part": inner.document})
    domain = domain_document(found.domain)
    if not manifest.is_complete or domain is None:
        return None
    return {"manifest": manifest.document, "types": types_document(plan.graph), "parts": parts, "domain": domain}


def calls_of(found: Optimized) -> set[str]:
    """The names of all calls of a library that a program makes."""
    document = found.entry.document if found.entry is not None else _document(found) or {"manifest": {"steps": []}}
    whole: list[Any] = [document["manifest"], *(part["part"] for part in document.get("parts", ()))]
    whole += [document["domain"]["manifest"]] if "domain" in document else []
    entries = [e for m in whole for e in (*m["steps"], *m.get("views", {}).values())]
    return {e["call"] for e in entries if "call" in e}


def read_entry(folder: Path) -> Entry | None:
    """A folder, where every file has its digest and none is missing; None for one that is damaged or not there."""
    try:
        if not is_whole(folder):
            return None
        document = json.loads((folder / "manifest.json").read_text())
        return Entry(folder, document) if document["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
