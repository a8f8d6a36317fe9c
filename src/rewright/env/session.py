"""A session with XLA: modules in and out, passes, traces, compilation and execution, through one worker process."""

from __future__ import annotations

import importlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import numpy as np

from rewright.env.hlo.literals import with_parameters
from rewright.env.hlo.reentry import check_enterable, has_fusions, laid_out, with_calls
from rewright.env.module import HloModule
from rewright.env.passes import AFTER_LAYOUTS, Pipeline, XlaPass, all_but
from rewright.env.values import KnownValues
from rewright.env.xla.adapter import PassResult
from rewright.env.xla.names import GPU_PASSES, LEGALISING
from rewright.env.xla.targets import target_text
from rewright.env.xla.worker import Worker, XlaError
from rewright.frontends.hlo.proto import read, write
from rewright.ir.errors import RewrightError

Array = np.ndarray[Any, Any]
T = TypeVar("T")
REST = "rest:"
"""Starts the mode of compilation in which XLA runs all its passes but those that follow, separated by commas."""
_MOST_KEPT = 256
_MOST_EXECUTABLES = 64


@dataclass(frozen=True)
class Change:
    """What one run of a pass changed."""

    before: HloModule
    after: HloModule
    name: str
    pipeline: str
    iteration: int


@dataclass
class Session:
    """One worker process and what it has answered; threads that use one session take turns."""

    worker: Worker = field(default_factory=Worker)
    values: KnownValues = field(default_factory=KnownValues)
    """Which values were found equal so far."""
    _known: OrderedDict[tuple[object, ...], Any] = field(default_factory=OrderedDict[tuple[object, ...], Any])
    _compiled: OrderedDict[str, int] = field(default_factory=OrderedDict[str, int])
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)
    """Held while something is made to be remembered, and from the compilation of a module to its run."""

    def close(self) -> None:
        """End the worker process; the session cannot be used any more."""
        self.worker.close()

    def __deepcopy__(self, memo: object) -> Session:
        """The session itself: what is copied goes on with the same process."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a session is a process and cannot be pickled; send the module, or the trajectory (Episode.to_json), and"
            " make a Session there; to branch off in one process, use Episode.fork or copy.deepcopy"
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def remember(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """What was made for a key before, or is made now; the keys that were used last are kept."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            value = self._known[key] = make()
            if len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
            return value

    # --- modules

    def parse(self, text: str) -> HloModule:
        """A module from HLO text, of old dialects too; constants whose values are left out become parameters.

        Raises XlaError where the text is none, and RewrightError for such a constant outside of the entry.
        """
        start = text.find("HloModule")
        if start < 0:
            raise RewrightError("the text is no HLO module: it has no line that starts with HloModule")
        module = HloModule(self.worker.call("parse", text[start:]))
        program, elided = with_parameters(text[start:], module.program)
        return module.replaced(program) if elided else module

    def from_stablehlo(self, source: str | bytes) -> HloModule:
        """A module from StableHLO, as text or bytecode; raises XlaError where it is none."""
        return HloModule(self.worker.call("from_stablehlo", source))

    def from_function(self, function: Any, arguments: Sequence[Any]) -> HloModule:
        """The module that JAX lowers a function to, jitted or not; arguments are arrays or ``jax.ShapeDtypeStruct``.

        Raises RewrightError where the function cannot be traced.
        """
        jax: Any = importlib.import_module("jax")
        jitted = function if hasattr(function, "lower") else jax.jit(function)
        try:
            text = str(jitted.lower(*arguments).compiler_ir("stablehlo"))
        except Exception as error:
            name = getattr(function, "__name__", "the function")
            raise RewrightError(f"JAX cannot trace {name:.40} ({type(error).__name__}: {error!s:.100})") from None
        return self.from_stablehlo(text)

    def load(self, path: str | os.PathLike[str]) -> HloModule:
        """A module from a file: ``.pb`` is HloModuleProto, ``.mlir`` StableHLO, all else HLO text.

        Raises RewrightError where the file cannot be read or holds no module.
        """
        name = os.fspath(path)
        try:
            with open(name, "rb") as file:
                data = file.read()
        except OSError as error:
            raise RewrightError(f"cannot read {name}: {error.strerror}; check the path") from None
        try:
            return self._read(name, data)
        except XlaError as error:
            raise XlaError(f"{name}: {error}") from None

    def _read(self, name: str, data: bytes) -> HloModule:
        if name.endswith(".pb"):
            module = HloModule(data)
            self.fingerprint(module)
            return module
        if name.endswith((".mlir", ".stablehlo")):
            return self.from_stablehlo(data)
        return self.parse(data.decode("utf-8", "replace"))

    def text(self, module: HloModule) -> str:
        """The module as HLO text; the text loses the sign of zero, the proto does not."""
        return self.worker.call("text", module.proto)

    def stablehlo(self, module: HloModule) -> str:
        """The module as StableHLO text."""
        return self.worker.call("to_stablehlo", module.proto)

    def fingerprint(self, module: HloModule) -> str:
        """A SHA-256 of all that the module says but names."""
        return self.remember(("print", module.digest), lambda: self.worker.call("fingerprint", module.proto))

    def analysis(self, module: HloModule) -> dict[str, float]:
        """XLA's static cost analysis of the module."""
        return self.remember(("cost", module.digest), lambda: self.worker.call("analysis", module.proto))

    # --- passes

    def canonical(self, module: HloModule) -> HloModule:
        """The module as XLA sees it at the start of its passes: imported, with no pass run."""
        if module.late:
            return module
        check_enterable(module.program)
        key = ("canonical", module.digest)
        return self.remember(key, lambda: HloModule(self.worker.call("run_passes", module.proto, all_but())))

    def isolated(self, module: HloModule, *names: str) -> HloModule:
        """The module after the named passes alone, where XLA:CPU runs them before it assigns layouts, or fuses."""
        changes = self.early_changes(module, *names)
        return changes[-1].after if changes else self.canonical(module)

    def early_changes(self, module: HloModule, *names: str) -> list[Change]:
        """Those of :meth:`changes` whose results can enter XLA again."""
        return [change for change in self.changes(module, *names) if change.pipeline != AFTER_LAYOUTS]

    def run(self, module: HloModule, what: XlaPass | Pipeline) -> tuple[HloModule, bool]:
        """The module after a pass or a pipeline, and whether that changed anything."""
        if isinstance(what, XlaPass):
            before, after = self.canonical(module), self.isolated(module, what.name)
            return after, self.fingerprint(before) != self.fingerprint(after)
        changed_ever = False
        for _ in range(what.rounds):
            changed = False
            for entry in what.passes:
                module, own = self.run(module, entry)
                changed = changed or own
            changed_ever = changed_ever or changed
            if not changed:
                break
        return module, changed_ever

    def changes(self, module: HloModule, *names: str) -> list[Change]:
        """Each run of the named passes, in order, that changed the module; of all passes where none is named."""
        if module.late:
            raise RewrightError("XLA's passes are behind this module; start from the module before them")
        key = ("changes", module.digest, names)
        return self.remember(key, lambda: self._changes(module, names))

    def _changes(self, module: HloModule, names: tuple[str, ...]) -> list[Change]:
        steps, _ = self.worker.call("trace", module.proto, all_but(*names) if names else "", _names_pattern(names))
        return _by_step(steps)

    def gpu_changes(self, module: HloModule, target: str, *names: str) -> list[Change]:
        """:meth:`changes` of XLA:GPU for a device that need not be there: ``h100``, or the path of its description.

        It needs the extra ``gpu-passes``. With names all other passes are off, and no code is generated, as it needs
        some of them. Raises RewrightError where there is no such device, and where the plugin is missing.
        """
        text = target_text(target)
        if module.late:
            raise RewrightError("XLA's passes are behind this module; start from the module before them")
        disabled = all_but(*names, known=GPU_PASSES) if names else ""
        key = ("gpu changes", module.digest, text, names)
        trace = lambda: self.worker.call("gpu_trace", module.proto, text, disabled, _names_pattern(names))[0]  # noqa: E731
        return self.remember(key, lambda: _by_step(trace()))

    def all_changes(self, module: HloModule, *disabled: str) -> list[Change]:
        """Each run of each pass, but for some, that changed the module on its way to :meth:`optimised`."""
        if module.late:
            raise RewrightError("XLA's passes are behind this module; start from the module before them")
        key = ("all changes", module.digest, disabled)
        trace = lambda: self.worker.call("trace", module.proto, ",".join(disabled), ".*")[0]  # noqa: E731
        return self.remember(key, lambda: _by_step(trace()))

    def optimised(self, module: HloModule, *disabled: str) -> HloModule:
        """The module after XLA:CPU's whole pipeline, but for some passes; it is late."""
        key = ("optimised", module.digest, disabled)
        run = lambda: self.worker.call("run_passes", module.proto, ",".join(disabled))  # noqa: E731
        proto = self.remember(key, run)
        return HloModule(proto, late=True, entrance=module.proto)

    # --- execution

    def compiled(self, module: HloModule, mode: str = "exact") -> str:
        """Compile a module and return its key.

        ``exact`` generates code for the module as it is: only passes that legalise run, fusions are kept. ``default``
        runs all of XLA's passes, ``rest:a,b`` all but a and b, which were decided by hand; ``quick`` is ``exact`` with
        fusion and folding, and little spent on machine code. Raises XlaError where XLA cannot.
        """
        with self._lock:
            key = f"{mode}:{module.digest}"
            if key not in self._compiled or self._compiled[key] != self.worker.started:
                if module.late:
                    entrance = module.entrance or module.proto
                    self.worker.call("compile", key, entrance, "", exact=module.proto)
                else:
                    self._compile(key, module, mode)
                self._compiled[key] = self.worker.started
                if len(self._compiled) > _MOST_EXECUTABLES:
                    gone, started = self._compiled.popitem(last=False)
                    if started == self.worker.started:
                        self.worker.call("forget", [gone])
            self._compiled.move_to_end(key)
            return key

    def _compile(self, key: str, module: HloModule, mode: str) -> None:
        refused = XlaError("nothing was compiled")
        if mode == "default" or mode.startswith(REST):
            self.worker.call("compile", key, module.proto, "" if mode == "default" else mode.removeprefix(REST))
            return
        quick = mode == "quick"
        fused = has_fusions(module.program)
        # Expansions of solvers leave constants that code generation takes for folded, and crashes without.
        folding = LEGALISING | {"constant_folding"}
        for kept in [folding | {"fusion"}, LEGALISING] if quick else [LEGALISING, folding]:
            try:
                if fused:
                    # The pass that assigns layouts reads those that are missing inside of fusions, and crashes.
                    passed = self.worker.call("run_passes", module.proto, all_but(*kept - {"layout-assignment"}))
                    entrance = write(with_calls(module.program))
                    self.worker.call("compile", key, entrance, "", exact=write(laid_out(read(passed))))
                else:
                    self.worker.call("compile", key, module.proto, all_but(*kept), quick=quick)
            except XlaError as error:
                refused = error
            else:
                return
        raise refused

    def execute(self, module: HloModule, inputs: Sequence[Array], mode: str = "exact") -> list[Array]:
        """The outputs of a module, flat."""
        with self._lock:
            return self.worker.call("execute", self.compiled(module, mode), list(inputs))

    def measure(
        self, modules: Sequence[tuple[HloModule, str]], inputs: Sequence[Array], rounds: int = 20, warm: int = 3
    ) -> list[list[float]]:
        """Seconds of each of (module, mode), measured in turns."""
        with self._lock:
            keys = [self.compiled(module, mode) for module, mode in modules]
            return self.worker.call("measure", keys, list(inputs), rounds, warm)


def _names_pattern(names: Sequence[str]) -> str:
    """Which passes are dumped, as a regular expression."""
    return f"^({'|'.join(names)})$" if names else ".*"


def _by_step(steps: Sequence[PassResult]) -> list[Change]:
    """What each step of a trace changed; the steps that pipelines make around their passes are none."""
    found: list[Change] = []
    counts: dict[str, int] = {}
    nested = {step.pipeline for step in steps}
    modules = [HloModule(step.proto) for step in steps]
    for place, after in enumerate(steps[1:], 1):
        if after.name == "pipeline-start" or after.name in nested or steps[place - 1].proto == after.proto:
            continue
        iteration = counts[after.name] = counts.get(after.name, -1) + 1
        found.append(Change(modules[place - 1], modules[place], after.name, after.pipeline, iteration))
    return found
