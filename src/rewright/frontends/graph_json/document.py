"""The records of a ``graph-json/1`` document, checked as they are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rewright.frontends.frontend import File
from rewright.ir.dims import Dim, symbol
from rewright.ir.errors import RewrightError
from rewright.ir.sizes_in_text import parse_dim
from rewright.ir.types import DType, SourceSpan, TensorType

FORMAT = "graph-json/1"
_DTYPES = {
    "float64": DType.F64,
    "float32": DType.F32,
    "bfloat16": DType.BF16,
    "float16": DType.F16,
    "int64": DType.I64,
    "int32": DType.I32,
    "int16": DType.I16,
    "int8": DType.I8,
    "uint8": DType.U8,
    "bool": DType.BOOL,
}
_KINDS = ("placeholder", "call_function", "get_attr", "output")
_LOCATION = re.compile(r"(?P<file>.*?):(?P<line>[0-9]{1,9})(?::(?P<function>.*))?")
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of a node, as an argument of another one."""

    id: int


@dataclass(frozen=True, slots=True)
class Word:
    """An argument that no operator of the IR reads."""

    text: str
    kind: str = ""
    """``dtype``, ``device`` or ``memory_format``, say."""


@dataclass(frozen=True, slots=True)
class Record:
    """One node as it was captured; ``type`` is None where it is no tensor or several ones."""

    id: int
    name: str
    op: str
    target: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    type: TensorType | None
    stride: tuple[Dim, ...] | None
    span: SourceSpan


@dataclass(frozen=True)
class Document:
    """One captured graph of one rank."""

    rank: int
    records: tuple[Record, ...]
    inputs: tuple[int, ...]
    outputs: Any
    direction: str

    def record(self, place: int) -> Record:
        """A node by its id, which is its place."""
        return self.records[place]


def is_own(file: File) -> bool:
    """Whether a JSON file says that it is of this format."""
    data: object = file.json
    return isinstance(data, dict) and cast("dict[str, object]", data).get("format") == FORMAT


def parse(data: object) -> Document:
    """The records of a JSON value; raises RewrightError where one is missing or malformed."""
    try:
        return _parse(cast("Mapping[str, Any]", data))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise RewrightError(f"the graph is incomplete or malformed ({error!r:.80}); capture it again") from None
    except RecursionError:
        raise RewrightError("the graph has arguments that are nested too deeply; capture it again") from None


def _parse(data: Mapping[str, Any]) -> Document:
    rank = _integer(data["rank"])
    if not 0 <= rank < 1 << 20:
        raise RewrightError(f"rank {rank} is no rank; number the ranks from 0")
    reader = _Reader(f"R{rank}")
    records = tuple(reader.record(index, node) for index, node in enumerate(data["nodes"]))
    inputs = tuple(_integer(entry) for entry in data["inputs"])
    placeholders = tuple(record.id for record in records if record.op == "placeholder")
    if sorted(inputs) != sorted(placeholders):
        raise RewrightError(f"the graph lists {len(inputs)} inputs and has {len(placeholders)}; capture it again")
    names = [record.name for record in records]
    if len(set(names)) != len(names):
        raise RewrightError("two nodes of the graph have one name; capture it again")
    outputs = reader.argument(data["outputs"], len(records))
    return Document(rank, records, inputs, outputs, str(data.get("direction") or ""))


def dim(value: object, prefix: str = "") -> Dim:
    """A size: an integer, or ``{"sym": text}``, whose symbols lose the prefix of the rank that captured them."""
    if isinstance(value, dict):
        text = str(cast("dict[str, object]", value)["sym"])
        if len(text) > 200:
            raise RewrightError(f"the size {text:.40}.. is too long; capture it as a number")
        try:
            return _rename(parse_dim(text), prefix)
        except ValueError:
            raise RewrightError(f"the size {text!r} is no polynomial; capture it as a number") from None
    size = _integer(value)
    if not -_LARGEST < size < _LARGEST:
        raise RewrightError(f"the size {size:.3g} is out of range; capture the graph again")
    return size


def _rename(size: Dim, prefix: str) -> Dim:
    """Ranks name what they find in their data after themselves; the same find has one name here."""
    if isinstance(size, int):
        return size
    total: Dim = 0
    for names, factor in size.terms:
        product: Dim = factor
        for name in names:
            product = product * symbol(name.removeprefix(prefix) or name)
        total = total + product
    return total


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r:.30} is no integer")
    return value


class _Reader:
    """Reads records; ``prefix`` stands before the size symbols of the rank."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def record(self, index: int, node: Mapping[str, Any]) -> Record:
        identity, op = _integer(node["id"]), str(node["op"])
        if identity != index:
            raise RewrightError(f"node {identity} stands at place {index}; number the nodes in order")
        if op not in _KINDS:
            raise RewrightError(f"node {index} is a {op!r:.30}, which is none of {', '.join(_KINDS)}")
        arguments = self.argument(node["args"], index)
        keywords = {str(key): self.argument(value, index) for key, value in node["kwargs"].items()}
        name = str(node["name"])
        if not name.isprintable() or not 0 < len(name) < 500:
            raise RewrightError(f"node {index} has no proper name; capture the graph again")
        kind, target = self._type(node), str(node["target"])
        stride = self._stride(node, kind)
        return Record(index, name, op, target, tuple(arguments), keywords, kind, stride, _span(node))

    def argument(self, value: Any, before: int) -> Any:
        """An argument; nodes that it names must stand before."""
        if isinstance(value, list):
            return [self.argument(item, before) for item in cast("list[Any]", value)]
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            raise RewrightError(f"node {before} has a number of more than 64 bits; capture the graph again")
        if not isinstance(value, dict):
            return value
        table = cast("dict[str, Any]", value)
        if "n" in table:
            place = _integer(table["n"])
            if not 0 <= place < before:
                raise RewrightError(f"node {before} reads node {place}, which is no earlier one; capture it again")
            return Ref(place)
        if "t" in table:
            return tuple(self.argument(item, before) for item in cast("list[Any]", table["t"]))
        if "sym" in table:
            return dim(table, self.prefix)
        kind, item = next(iter(table.items()), ("", ""))
        return Word(str(item), kind)

    def _type(self, node: Mapping[str, Any]) -> TensorType | None:
        shape, dtype = node.get("shape"), node.get("dtype")
        if shape is None or dtype is None:
            return None
        if dtype not in _DTYPES:
            raise RewrightError(f"node {node['id']} has dtype {dtype!r:.30}; dtypes are {', '.join(_DTYPES)}")
        sizes = tuple(dim(size, self.prefix) for size in cast("Sequence[object]", shape))
        if any(isinstance(size, int) and size < 0 for size in sizes):
            raise RewrightError(f"node {node['id']} has a negative size; capture the graph again")
        return TensorType(sizes, _DTYPES[dtype])

    def _stride(self, node: Mapping[str, Any], kind: TensorType | None) -> tuple[Dim, ...] | None:
        stride = node.get("stride")
        if kind is None or not isinstance(stride, list) or len(cast("list[Any]", stride)) != kind.rank:
            return None
        return tuple(dim(entry, self.prefix) for entry in cast("list[object]", stride))


def _span(node: Mapping[str, Any]) -> SourceSpan:
    """``loc`` is ``file:line:function``, ``nn`` the module path."""
    path = str(node.get("nn") or "")
    found = _LOCATION.fullmatch(str(node.get("loc") or ""))
    if found is None:
        return SourceSpan(module_path=path)
    return SourceSpan(found["file"], int(found["line"]), found["function"] or "", path)
