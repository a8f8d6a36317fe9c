"""The programs that arguments name: graph files, or functions of Python files that are captured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewright.cli.progress import Progress
from rewright.cli.userfile import find_function, is_function_name, user_code
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram

Program = Graph | RankProgram


@dataclass(frozen=True)
class Source:
    """How to get at programs: where progress goes, the mesh, whether gradients are wanted, symbols, processes.

    ``ranks`` is as for ``capture_ranks``; where these run for real, so does a sequential program.
    With ``all_ranks`` every rank of a large mesh is captured. ``guards_queries`` and ``opaque`` are as for ``capture``.
    """

    progress: Progress
    mesh: dict[str, int] | None = None
    backward: bool = False
    symbols: dict[str, dict[int, str]] | None = None
    jobs: int = 1
    ranks: str = "traced"
    all_ranks: bool = False
    guards_queries: bool = False
    opaque: bool = False

    def check_options(self, texts: Sequence[str]) -> None:
        """Raise RewrightError for options of captures where every program is read from a file."""
        if any(is_function_name(text) for text in texts):
            return
        for option, given in (
            ("--backward", self.backward),
            ("--symbolic", self.symbols),
            ("--ranks", self.ranks != "traced"),
            ("--all-ranks", self.all_ranks),
        ):
            if given:
                what = f"{option} says how to capture, and {texts[0]} is captured already"
                raise RewrightError(f"{what}; give it to rewright capture")

    def sequential(self, text: str) -> Graph:
        """The sequential program; raises RewrightError where the argument is none."""
        program = self._capture(text) if is_function_name(text) else self.file(text)
        if isinstance(program, RankProgram):
            raise RewrightError(
                f"{text} holds the programs of {len(program.graphs)} ranks; name a sequential program first"
            )
        return program

    def distributed(self, texts: Sequence[str]) -> RankProgram:
        """The distributed program: one function, one file of all ranks, or one graph file per rank."""
        if len(texts) == 1 and is_function_name(texts[0]):
            return self._capture_ranks(texts[0])
        if len(texts) == 1:
            program = self.file(texts[0], Mesh.of(self.mesh).size if self.mesh else None)
            if isinstance(program, RankProgram):
                return self._checked(program, texts[0])
        from rewright.frontends.files import load_ranks

        if function := next(filter(is_function_name, texts), ""):
            others = ", ".join(text for text in texts if text != function)
            raise RewrightError(
                f"{function} builds the programs of all ranks, and {others} is one too many; leave it out"
            )
        with self.progress.phase("load", f"reading {len(texts)} files"):
            return load_ranks(texts, self.mesh)

    def _checked(self, program: RankProgram, text: str) -> RankProgram:
        """The program, whose mesh must be the one that was given."""
        own = {name.split(".")[0] for name, _ in program.mesh.axes}
        if self.mesh is not None and (own <= {"replica", "partition"} or (not program.inputs and len(own) == 1)):
            from rewright.frontends.ranks import on_mesh

            return on_mesh(program, self.mesh)  # captured without a mesh: the axes are the user's to name
        if self.mesh is not None and program.mesh != Mesh.of(self.mesh):
            axes = ",".join(f"{name}={size}" for name, size in program.mesh.axes)
            raise RewrightError(f"{text} holds the programs of the mesh {axes}; leave --mesh out")
        return program

    def file(self, text: str, devices: int | None = None) -> Program:
        """A program saved earlier."""
        from rewright.frontends.files import load

        if is_function_name(text):
            raise RewrightError(f"{text} is no saved program; save it first with rewright capture")
        with self.progress.phase("load", f"reading {text}"):
            return load(text, devices)

    def capture(self, text: str) -> Program:
        """The program of a function: of all ranks where a mesh was given, else sequential."""
        return self._capture(text) if self.mesh is None else self._capture_ranks(text)

    def tables(self, text: str) -> dict[str, Any]:
        """The buffers of a module that have values: tables that it computed when it was made."""
        if not is_function_name(text):
            return {}
        module, _, _ = find_function(text)()
        if not hasattr(module, "named_buffers"):
            return {}
        return {name: buffer for name, buffer in module.named_buffers() if not buffer.is_meta}

    def _capture(self, text: str) -> Graph:
        function = find_function(text)
        with self.progress.phase("capture", f"capturing {text}"), user_code(function.path, "capturing"):
            from rewright.frontends.capture import building, capture

            with building():
                module, args, kwargs = function()
            return capture(
                module,
                args,
                kwargs,
                backward=self.backward,
                dynamic=self.symbols,
                run=self.ranks != "traced",
                guards_queries=self.guards_queries,
                opaque=self.opaque,
            )

    def _capture_ranks(self, text: str) -> RankProgram:
        if self.mesh is None:
            raise RewrightError(f"{text} is a function of all ranks; give the mesh, for example --mesh tp=8")
        function = find_function(text)
        with (
            self.progress.phase("capture", f"capturing {text} on {self.mesh}"),
            user_code(function.path, "capturing"),
        ):
            from rewright.frontends.capture import capture_ranks, framework_of

            return capture_ranks(
                function,
                mesh=self.mesh,
                backward=self.backward,
                dynamic=self.symbols,
                jobs=self.jobs,
                ranks=self.ranks,
                all_ranks=self.all_ranks,
                framework=framework_of(function.function, ()),
            )


def check_target(path: Path) -> None:
    """Raise RewrightError before long work where its result could not be written."""
    if not path.parent.is_dir():
        raise RewrightError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    if path.is_dir():
        raise RewrightError(f"cannot write {path}: it is a folder; name a file")
    if not os.access(path.parent, os.W_OK):
        raise RewrightError(f"cannot write {path}: the folder is read-only; name a file in another one")
