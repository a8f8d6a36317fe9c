"""The one file that uses private names of jaxlib; everything else speaks HloModuleProto bytes, text and arrays.

A hook that XLA calls at the end of its HLO passes has two uses. It keeps the module and raises, so that a compilation
ends before code generation: that is how passes are run. Or it hands XLA another module of the same signature, which is
then scheduled and compiled exactly as it is. Which passes run is set per compilation by the list of disabled passes,
the only one that is seen inside nested pipelines.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from rewright.env.xla.pjrt import CompileError, Plugin
from rewright.frontends.hlo.wire import MODULE, blob, read_fields
from rewright.ir.errors import RewrightError
from rewright.packages import missing, package

SUPPORTED = ((0, 10), (0, 11))
"""First version of jaxlib that is known to work, and the first that is not."""
ENZYME = ((0, 0, 16), (0, 0, 17))
"""The same of Enzyme-JAX."""
_DUMP_NAME = re.compile(
    r"module_\d+\.(?P<module>.*?)\.(?P<number>\d{4})\.(?P<pipeline>.+)\.after_(?P<after>.+?)\.before_.+\.hlo\.pb$"
)
_PLUGINS = ("jax-cuda12-pjrt", "jax-cuda13-pjrt")
_START = ".before_optimizations.hlo.pb"
_STOPPED = "rewright has the module and stops before code generation"


@dataclass(frozen=True)
class PassResult:
    """A module after a pass of a pipeline changed it; the first of a trace is the module before all passes."""

    pipeline: str
    name: str
    proto: bytes


class _Stop(Exception):
    """Ends a compilation before code generation."""


def check_version() -> None:
    """Raise RewrightError where jax is missing or of a version that this adapter does not know."""
    try:
        found = version("jaxlib")
        version("jax")
    except PackageNotFoundError:
        raise RewrightError(missing("jax", "rewright env")) from None
    parts = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if not SUPPORTED[0] <= parts < SUPPORTED[1]:
        raise RewrightError(
            f"jaxlib {found} is not supported, its private names may differ; install jaxlib >=0.10,<0.11"
        )


def cuda_plugin() -> str:
    """The path of the CUDA plugin, which compiles without a GPU; raises RewrightError where there is none that fits."""
    for name in _PLUGINS:
        try:
            found, own = version(name), version("jaxlib")
            spec = importlib.util.find_spec(f"jax_plugins.xla_{name.split('-')[1]}")
        except (PackageNotFoundError, ModuleNotFoundError):
            continue
        if found != own:
            raise RewrightError(f"{name} {found} is not of jaxlib {own}; install {name}=={own}")
        for folder in spec.submodule_search_locations or () if spec is not None else ():
            path = os.path.join(folder, "xla_cuda_plugin.so")
            if os.path.exists(path):
                return path
    raise RewrightError(
        f"no CUDA plugin of XLA is installed; run {package('jax-cuda12-pjrt').command}, which needs no GPU"
    )


def _check_enzyme() -> None:
    """Raise RewrightError where Enzyme-JAX is missing or of a version that this adapter does not know."""
    try:
        found = version("enzyme-ad")
    except PackageNotFoundError:
        raise RewrightError(missing("enzyme-ad", "Enzyme-JAX")) from None
    if not ENZYME[0] <= tuple(int(part) for part in re.findall(r"\d+", found)[:3]) < ENZYME[1]:
        raise RewrightError(f"enzyme-ad {found} is not supported, its names may differ; install enzyme-ad==0.0.16")


def fingerprint(proto: bytes) -> str:
    """A SHA-256 of a module that does not see names, and sees all else that HLO text says."""
    hlo: Any = importlib.import_module("jaxlib._hlo")
    # XLA's own fingerprint leaves out the values of constants, by a setting that Python cannot reach: all others are
    # taken over from it.
    options, own = hlo.HloPrintOptions(), hlo.HloPrintOptions.fingerprint()
    for setting in dir(own):
        if isinstance(getattr(own, setting), bool):
            setattr(options, setting, getattr(own, setting))
    options.print_backend_config = options.print_large_constants = True
    module = hlo.HloModule.from_serialized_hlo_module_proto(proto)
    return hashlib.sha256(module.to_string(options).encode()).hexdigest()


@contextmanager
def transforming(function: Callable[[bytes], bytes | None]) -> Generator[None]:
    """Inside of the block XLA:CPU of this process calls a function at the end of its passes on every module.

    What it returns is scheduled and compiled in the place of the module; None leaves the module as it is.
    """
    check_version()
    transforms: Any = importlib.import_module("jax.extend.xla")
    name = f"rewright-{uuid.uuid4().hex}"
    transforms.register_hlo_module_transformation(function, name=name, platforms="cpu")
    try:
        yield
    finally:
        transforms.clear_hlo_module_transformation(name, platforms="cpu")


class Adapter:
    """XLA:CPU in this process. Every method may end the process: call it through a worker."""

    def __init__(self) -> None:
        check_version()
        jax: Any = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        transforms: Any = importlib.import_module("jax.extend.xla")
        self._jax = jax
        self._hlo: Any = importlib.import_module("jaxlib._hlo")
        self._private: Any = importlib.import_module("jaxlib._jax")
        self._xc: Any = importlib.import_module("jaxlib.xla_client")
        self._device: Any = jax.local_devices(backend="cpu")[0]
        self._client: Any = self._device.client
        self._devices: Any = self._xc.DeviceList((self._device,))
        self._mode = ""
        self._captured: bytes | None = None
        self._swap: bytes | None = None
        self._executables: dict[str, Any] = {}
        self._plugin: Plugin | None = None
        transforms.register_hlo_module_transformation(self._hook, name="rewright", platforms="cpu")

    def _hook(self, proto: bytes) -> bytes | None:
        if self._mode == "capture":
            self._captured = proto
            raise _Stop(_STOPPED)
        return self._swap if self._mode == "swap" else None

    # --- modules

    def parse(self, text: str) -> bytes:
        """The HloModuleProto of an HLO text."""
        return self._hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()

    def _module(self, proto: bytes) -> Any:
        return self._hlo.HloModule.from_serialized_hlo_module_proto(proto)

    def text(self, proto: bytes) -> str:
        """HLO text with constants and backend configurations, without metadata."""
        options = self._hlo.HloPrintOptions()
        options.print_metadata = False
        options.print_backend_config = True
        options.print_large_constants = True
        return self._module(proto).to_string(options)

    def fingerprint(self, proto: bytes) -> str:
        """A SHA-256 that does not see names, and sees all else that HLO text says."""
        return fingerprint(proto)

    def from_stablehlo(self, source: str | bytes) -> bytes:
        """The HloModuleProto of a StableHLO module, as text or bytecode."""
        data = source.encode() if isinstance(source, str) else source
        computation = self._private.mlir.mlir_module_to_xla_computation(data, use_tuple_args=False, return_tuple=False)
        return computation.as_serialized_hlo_module_proto()

    def to_stablehlo(self, proto: bytes) -> str:
        """The module as StableHLO text."""
        ir: Any = importlib.import_module("jaxlib.mlir.ir")
        interpreters: Any = importlib.import_module("jax._src.interpreters.mlir")
        with interpreters.make_ir_context():
            return str(ir.Module.parse(self._entrance(proto)))

    def _entrance(self, proto: bytes) -> bytes:
        return self._private.mlir.hlo_to_stablehlo(self._module(proto).as_serialized_hlo_module_proto())

    def analysis(self, proto: bytes) -> dict[str, float]:
        """XLA's static cost analysis: flops, transcendentals, bytes accessed and so on."""
        return dict(self._private.hlo_module_cost_analysis(self._client, self._module(proto)))

    def debug_options(self) -> dict[str, str | int | float | bool]:
        """The flags of XLA that jaxlib shows, with their values where nothing sets them."""
        options = self._xc.CompileOptions()  # what it holds is gone with it
        found = options.executable_build_options.debug_options
        values = {name: getattr(found, name) for name in dir(found) if name.startswith("xla_")}
        return {name: value for name, value in values.items() if isinstance(value, (str, int, float, bool))}

    # --- passes

    def _compile(self, entrance: bytes, mode: str, swap: bytes | None = None, **flags: Any) -> Any:
        options = self._xc.CompileOptions()
        for name, value in flags.items():
            setattr(options.executable_build_options.debug_options, name, value)
        self._mode, self._captured, self._swap = mode, None, swap
        try:
            return self._client.compile_and_load(entrance, self._devices, options)
        except RuntimeError as error:
            # The hook ends a compilation by an error of its own once it has the module. XLA hands it on as an error of
            # its own type (jax.errors.JaxRuntimeError), with what the hook said inside: that tells it from a failure of
            # XLA, which is one even where a module was captured before it.
            if self._captured is None or _STOPPED not in str(error):
                raise
            return None
        finally:
            self._mode = ""

    def run_passes(self, proto: bytes, disabled: str) -> bytes:
        """The module after all passes but those in a comma list."""
        self._compile(self._entrance(proto), "capture", xla_disable_hlo_passes=disabled)
        if self._captured is None:
            raise RewrightError("XLA ended its passes without a module; the hook was not called")
        return self._captured

    def trace(self, proto: bytes, disabled: str, only: str = ".*") -> tuple[list[PassResult], bytes]:
        """The module before all passes and after every pass that changed it, and the module at the end."""
        steps = self._dump(lambda flags: self._compile(self._entrance(proto), "capture", **flags), disabled, only)
        if self._captured is None or not steps:
            raise RewrightError("XLA ended its passes without a module; the hook was not called")
        return steps, self._captured

    def _dump(self, compile: Callable[[dict[str, Any]], Any], disabled: str, only: str) -> list[PassResult]:
        """What a compilation dumps, given the flags to dump it."""
        folder = tempfile.mkdtemp(prefix="rewright-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        try:
            compile(
                {
                    "xla_dump_to": folder,
                    "xla_dump_hlo_as_proto": True,
                    "xla_dump_hlo_pass_re": only,
                    "xla_enable_dumping": True,
                    "xla_disable_hlo_passes": disabled,
                }
            )
            return self._read_dump(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def gpu_trace(self, proto: bytes, target: str, disabled: str, only: str = ".*") -> tuple[list[PassResult], str]:
        """The same of XLA:GPU for a device that need not be there, and what stopped code generation, if anything did.

        ``target`` is a GpuTargetConfigProto in text form.
        """
        stopped: list[str] = []

        def compile(flags: dict[str, Any]) -> None:
            del flags["xla_enable_dumping"]
            options = self._xc.CompileOptions()
            # Nothing can be tried out on a device that is not there.
            overrides = {"xla_gpu_autotune_level": "0", **flags}
            options.env_option_overrides = list(overrides.items())
            try:
                self._gpu().compile(target, proto, options.SerializeAsString())
            except CompileError as error:
                stopped.append(str(error))

        steps = self._dump(compile, disabled, only)
        if not steps:
            raise RewrightError(stopped[0] if stopped else "XLA:GPU dumped no module")
        return steps, "".join(stopped)

    def _gpu(self) -> Plugin:
        if self._plugin is None:
            self._plugin = Plugin(cuda_plugin())
        return self._plugin

    def _read_dump(self, folder: str) -> list[PassResult]:
        start: list[PassResult] = []
        steps: list[PassResult] = []
        for name in sorted(os.listdir(folder)):
            found = _DUMP_NAME.match(name)
            if found is None and not name.endswith(_START):
                continue
            with open(os.path.join(folder, name), "rb") as file:
                module = blob(read_fields(file.read()), MODULE)
            if found is None:
                start.append(PassResult("", "start", module))
            else:
                steps.append(PassResult(found["pipeline"], found["after"], module))
        return start + steps

    # --- Enzyme-JAX

    def enzyme_patterns(self) -> list[str]:
        """The patterns of the installed Enzyme-JAX, as a pipeline spells them."""
        _check_enzyme()
        found = importlib.import_module("enzyme_ad.jax").optimization_passes()
        named = re.search(r"patterns=([^}]*)\}", found)
        return [own for own in named[1].split(";") if own] if named else []

    def enzyme(self, proto: bytes, patterns: str) -> bytes:
        """A module after patterns of Enzyme-JAX, separated by semicolons, to a fixpoint."""
        _check_enzyme()
        call: Any = importlib.import_module("enzyme_ad.jax.enzyme_call")
        pipeline = f"enzyme-hlo-generate-td{{patterns={patterns}}},transform-interpreter,enzyme-hlo-remove-transform"
        name, text = call.run_pass_pipeline(["main"], self.to_stablehlo(proto), pipeline)
        # What the patterns found out about values on the way, in a dialect that XLA does not have.
        plain = re.sub(r"(, )?enzymexla\.\w+ = \[[^\]]*\]", "", text).replace("{, ", "{")
        return self.from_stablehlo(plain.replace(f"func.func private @{name}(", "func.func public @main("))

    # --- execution

    def compile(
        self, key: str, proto: bytes, disabled: str, exact: bytes | None = None, quick: bool = False
    ) -> dict[str, int]:
        """Compile under a key: the module with the passes that are left, or exactly another of its signature.

        ``quick`` spends as little as possible on machine code.
        """
        if exact is None:
            cheap: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
            flags = cheap if quick else {}
            executable = self._compile(self._entrance(proto), "", xla_disable_hlo_passes=disabled, **flags)
        else:
            executable = self._compile(self._entrance(proto), "swap", swap=exact)
        self._executables[key] = executable
        statistics = executable.get_compiled_memory_stats()
        return {
            "code bytes": executable.size_of_generated_code_in_bytes(),
            "temporary bytes": statistics.temp_size_in_bytes,
        }

    def compiled_module(self, key: str) -> bytes:
        """The module that an executable was generated from."""
        return self._executable(key).hlo_modules()[0].as_serialized_hlo_module_proto()

    def forget(self, keys: Sequence[str] = ()) -> None:
        """Free executables; all of them where none is named."""
        for key in keys or list(self._executables):
            self._executables.pop(key, None)

    def _executable(self, key: str) -> Any:
        if key not in self._executables:
            raise RewrightError("the executable is gone; compile the module again")
        return self._executables[key]

    def execute(self, key: str, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """The outputs of an executable, flat."""
        arrays = [self._jax.device_put(x, self._device) for x in inputs]
        results = self._executable(key).execute_sharded(arrays).disassemble_into_single_device_arrays()
        return [np.asarray(result[0]) for result in results]

    def measure(
        self, keys: Sequence[str], inputs: Sequence[np.ndarray[Any, Any]], rounds: int, warm: int
    ) -> list[list[float]]:
        """Seconds of each executable, ``rounds`` of them; the executables take turns within a round."""
        arrays = [self._jax.device_put(x, self._device) for x in inputs]
        executables = [self._executable(key) for key in keys]
        seconds: list[list[float]] = [[] for _ in keys]
        for number in range(warm + rounds):
            for place, executable in enumerate(executables):
                started = time.perf_counter()
                for result in executable.execute_sharded(arrays).disassemble_into_single_device_arrays():
                    result[0].block_until_ready()
                if number >= warm:
                    seconds[place].append(time.perf_counter() - started)
        return seconds

    def processor_seconds(self) -> float:
        """Processor time that this process has used, in all its threads."""
        return time.process_time()

    def process_number(self) -> int:
        """The number of this process."""
        return os.getpid()

    def abort(self) -> None:
        """End the process at once, as a failed check inside XLA does; for tests of what survives it."""
        os.abort()
