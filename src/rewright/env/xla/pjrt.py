"""Compiling HLO for a device that is not there, through the C interface of a PJRT plugin (openxla/xla, pjrt_c_api.h).

The interface takes the HloModuleProto as it is. What jaxlib offers instead goes through StableHLO, which has no word
for a fusion. Functions stand at fixed places of a table: later versions of the interface only add to it.
"""

from __future__ import annotations

import ctypes
from typing import Any

from rewright.ir.errors import RewrightError

OLDEST = (0, 112)
"""The version of the interface that the places below were taken from; a plugin may be newer, and no older."""
_ERROR_DESTROY, _ERROR_MESSAGE, _INITIALIZE, _TOPOLOGY, _COMPILE, _EXECUTABLE_DESTROY = 0, 1, 3, 82, 89, 40
_STRING = 0


class CompileError(Exception):
    """What the plugin says."""


def _arguments(name: str, *fields: tuple[str, Any]) -> Any:
    head = [("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p)]
    return type(name, (ctypes.Structure,), {"_fields_": [*head, *fields]})


def _new(kind: Any, *values: Any) -> Any:
    return kind(ctypes.sizeof(kind), None, *values)


_SIZE, _POINTER, _BYTES = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_Version = _arguments("Version", ("major", ctypes.c_int), ("minor", ctypes.c_int))
_Table = _arguments("Table", ("version", _Version))
_ErrorDestroy = _arguments("ErrorDestroy", ("error", _POINTER))
_ErrorMessage = _arguments("ErrorMessage", ("error", _POINTER), ("text", _BYTES), ("size", _SIZE))
_Initialize = _arguments("Initialize")
_NamedValue = _arguments(
    "NamedValue",
    ("name", _BYTES),
    ("name_size", _SIZE),
    ("type", ctypes.c_int),
    ("value", _BYTES),
    ("value_size", _SIZE),
)
_TopologyCreate = _arguments(
    "TopologyCreate",
    ("name", _BYTES),
    ("name_size", _SIZE),
    ("options", _POINTER),
    ("options_size", _SIZE),
    ("topology", _POINTER),
)
_Program = _arguments("Program", ("code", _BYTES), ("code_size", _SIZE), ("format", _BYTES), ("format_size", _SIZE))
_Compile = _arguments(
    "Compile",
    ("topology", _POINTER),
    ("program", _POINTER),
    ("options", _BYTES),
    ("options_size", _SIZE),
    ("client", _POINTER),
    ("executable", _POINTER),
)
_ExecutableDestroy = _arguments("ExecutableDestroy", ("executable", _POINTER))


class Plugin:
    """A plugin that is loaded into this process; raises RewrightError for one of another version."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        library.GetPjrtApi.restype = ctypes.c_void_p
        self._table: int = library.GetPjrtApi()
        self._topologies: dict[str, Any] = {}
        version: Any = _Table.from_address(self._table).version
        found = (int(version.major), int(version.minor))
        if found[0] != OLDEST[0] or found < OLDEST:
            raise RewrightError(f"the plugin speaks PJRT {found[0]}.{found[1]}; install one of jaxlib 0.10")
        self._call(_INITIALIZE, _new(_Initialize))

    def _call(self, place: int, arguments: Any) -> None:
        entry = self._table + ctypes.sizeof(_Table) + ctypes.sizeof(ctypes.c_void_p) * place
        address: Any = ctypes.c_void_p.from_address(entry).value
        function: Any = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)
        error = function(ctypes.addressof(arguments))
        if error and place not in (_ERROR_MESSAGE, _ERROR_DESTROY):
            message = _new(_ErrorMessage, error, None, 0)
            self._call(_ERROR_MESSAGE, message)
            text = ctypes.string_at(message.text, message.size).decode("utf-8", "replace")
            self._call(_ERROR_DESTROY, _new(_ErrorDestroy, error))
            raise CompileError(text.splitlines()[0] if text else "no reason given")

    def _topology(self, target: str) -> Any:
        """The topology of one device, described by a GpuTargetConfigProto in text form."""
        if target not in self._topologies:
            pairs = [(b"target_config", target.encode()), (b"topology", b"1x1x1")]
            values = [_new(_NamedValue, k, len(k), _STRING, v, len(v)) for k, v in pairs]
            options = (_NamedValue * len(values))(*values)
            own = _new(_TopologyCreate, b"1x1x1", 5, ctypes.addressof(options), len(values), None)
            self._call(_TOPOLOGY, own)
            self._topologies[target] = own.topology
        return self._topologies[target]

    def compile(self, target: str, proto: bytes, options: bytes) -> None:
        """Compile an HloModuleProto with a serialised CompileOptionsProto; raises CompileError with the first line.

        What is wanted of it is what it dumps: the executable is dropped.
        """
        program = _new(_Program, proto, len(proto), b"hlo", 3)
        topology = self._topology(target)
        own = _new(_Compile, topology, ctypes.addressof(program), options, len(options), None, None)
        self._call(_COMPILE, own)
        self._call(_EXECUTABLE_DESTROY, _new(_ExecutableDestroy, own.executable))
