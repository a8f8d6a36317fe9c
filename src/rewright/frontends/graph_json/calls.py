"""Calls in a captured graph, as the lowering wants them described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rewright.frontends.aten.call import Layout
from rewright.frontends.graph_json.document import Document, Record, Ref
from rewright.ir.types import TensorType

GETITEM = "<built-in function getitem>"
_ALWAYS = frozenset(
    """
    view transpose t permute slice select unsqueeze squeeze expand alias detach split split_with_sizes unbind narrow
    as_strided diagonal view_as expand_as broadcast_to movedim swapaxes swapdims unfold numpy_T mT wait_tensor
    """.split()  # noqa: SIM905
)
_PERHAPS = frozenset({"reshape", "flatten", "ravel", "unflatten", "contiguous", "_reshape_alias", "to", "type_as"})


def part_types(document: Document) -> dict[int, dict[int, TensorType]]:
    """For every node with several results, the types of those that something takes out."""
    found: dict[int, dict[int, TensorType]] = {}
    for record in document.records:
        if record.target == GETITEM and len(record.args) == 2 and record.type is not None:
            source, index = record.args
            if isinstance(source, Ref) and isinstance(index, int) and 0 <= index < 1 << 16:
                found.setdefault(source.id, {})[index] = record.type
    return found


@dataclass(frozen=True)
class GraphCall:
    """One node of a captured graph; ``parts`` are the types of its results where there are several."""

    record: Record
    document: Document
    parts: Mapping[int, TensorType] = field(default_factory=dict[int, TensorType])

    @property
    def operator(self) -> str:
        """Name of the overload."""
        return self.record.target

    @property
    def site(self) -> str:
        """Name of the node."""
        return self.record.name

    @property
    def count(self) -> int:
        """Number of results up to the last one that is read."""
        return max(self.parts, default=0) + 1

    def result(self, index: int) -> TensorType | None:
        """Type of a result, where it was captured."""
        return self.parts.get(index) if self.record.type is None else self.record.type

    def first_operand(self) -> Layout | None:
        """Memory of the first operand; captures do not say where in its block it starts."""
        source = self._source()
        if source is None or source.type is None or source.stride is None:
            return None
        return Layout(source.type.shape, source.stride, None)

    def shares_memory(self) -> bool:
        """Whether the result is an alias of the first operand, as far as names and strides tell."""
        name = self.operator.split(".")[1] if self.operator.count(".") else self.operator
        if name in _ALWAYS or name.endswith("_"):
            return True
        source, own = self._source(), self.record
        if name not in _PERHAPS or source is None or source.type is None or own.type is None:
            return False
        if name in ("to", "type_as"):
            return source.type.dtype is own.type.dtype
        layout = self.first_operand()
        return (
            layout is None or layout.is_contiguous or (source.type.shape, source.stride) == (own.type.shape, own.stride)
        )

    def is_posted(self) -> bool:
        """False: a document does not say it."""
        return False

    def writes_a_list(self) -> bool:
        """Whether the operator writes into a list of tensors and returns it."""
        return ".".join(self.operator.split(".")[1:2]).endswith("_coalesced_")

    def _source(self) -> Record | None:
        arguments: Sequence[object] = self.record.args
        first = arguments[0] if arguments else None
        return self.document.record(first.id) if isinstance(first, Ref) else None
