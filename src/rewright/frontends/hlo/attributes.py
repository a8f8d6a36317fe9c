"""Attributes of HLO instructions by their names in text: where protocol buffers have each, read and written.

For example ``lhs_contracting_dims={1}`` is a list of integers in field 1 of the message in field 30.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from rewright.frontends.hlo.devices import Groups, iota_groups, mesh_of_message, part_of_message
from rewright.frontends.hlo.sharding import of_message, to_message
from rewright.frontends.hlo.wire import (
    BYTES,
    VARINT,
    Field,
    Fields,
    first,
    integer,
    integers,
    message,
    messages,
    pack_integers,
    string,
    text,
    write_fields,
)

Kind = Literal["list", "number", "word", "flag", "other"]
_GROUPS = (49, 87, 92, 93)
"""Replica groups: one by one, in one of two forms, as a ramp, and as axes of a mesh."""


class Window(NamedTuple):
    """A window along one axis."""

    size: int = 0
    stride: int = 1
    low: int = 0
    high: int = 0
    rhs_dilate: int = 1
    lhs_dilate: int = 1
    rhs_reversal: int = 0


@dataclass(frozen=True)
class Attribute:
    """``path`` are the fields of the messages around it, and its own; ``write`` gives the fields of the message."""

    kind: Kind
    path: tuple[int, ...]
    read: Callable[[Fields, int], Any]
    write: Callable[[Any, int], list[Field]]
    others: tuple[int, ...] = ()
    """Fields that hold it in other forms."""


def _list(*path: int) -> Attribute:
    return Attribute("list", path, integers, lambda value, number: pack_integers(number, value))


def _number(*path: int) -> Attribute:
    return Attribute("number", path, integer, lambda value, number: [(number, VARINT, value)])


def _word(number: int) -> Attribute:
    return Attribute("word", (number,), string, lambda value, own: [text(own, value)])


def _flag(number: int) -> Attribute:
    read: Callable[[Fields, int], bool] = lambda fields, own: bool(integer(fields, own))  # noqa: E731
    return Attribute("flag", (number,), read, lambda value, own: [(own, VARINT, int(value))])


def _rows(defaults: Sequence[int], *path: int, kind: Callable[[Iterable[int]], Any] = tuple) -> Attribute:
    """Messages of integers, which are numbered from 1: tuples of them, or of a kind of tuples."""

    def read(fields: Fields, number: int) -> tuple[Any, ...]:
        rows = messages(fields, number)
        return tuple(kind(integer(row, k, default) for k, default in enumerate(defaults, 1)) for row in rows)

    def write(rows: Sequence[Sequence[int]], number: int) -> list[Field]:
        return [(number, BYTES, write_fields((k, VARINT, own) for k, own in enumerate(row, 1))) for row in rows]

    return Attribute("other", path, read, write)


_AXES_OF_LABELS = ((7, 8, 11), (4, 3, 6), (9, 10, 12))
"""Of ConvolutionDimensionNumbers: batch, feature and spatial axes of the input, those of kernel and output."""


def _read_labels(fields: Fields, number: int) -> tuple[tuple[int, ...], ...]:
    """Batch, feature and spatial axes of input, kernel (output and input feature) and output."""
    own = message(fields, number)
    return tuple((integer(own, a), integer(own, b), *integers(own, rest)) for a, b, rest in _AXES_OF_LABELS)


def _write_labels(labels: Sequence[Sequence[int]], number: int) -> list[Field]:
    out: list[Field] = []
    for (first_axis, second_axis, *spatial), (a, b, rest) in zip(labels, _AXES_OF_LABELS, strict=True):
        out += [(a, VARINT, first_axis), (b, VARINT, second_axis), *pack_integers(rest, spatial)]
    return [(number, BYTES, write_fields(out))]


def _read_groups(fields: Fields, number: int) -> Groups | None:
    """Replica groups in any of their forms; None where there are none."""
    groups = [integers(group, 1) for group in messages(fields, number)]
    _, either, ramps, meshes = _GROUPS
    for devices in messages(fields, either):
        groups += [integers(group, 1) for group in messages(devices, 1)]
        for ramp in messages(devices, 2):
            return _ramp(ramp)
    for ramp in messages(fields, ramps):
        return _ramp(ramp)
    for axes in messages(fields, meshes):
        return mesh_of_message(message(axes, 1)).groups([part_of_message(part) for part in messages(axes, 2)])
    return tuple(groups) or None


def _ramp(fields: Fields) -> Groups:
    sizes = integers(fields, 3)
    order = integers(fields, 4) or tuple(range(len(sizes)))
    return iota_groups((integer(fields, 1), integer(fields, 2)), sizes, order)


def _write_groups(groups: Sequence[Sequence[int]] | None, number: int) -> list[Field]:
    return [(number, BYTES, write_fields(pack_integers(1, group))) for group in groups or ()]


ATTRIBUTES: Mapping[str, Attribute] = {
    "kind": _word(11),
    "index": _number(13),
    "dimensions": _list(14),
    "iota_dimension": _list(14),
    "window": _rows(Window(), 15, 1, kind=Window._make),
    "dim_labels": Attribute("other", (16,), _read_labels, _write_labels),
    "slice": _rows((0, 0, 1), 17),
    "exponent_bits": _number(18),
    "mantissa_bits": _number(19),
    "dynamic_slice_sizes": _list(20),
    "padding": _rows((0, 0, 0), 21, 1),
    "channel_id": _number(26),
    "custom_call_target": _word(28),
    "lhs_contracting_dims": _list(30, 1),
    "rhs_contracting_dims": _list(30, 2),
    "lhs_batch_dims": _list(30, 3),
    "rhs_batch_dims": _list(30, 4),
    "offset_dims": _list(33, 1),
    "collapsed_slice_dims": _list(33, 2),
    "start_index_map": _list(33, 3),
    "operand_batching_dims": _list(33, 5),
    "index_vector_dim": _number(33, 4),
    "start_indices_batching_dims": _list(33, 6),
    "slice_sizes": _list(34),
    "sharding": Attribute(
        "other", (40,), lambda m, n: of_message(message(m, n)), lambda own, n: [(n, BYTES, to_message(own))]
    ),
    "backend_config": _word(43),
    "update_window_dims": _list(48, 1),
    "inserted_window_dims": _list(48, 2),
    "scatter_dims_to_operand_dims": _list(48, 3),
    "scatter_index_vector_dim": _number(48, 4),
    "input_batching_dims": _list(48, 5),
    "scatter_indices_batching_dims": _list(48, 6),
    "replica_groups": Attribute("other", _GROUPS[:1], _read_groups, _write_groups, _GROUPS[1:]),
    "feature_group_count": _number(50),
    "source_target_pairs": _rows((0, 0), 52),
    "batch_group_count": _number(58),
    "is_stable": _flag(60),
    "direction": _word(63),
    "custom_call_has_side_effect": _flag(65),
    "use_global_device_ids": _flag(71),
    "type": _word(72),
    "largest": _flag(85),
}
"""By name. The axis of index vectors has one name in the text of gathers and scatters; here a scatter's is its own."""


def read_attribute(fields: Fields, name: str) -> Any:
    """An attribute of an instruction; None where it is absent. Raises RewrightError where it is malformed."""
    own = ATTRIBUTES[name]
    *around, number = own.path
    for outer in around:
        if first(fields, outer) is None:
            return None
        fields = message(fields, outer)
    given = any(first(fields, place) is not None for place in (number, *own.others))
    return own.read(fields, number) if given else None


def write_attributes(attributes: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields of an instruction with some attributes."""
    out: list[Field] = []
    nested: dict[int, list[Field]] = {}
    for name, value in attributes.items():
        own = ATTRIBUTES[name]
        group = out if len(own.path) == 1 else nested.setdefault(own.path[0], [])
        group += own.write(value, own.path[-1])
    return (*out, *((number, BYTES, write_fields(fields)) for number, fields in nested.items()))
