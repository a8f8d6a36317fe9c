"""Tensor descriptors: blocks of a tensor that are cut off where it ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rewright.frontends.triton.meaning.addresses.indices import lane, multiply
from rewright.frontends.triton.meaning.operations.transfers import load_from, store_to
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import DTYPES, Address, Described, Truth, Value, Whole
from rewright.frontends.triton.text import Kind, Operation
from rewright.ir.dims import divide
from rewright.ir.errors import UnsupportedOperator
from rewright.terms.index import Index, variable

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader


_BYTES = {"64": 8, "32": 4, "16": 2}


@MEANINGS.enter("tt.make_tensor_descriptor")
def described(reader: Reader, op: Operation) -> Value:
    """A pointer with sizes and strides."""
    if op.attributes.get("padding", "1 : i32").split()[0] not in ("1", "zero"):
        raise UnsupportedOperator("a descriptor that fills what lies behind the end with no numbers")
    return describe(reader, *reader.operands(op))


def describe(reader: Reader, address: Value, *rest: Value) -> Described:
    """A descriptor of a pointer, sizes and strides."""
    if not isinstance(address, Address) or address.data is not None:
        raise UnsupportedOperator("a descriptor of what is no pointer")
    indices = [_index(value) for value in rest]
    rank = len(indices) // 2
    size = _BYTES.get(reader.writer.b.type(reader.memories[address.argument].position).dtype.value[-2:], 1)
    strides = [stride.as_size() for stride in indices[rank:-1]]
    if any(stride is None or divide(stride * size, 16) is None for stride in strides):
        line = reader.writer.b.span.line
        reader.assumptions[f"the strides of the descriptor at line {line} are multiples of 16 bytes"] = None
    return Described(address, tuple(indices[:rank]), tuple(indices[rank:]))


def _index(value: Value) -> Index:
    if not isinstance(value, Whole):
        raise UnsupportedOperator("a size or stride of a descriptor is computed from data")
    return value.index


@MEANINGS.enter("tt.descriptor_load", "tt.experimental_descriptor_load")
def loaded(reader: Reader, op: Operation) -> Value:
    """A block from some place on; zeros where the tensor has ended."""
    descriptor, *offsets = reader.operands(op)
    kind = op.given[0]
    address, mask = _block(descriptor, offsets, kind.shape, op.types[0])
    zero = reader.writer.constant(0, kind.shape, DTYPES[kind.element])
    return load_from(reader, address, mask, zero, kind.element)


@MEANINGS.enter("tt.descriptor_store", "tt.experimental_descriptor_store")
def stored(reader: Reader, op: Operation) -> None:
    """Leave a block from some place on, as far as the tensor goes."""
    descriptor, *offsets, value = reader.operands(op)
    kind = op.types[-1]
    address, mask = _block(descriptor, offsets, kind.shape, op.types[0])
    store_to(reader, address, value, mask, DTYPES[kind.element])


def _block(value: Value, offsets: list[Value], shape: tuple[int, ...], kind: Kind) -> tuple[Address, Truth]:
    """The places of a block, and where they lie in the tensor."""
    block = tuple(map(int, re.findall(r"(\d+)x", kind.element)))
    if not isinstance(value, Described):
        raise UnsupportedOperator("a descriptor that the kernel did not make is not read")
    single = len(value.sizes) - len(shape)
    """So many leading axes of the descriptor have blocks of one element, which are left out."""
    if single < 0 or shape != block[single:] or any(size != 1 for size in block[:single]):
        raise UnsupportedOperator("a block is not one of its descriptor")
    total, parts = value.address.index, list[Index]()
    for axis, (offset, size, stride) in enumerate(zip(offsets, value.sizes, value.strides, strict=True)):
        place = _index(offset) + (variable(lane(axis - single)) if axis >= single else 0)
        steps = multiply(place, stride)
        if steps is None:
            raise UnsupportedOperator("a stride of a descriptor depends on the instance")
        total = total + steps
        parts += [place, size - place - 1]
    return Address(value.address.argument, total, shape), Truth(tuple(parts), shape)
