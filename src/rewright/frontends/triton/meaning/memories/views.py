"""Tensors as blocks of all instances, and blocks laid out along the axes of tensors.

An axis of places ``tile * 64 + lane`` is cropped or padded to whole tiles and split in digits; a store is the way back.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.frontends.triton.meaning.addresses.indices import lane
from rewright.frontends.triton.meaning.addresses.places import Digit, Place
from rewright.frontends.triton.meaning.values import Data, Shape
from rewright.frontends.triton.meaning.writer import Writer
from rewright.ir.dims import Dim, at_most, divide
from rewright.ir.errors import UnsupportedOperator
from rewright.ops.reference import building as rb


class Views:
    """Both ways, as nodes of a writer."""

    def __init__(self, writer: Writer) -> None:
        self._w = writer

    def block(
        self,
        tensor: int,
        places: Sequence[Place],
        sizes: Sequence[Dim],
        block: Shape,
        filling: float | int | bool,
        idle: Sequence[bool] = (),
    ) -> Data:
        """The tensor with its axes cropped, padded and split in digits, as a block of all instances.

        Along ``idle`` axes only what no instance runs lies outside, where zeros are as good as anything, and better
        than what fills a tile.
        """
        b = self._w.b
        if any(_is_outside(place, size) for place, size in zip(places, sizes, strict=True)):
            dtype = b.type(tensor).dtype
            return self._w.constant(rb.cast(filling, dtype), block, dtype)
        for zeros in (True, False) if any(idle) else (False,):
            own = [(bool(idle) and idle[n] is zeros) or not (idle or zeros) for n in range(len(places))]
            low = [-p.start if is_own else 0 for p, is_own in zip(places, own, strict=True)]
            high = [p.start + p.length - n if o else 0 for p, n, o in zip(places, sizes, own, strict=True)]
            if any(n != 0 for n in (*low, *high)):
                value = 0 if zeros else filling
                tensor = rb.pad(b, tensor, low, high, rb.cast(value, b.type(tensor).dtype))
        split = [n for place in places for n in lengths(place)]
        tensor = rb.reshape(b, tensor, split)
        digits = [digit for place in places for digit in place.digits]
        tensor, digits = self._without_gaps(tensor, places)
        names = [d.variable for d in digits]
        axes = tuple(name for name in self._w.axes if name in names)
        own = [lane(k) for k in range(len(block)) if lane(k) in names]
        tensor = rb.transpose(b, tensor, [names.index(name) for name in (*axes, *own)])
        missing = [*[0] * len(axes), *(block[int(n[4:])] - digits[names.index(n)].size for n in own)]
        if any(n != 0 for n in missing):  # lanes that are masked
            tensor = rb.pad(b, tensor, [0] * len(missing), missing, rb.cast(filling, b.type(tensor).dtype))
        full = (*self._w.sizes(axes), *block)
        kept = [*range(len(axes)), *(len(axes) + k for k in range(len(block)) if lane(k) in names)]
        if kept != list(range(len(full))):
            tensor = b.add(ops.BroadcastInDim(full, tuple(kept)), tensor)
        return Data(tensor, axes, block)

    def _without_gaps(self, tensor: int, places: Sequence[Place]) -> tuple[int, list[Digit]]:
        """Each digit as an axis of as many elements as it counts; what lies between two of its steps is left out."""
        b, digits, axis = self._w.b, list[Digit](), 0
        for place in places:
            for digit in place.digits:
                tensor = rb.slice_axis(b, tensor, axis, 0, digit.size)
                digits.append(digit)
                axis += 1
            rest = len(lengths(place)) - len(place.digits)
            for _ in range(rest):  # places between two steps of the last digit, or the one place of no digit
                tensor = rb.slice_axis(b, tensor, axis, 0, 1)
                shape = list(b.type(tensor).shape)
                tensor = rb.reshape(b, tensor, [*shape[:axis], *shape[axis + 1 :]])
        return tensor, digits

    def tensor(self, value: Data, places: Sequence[Place], sizes: Sequence[Dim], filling: float | bool = 0) -> int:
        """A block of all instances laid out along the axes of a tensor."""
        b = self._w.b
        digits = [d for p in places for d in p.digits]
        names = [d.variable for d in digits]
        axes = tuple(name for name in self._w.axes if name in names)
        tensor = self._w.spread(self._one_of_equal(value, axes), axes)
        for k in reversed(range(len(value.shape))):  # blocks of one element, and lanes that all write the same
            if lane(k) not in names:
                axis = len(axes) + k
                tensor = rb.slice_axis(b, tensor, axis, 0, 1)
                shape = list(b.type(tensor).shape)
                tensor = rb.reshape(b, tensor, [*shape[:axis], *shape[axis + 1 :]])
        order = [*axes, *(lane(k) for k in range(len(value.shape)) if lane(k) in names)]
        if set(order) != set(names):
            raise UnsupportedOperator("writes to places that move along other lanes than what is written there")
        for axis, name in enumerate(order):
            size = digits[names.index(name)].size
            if b.type(tensor).shape[axis] != size:  # lanes that are masked
                tensor = rb.slice_axis(b, tensor, axis, 0, size)
        tensor = rb.transpose(b, tensor, [order.index(name) for name in names])
        tensor = self._with_gaps(tensor, places, filling)
        tensor = rb.reshape(b, tensor, [p.length for p in places])
        low, high = [p.start for p in places], [n - p.start - p.length for p, n in zip(places, sizes, strict=True)]
        if any(n != 0 for n in (*low, *high)):
            tensor = rb.pad(b, tensor, low, high, rb.cast(filling, b.type(tensor).dtype))
        return tensor

    def _with_gaps(self, tensor: int, places: Sequence[Place], filling: float | bool) -> int:
        b, axis = self._w.b, 0
        shape: list[Dim] = []
        for place in places:
            parts = lengths(place)
            if len(parts) > len(place.digits):
                shape = [*b.type(tensor).shape]
                tensor = rb.reshape(
                    b, tensor, [*shape[: axis + len(place.digits)], 1, *shape[axis + len(place.digits) :]]
                )
            for n in parts:
                own = b.type(tensor).shape[axis]
                if own != n:
                    rank = b.type(tensor).rank
                    high: list[Dim] = [0] * rank
                    high[axis] = n - own
                    tensor = rb.pad(b, tensor, [0] * rank, high, rb.cast(filling, b.type(tensor).dtype))
                axis += 1
        return tensor

    def _one_of_equal(self, value: Data, axes: Sequence[str]) -> Data:
        """The value without axes of one instance, or iteration, which no place moves along."""
        for name in [name for name in value.axes if name not in axes]:
            place = value.axes.index(name)
            shape = list(self._w.b.type(value.position).shape)
            assert shape[place] == 1, name
            position = rb.reshape(self._w.b, value.position, [*shape[:place], *shape[place + 1 :]])
            value = Data(position, tuple(own for own in value.axes if own != name), value.shape)
        return value


def _is_outside(place: Place, size: Dim) -> bool:
    """Whether all of a block lies behind the end of an axis."""
    return at_most(size, place.start) is True and size != 0


def lengths(place: Place) -> list[Dim]:
    """The sizes of the axes that an axis is split in; one more than digits where there are gaps behind the last."""
    if not place.digits:
        return [1]
    found: list[Dim] = [place.digits[0].size]
    for digit, following in zip(place.digits, place.digits[1:], strict=False):
        steps = divide(digit.stride, following.stride)
        assert steps is not None
        found.append(steps)
    last = place.digits[-1].stride
    return found if last == 1 else [*found, last]
