"""The memory of a launch: what loads read and stores leave behind, for all instances at once.

A load is a view where its places are digits: the tensor is cropped or padded to whole tiles and split in digits. What
lies outside of the tensor is filled in, and has to be masked. A store is the way back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rewright import ops
from rewright.frontends.triton.meaning.addresses.chosen import open_choice, settled, ways
from rewright.frontends.triton.meaning.addresses.indices import DATA, lane, lanes, reads_data, substitute, variables
from rewright.frontends.triton.meaning.addresses.instances import INSTANCE
from rewright.frontends.triton.meaning.addresses.parts import Parts, parts_of
from rewright.frontends.triton.meaning.addresses.places import Digit, Place, by_axis, digits_of
from rewright.frontends.triton.meaning.addresses.safety import Ranges
from rewright.frontends.triton.meaning.addresses.tables import affine_of, index_at
from rewright.frontends.triton.meaning.memories.memory import Access, Memory
from rewright.frontends.triton.meaning.memories.scatters import (
    NEUTRAL,
    accumulated,
    accumulated_at_points,
    axes_of,
    has_lanes,
    marked,
    names_of,
    rows_of,
    scattered,
)
from rewright.frontends.triton.meaning.memories.views import Views, lengths
from rewright.frontends.triton.meaning.values import Address, Data, Shape, Truth
from rewright.frontends.triton.meaning.writer import Writer
from rewright.ir.dims import Dim, at_most, product
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb
from rewright.terms.index import Index, Remainder, variable


class Accesses:
    """Loads and stores of one launch."""

    def __init__(self, writer: Writer, ranges: Ranges, memories: Mapping[str, Memory]) -> None:
        self._w = writer
        self._views = Views(writer)
        self._ranges = ranges
        self.memories = memories
        self.notes: dict[str, None] = {}
        """What is taken for granted of places that data says."""
        self.guard: Data | None = None
        """Where an operation is reached at all, in branches on data."""
        self.instance: tuple[int, ...] = ()
        """The numbers of the instances that are read, along axes along which these are read one after the other."""
        self._barriers: list[tuple[frozenset[Index], Data | None]] = []
        """Where barriers are reached."""

    def barrier(self, active: Sequence[Index]) -> None:
        """Note a place where all threads of an instance wait for each other."""
        self._barriers.append((frozenset(active), self.guard))

    def _access(
        self,
        places: Sequence[Index],
        given: Sequence[Index],
        sizes: Mapping[str, Dim],
        shape: Sequence[Dim],
        kind: ReductionKind | None = None,
    ) -> Access:
        met = [
            number
            for number, (active, guard) in enumerate(self._barriers)
            if active <= set(given) and guard in (None, self.guard)
        ]
        return Access(
            tuple(places),
            tuple(given),
            tuple(sizes.items()),
            self._w.b.span,
            tuple(shape),
            kind,
            self._read(places),
            len(self._barriers),
            frozenset(met),
            self.instance,
        )

    def load(self, address: Address, mask: Truth, reached: Truth, active: Sequence[Index], other: Data | None) -> Data:
        """What lies at some places; ``other`` where the mask is false, and anything where nobody is active.

        ``reached`` is the mask where branches on data are taken too, in which the load stands.
        """
        memory = self.memories[address.argument]
        sizes = self._variables(address.shape)
        given = (*active, *mask.parts)
        address = settled(self._w, self._ranges, address, given, sizes)
        choice = open_choice(self._w, address.index)
        if choice is not None:
            return self._load_chosen(address, choice, mask, reached, active, other)
        try:
            shape, places = self._places(memory, address, given, sizes)
        except UnsupportedOperator:
            if self.guard is None and mask.data is None and not any(map(reads_data, given)):
                raise
            # Data says where this is read, so it says too that it is in bounds there.
            zero = self._w.constant(0, address.shape, DType.I64)
            return self.look_up(replace(address, data=zero), mask, reached, active, other)
        memory.loads.append(self._access(places, given, sizes, shape))
        if not any(map(reads_data, places)):
            parted = self._parted(memory, places, shape, address.shape, mask, active, other)
            if parted is not None:
                return parted
        known: tuple[Index, ...] = ()
        if not any(map(reads_data, places)):
            plain, bounds = _unwrapped(places)
            if bounds and all(digits_of(place, sizes) is not None for place in plain):
                places, known = plain, bounds
        if known:  # what is read behind the end is read again from the start, which nothing is said of here
            found = self._loaded(memory, places, shape, address.shape, mask, reached, active, other)
            condition = self._w.truth(Truth(known, address.shape))
            anything = self._w.unspecified(self._w.union(found, condition), address.shape, self._w.dtype(found))
            return self._w.select(condition, found, anything)
        return self._loaded(memory, places, shape, address.shape, mask, reached, active, other)

    def _parted(
        self,
        memory: Memory,
        places: Sequence[Index],
        shape: Sequence[Dim],
        block: Shape,
        mask: Truth,
        active: Sequence[Index],
        other: Data | None,
    ) -> Data | None:
        """As :meth:`load`, where places are affine in digits of flat numbers; None elsewhere."""
        sizes, given = self._variables(block), (*active, *mask.parts)
        parts = parts_of(self._w, self._ranges, places, given, sizes)
        if parts is None:
            return None
        always = mask.data is None and self._ranges.holds(sizes, active, mask.parts)
        uniform = None if other is None else self._w.b.uniform(other.position)
        with parts.counted():
            own = self._variables(parts.block(block))
            digits = [digits_of(parts.index(place), own) for place in places]
            if any(d is None for d in digits) or _repeats(digits):
                return None
            tensor = memory.position if shape == memory.sizes else rb.reshape(self._w.b, memory.position, shape)
            filling = 0 if uniform is None else uniform
            kept = [d for d in digits if d is not None]
            found = self._views.block(tensor, kept, shape, parts.block(block), filling)
            found = parts.joined(found, block, filling)
        if always:
            return found
        default = self._w.unspecified(found.axes, block, self._w.dtype(found)) if other is None else other
        return self._w.select(self._w.truth(mask), found, default)

    def _load_chosen(
        self, address: Address, name: str, mask: Truth, reached: Truth, active: Sequence[Index], other: Data | None
    ) -> Data:
        """What lies at one of two places, by which of them is chosen."""
        (part,) = self._w.choices[name].parts
        dtype = self._w.b.type(self.memories[address.argument].position).dtype
        found: list[Data] = []
        for place, where, there in ways(self._w, self._ranges, address, name, active, (mask, reached)):
            if where is None or there is None:
                found.append(self._w.unspecified((), address.shape, dtype) if other is None else other)
            else:
                found.append(self.load(place, where, there, active, other))
        return self._w.select(self._w.truth(Truth((part,), address.shape)), found[1], found[0])

    def known(self, address: Address, mask: Truth, active: Sequence[Index]) -> Index | None:
        """What lies at some places, where that is a table of integers that grow evenly; None elsewhere."""
        memory = self.memories[address.argument]
        if memory.stores or address.data is not None or mask.data is not None or reads_data(address.index):
            return None
        table = affine_of(self._w.b, memory.position)
        sizes = self._variables(address.shape)
        if table is None or not self._ranges.holds(sizes, active, mask.parts):
            return None
        shape, places = self._places(memory, address, (*active, *mask.parts), sizes)
        first, steps = table
        if shape != memory.sizes and any(steps):
            return None
        memory.loads.append(self._access(places, (*active, *mask.parts), sizes, shape))
        return index_at(first, steps, places) if shape == memory.sizes else Index(first)

    def _loaded(
        self,
        memory: Memory,
        places: Sequence[Index],
        shape: Sequence[Dim],
        block: Shape,
        mask: Truth,
        reached: Truth,
        active: Sequence[Index],
        other: Data | None,
    ) -> Data:
        """As :meth:`load`, at places of the axes of a tensor."""
        sizes, given = self._variables(block), (*active, *mask.parts)
        digits = [self._digits(place, sizes, given) for place in places]
        tensor = memory.position
        if shape != memory.sizes:
            tensor = rb.reshape(self._w.b, tensor, shape)
        inside = self._inside(places, shape)
        always = mask.data is None and self._ranges.holds(sizes, active, mask.parts)
        uniform = None if other is None else self._w.b.uniform(other.position)
        fills = uniform is not None and mask.data is None
        exact = always or (fills and self._ranges.holds(sizes, (*active, *inside), mask.parts))
        filling = uniform if exact and uniform is not None else 0
        kind = self._w.b.type(tensor).dtype
        rows = self._rows(tensor, places, shape, block, filling, given)
        if rows is not None:
            found = rows
        elif any(map(reads_data, places)):
            where = replace(reached, parts=(*active, *reached.parts))
            found, exact = self._gathered_at(tensor, places, block, where), always
        elif any(d is None for d in digits) or _repeats(digits):
            where = replace(mask, parts=given)
            found, exact = self._gathered(tensor, self._flat(places, shape, block), where), always
        else:
            idle = [
                self._ranges.holds(sizes, active, self._inside((p,), (n,))) for p, n in zip(places, shape, strict=True)
            ]
            found = self._views.block(tensor, [d for d in digits if d is not None], shape, block, filling, idle)
        if exact:
            return found
        default = self._w.unspecified(found.axes, block, kind) if other is None else other
        return self._w.select(self._w.truth(mask), found, default)

    def look_up(
        self, address: Address, mask: Truth, reached: Truth, active: Sequence[Index], other: Data | None
    ) -> Data:
        """What lies at places that are computed from data, which have to lie in the tensor."""
        memory = self.memories[address.argument]
        if not memory.is_contiguous:
            raise UnsupportedOperator(f"looks up elements of {memory.name}, which lie apart in memory")
        if memory.stores:
            raise UnsupportedOperator(f"looks up elements of {memory.name}, which it has written to")
        assert address.data is not None
        size = product(memory.sizes)
        own = self._w.number(address.index, address.shape, DType.I64)
        flat = self._w.apply(ops.Add(), address.data, own)
        memory.loads.append(self._access((), (*active, *mask.parts), self._variables(address.shape), (size,)))
        tensor = rb.reshape(self._w.b, memory.position, (size,))
        found = self._gathered(tensor, flat, replace(reached, parts=(*active, *reached.parts)))
        if not mask.parts and mask.data is None:
            return found
        kind = self._w.b.type(tensor).dtype
        default = self._w.unspecified(found.axes, address.shape, kind) if other is None else other
        return self._w.select(self._w.truth(mask), found, default)

    def _rows(
        self,
        tensor: int,
        places: Sequence[Index],
        shape: Sequence[Dim],
        block: Shape,
        filling: float | int | bool,
        given: Sequence[Index],
    ) -> Data | None:
        """Whole rows of a tensor, one for each instance, as an embedding reads them; None for other look-ups.

        Where conditions on data do not hold that are given, or those of a branch, it is the first row.
        """
        looked_up = [axis for axis, place in enumerate(places) if reads_data(place)]
        if len(looked_up) != 1:
            return None
        (axis,) = looked_up
        row = None if self._has_lanes(places[axis]) else self._w.number(places[axis], (), DType.I64)
        others = [digits_of(place, self._variables(block)) for place in places if not reads_data(place)]
        if row is None or any(p is None for p in others) or _repeats(others):
            return None
        kept = [p for p in others if p is not None]
        parts = tuple(part for part in given if reads_data(part) and not self._has_lanes(part))
        if parts or self.guard is not None:
            row = self._w.select(self._w.truth(Truth(parts, (), self.guard)), row, self._w.constant(0, (), DType.I64))
        if {d.variable for p in kept for d in p.digits} & set(row.axes):
            return None
        rank, outer = len(shape), len(row.axes)
        sizes = tuple(1 if n == axis else size for n, size in enumerate(shape))
        op = ops.Gather(tuple(range(outer, outer + rank - 1)), (axis,), (), (), (axis,), outer, sizes)
        found = self._w.b.add(op, tensor, row.position)
        leading = [Place(0, (Digit(name, self._w.axes[name], 1),)) for name in row.axes]
        left = [size for n, size in enumerate(shape) if n != axis]
        return self._views.block(found, [*leading, *kept], [*self._w.sizes(row.axes), *left], block, filling)

    def _has_lanes(self, index: Index) -> bool:
        """Whether an index differs among lanes."""
        names = list(variables(index))
        read = [self._w.read(name) for name in names if name.startswith(DATA)]
        return any(name.startswith("lane") for name in names) or any(data.shape for data in read)

    def _gathered_at(self, tensor: int, places: Sequence[Index], block: Shape, mask: Truth) -> Data:
        """The elements at places along all axes; the first one, where a mask is false."""
        zero = self._w.constant(0, block, DType.I64)
        found: list[Data] = []
        for place in places:
            one = self._w.number(place, block, DType.I64)
            is_masked = mask.parts or mask.data is not None
            found.append(self._w.select(self._w.truth(mask), one, zero) if is_masked else one)
        axes, b = self._w.union(*found), self._w.b
        rank = len(axes) + len(block)
        columns = [rb.insert_ones(b, self._w.spread(one, axes), [rank]) for one in found]
        every = tuple(range(len(places)))
        op = ops.Gather((), every, (), (), every, rank, (1,) * len(places))
        return Data(b.add(op, tensor, rb.concatenate(b, columns, rank)), axes, block)

    def _flat(self, places: Sequence[Index], shape: Sequence[Dim], block: Shape) -> Data:
        """Places along axes as one place in the order of elements."""
        total, step = Index(0), 1
        for place, size in zip(reversed(places), reversed(shape), strict=True):
            total, step = total + place * step, step * size
        return self._w.number(total, block, DType.I64)

    def _gathered(self, tensor: int, flat: Data, mask: Truth) -> Data:
        """The elements at places of a tensor in order; the first one, where a mask is false."""
        b = self._w.b
        tensor = rb.reshape(b, tensor, (product(b.type(tensor).shape),))
        if mask.parts or mask.data is not None:
            flat = self._w.select(self._w.truth(mask), flat, self._w.constant(0, flat.shape, DType.I64))
        rank = b.type(flat.position).rank
        op = ops.Gather((), (0,), (), (), (0,), rank, (1,))
        return Data(b.add(op, tensor, flat.position), flat.axes, flat.shape)

    def store(self, address: Address, value: Data, mask: Truth, active: Sequence[Index]) -> None:
        """Leave a value at some places, where the mask is true and an instance is active."""
        memory = self.memories[address.argument]
        if memory.overlaps:
            raise UnsupportedOperator(f"writes to {memory.name}, of which several elements lie at one place of memory")
        sizes = self._variables(address.shape)
        given = (*active, *mask.parts)
        address = settled(self._w, self._ranges, address, given, sizes)
        choice = open_choice(self._w, address.index)
        if choice is not None:
            for place, where, _ in ways(self._w, self._ranges, address, choice, active, (mask,)):
                if where is not None:
                    self.store(place, value, where, active)
            return
        shape, places = self._places(memory, address, given, sizes)
        memory.stores.append(self._access(places, given, sizes, shape))
        digits = [self._digits(self._of_first_lanes(place, sizes, given), sizes, given) for place in places]
        old = memory.position if shape == memory.sizes else rb.reshape(self._w.b, memory.position, shape)
        inside = self._inside(places, shape)
        if any(map(reads_data, places)):
            new = self._store_rows(old, shape, places, digits, value, replace(mask, parts=given), inside)
        else:
            parts = None
            if any(d is None for d in digits):
                parts = parts_of(self._w, self._ranges, places, given, sizes)
            whole = replace(mask, parts=given)
            if parts is None:
                new = self._store_digits(old, shape, digits, value, whole, inside)
            else:
                new = self._store_parted(old, shape, places, value, whole, parts)
        memory.position = rb.reshape(self._w.b, new, memory.sizes)

    def _store_digits(
        self,
        old: int,
        shape: Sequence[Dim],
        found: Sequence[Place | None],
        value: Data,
        mask: Truth,
        inside: Sequence[Index],
    ) -> int:
        digits = [d for d in found if d is not None]
        if len(digits) < len(found) or _repeats(digits):
            raise UnsupportedOperator("writes to places that are no digits of its variables")
        self._only_once(value, mask, {d.variable for p in digits for d in p.digits})
        new = self._views.tensor(value, digits, shape)
        sizes = self._variables(value.shape)
        whole = mask.data is None and self._ranges.holds(sizes, inside, mask.parts)
        if whole and self._covers(digits, shape):
            return new
        written = self._views.tensor(self._w.truth(mask), digits, shape)
        return self._w.b.add(ops.Select(), written, new, old)

    def _store_parted(
        self, old: int, shape: Sequence[Dim], places: Sequence[Index], value: Data, mask: Truth, parts: Parts
    ) -> int:
        """As :meth:`_store_digits`, at places that are affine in digits of flat numbers."""
        read = tuple(part for part in mask.parts if reads_data(part))
        if read:
            data = self._w.truth(Truth(read, mask.shape, mask.data))
            mask = replace(mask, parts=tuple(part for part in mask.parts if part not in read), data=data)
        with parts.counted():
            block = parts.block(value.shape)
            sizes = self._variables(block)
            own = [parts.index(place) for place in places]
            digits = [digits_of(place, sizes) for place in own]
            given = [*map(parts.index, mask.parts), *parts.reached()]
            kept = tuple(part for part in given if not self._ranges.implies(sizes, (), part))
            data = None if mask.data is None else parts.split(mask.data)
            where = Truth(kept, block, data)
            return self._store_digits(old, shape, digits, parts.split(value), where, self._inside(own, shape))

    def _store_rows(
        self,
        old: int,
        shape: Sequence[Dim],
        places: Sequence[Index],
        digits: Sequence[Place | None],
        value: Data,
        mask: Truth,
        inside: Sequence[Index],
    ) -> int:
        rows = rows_of(self._w, places, digits, value.shape)
        self._only_once(value, mask, set(names_of(rows)))
        apart = ", and no two are the same" if rows.others is None else ""
        self.notes[f"the rows that line {self._w.b.span.line} writes to are in bounds{apart}"] = None
        sizes = self._variables(value.shape)
        parts = tuple(p for p in mask.parts if reads_data(p) or not self._ranges.implies(sizes, inside, p))
        write = scattered if rows.others is None else marked
        return write(self._w, self._views, old, shape, rows, value, replace(mask, parts=parts))

    def accumulate(
        self, kind: ReductionKind, address: Address, value: Data, mask: Truth, active: Sequence[Index]
    ) -> None:
        """Fold the values of all instances, iterations and lanes that meet at a place into what lies there."""
        memory = self.memories[address.argument]
        if memory.overlaps:
            raise UnsupportedOperator(f"writes to {memory.name}, of which several elements lie at one place of memory")
        sizes = self._variables(address.shape)
        given = (*active, *mask.parts)
        address = settled(self._w, self._ranges, address, given, sizes)
        shape, places = self._places(memory, address, given, sizes)
        memory.stores.append(self._access(places, given, sizes, shape, kind))
        found = [self._digits(place, sizes, given) for place in places]
        if any(name.startswith(INSTANCE) for name in self._w.axes):
            raise UnsupportedOperator("accumulates in instances that are counted by other numbers than their ids")
        neutral = NEUTRAL[kind]
        nothing = self._w.constant(rb.cast(neutral, self._w.dtype(value)), value.shape, self._w.dtype(value))
        axes = tuple(self._w.axes)  # all instances take part, whether what they add differs or not
        whole = Data(self._w.spread(value, axes), axes, value.shape)
        if given or mask.data is not None:
            whole = self._w.select(self._w.truth(replace(mask, parts=given)), whole, nothing)
        b = self._w.b
        old = memory.position if shape == memory.sizes else rb.reshape(b, memory.position, shape)
        if any(map(reads_data, places)):
            new = self._accumulated_rows(kind, old, shape, places, found, whole)
            memory.position = rb.reshape(b, new, memory.sizes)
            return
        digits = [d for d in found if d is not None]
        if len(digits) < len(places) or _repeats(digits):
            raise UnsupportedOperator("accumulates at places that are no digits of its variables")
        names = {d.variable for p in digits for d in p.digits}
        folded = self._folded(kind, whole, names)
        new = self._views.tensor(folded, digits, shape, neutral)
        joined = {"sum": ops.Add, "maximum": ops.Maximum, "minimum": ops.Minimum}[kind]
        memory.position = rb.reshape(b, b.add(joined(), old, new), memory.sizes)

    def _accumulated_rows(
        self,
        kind: ReductionKind,
        old: int,
        shape: Sequence[Dim],
        places: Sequence[Index],
        digits: Sequence[Place | None],
        value: Data,
    ) -> int:
        self.notes[f"the rows that line {self._w.b.span.line} writes to are in bounds"] = None
        if has_lanes(self._w, places):
            return accumulated_at_points(self._w, old, places, value, kind)
        rows = rows_of(self._w, places, digits, value.shape)
        folded = self._folded(kind, value, set(names_of(rows)))
        return accumulated(self._w, self._views, old, shape, rows, folded, kind)

    def _folded(self, kind: ReductionKind, value: Data, names: set[str]) -> Data:
        """The fold over all variables but some; blocks keep an axis of one element."""
        b, outer = self._w.b, len(value.axes)
        gone = [n for n, name in enumerate(value.axes) if name not in names]
        lost = [k for k in range(len(value.shape)) if lane(k) not in names]
        position = rb.reduce(b, kind, value.position, [*gone, *(outer + k for k in lost)])
        axes = tuple(name for name in value.axes if name in names)
        position = rb.insert_ones(b, position, [len(axes) + k for k in lost])
        return Data(position, axes, tuple(1 if k in lost else n for k, n in enumerate(value.shape)))

    def _digits(self, place: Index, sizes: Mapping[str, Dim], given: Sequence[Index]) -> Place | None:
        """The digits of a place, of lanes those that a mask leaves."""
        lanes_of = {name: size for name, size in sizes.items() if name.startswith("lane")}

        def below(name: str, bound: int) -> bool:
            return name in lanes_of and self._ranges.implies(sizes, given, Index(bound - 1) - variable(name))

        return digits_of(place, sizes, below)

    def _of_first_lanes(self, place: Index, sizes: Mapping[str, Dim], given: Sequence[Index]) -> Index:
        """A place that is written, without lanes of which a mask leaves the first one alone."""
        names = {name for name in variables(place) if name.startswith("lane")}
        alone = {n: Index(0) for n in names if self._ranges.implies(sizes, given, variable(n) * -1)}
        return substitute(place, alone)

    def _read(self, places: Sequence[Index]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        names = dict.fromkeys(n for place in places for n in variables(place) if n.startswith(DATA))
        return tuple((name, tuple(sorted(axes_of(self._w, variable(name))))) for name in names)

    def _variables(self, block: Shape) -> dict[str, Dim]:
        return {**self._w.axes, **dict(zip(lanes(len(block)), block, strict=True))}

    def _inside(self, places: Sequence[Index], shape: Sequence[Dim]) -> tuple[Index, ...]:
        """That places lie in their axes."""
        found: list[Index] = []
        for place, size in zip(places, shape, strict=True):
            if not reads_data(place):  # which the look-up itself says has to be inside
                found += [place, Index(size - 1) - place]
        return tuple(found)

    def _places(
        self, memory: Memory, address: Address, given: Sequence[Index], sizes: Mapping[str, Dim]
    ) -> tuple[tuple[Dim, ...], tuple[Index, ...]]:
        """The places along the axes of a tensor, or along all of its memory, with the sizes of these axes.

        Raises UnsupportedOperator where it is not shown that they lie inside.
        """
        for shape, strides in memory.shapes():
            for splits in (False, True) if shape == memory.sizes else (len(shape) == 1,):
                places = by_axis(address.index, shape, strides, splits=splits)
                is_flat = len(shape) == 1 and shape != memory.sizes
                if places is None or (is_flat and reads_data(address.index) and not _is_all_data(address.index)):
                    continue
                if _is_narrow(shape, strides, places):
                    continue
                if self._ranges.holds(sizes, given, self._inside(places, shape)):
                    return shape, tuple(places)
        raise UnsupportedOperator(
            f"may be out of the bounds of {memory.name}: it is not shown that {address.index} is in"
        )

    def _only_once(self, value: Data, mask: Truth, names: set[str]) -> None:
        """Raises UnsupportedOperator where two instances, or two lanes, may write different values to one place."""
        masked = set(mask.data.axes if mask.data else ())
        for name in {name for part in mask.parts for name in variables(part)}:
            masked |= set(self._w.read(name).axes) if name.startswith(DATA) else {name}
        depends = set(value.axes) | masked
        for name in depends:
            if name in self._w.axes and name not in names and self._w.axes[name] != 1:
                raise UnsupportedOperator(f"several instances along {name} write to one place, so their order decides")
        sizes = self._variables(value.shape)
        for k, size in enumerate(value.shape):
            is_first = self._ranges.implies(sizes, mask.parts, variable(lane(k)) * -1)
            if size != 1 and lane(k) not in names and not is_first:
                raise UnsupportedOperator(f"several lanes along axis {k} of a block write to one place")

    def _covers(self, places: Sequence[Place], sizes: Sequence[Dim]) -> bool:
        """Whether all of a tensor is written."""
        for place, size in zip(places, sizes, strict=True):
            dense = all(n == d.size for n, d in zip(lengths(place), place.digits, strict=False))
            dense = dense and len(lengths(place)) == max(len(place.digits), 1)
            reaches = self._ranges.implies({}, (), Index(place.start + place.length - size))
            if not (dense and reaches and at_most(place.start, 0) is True):
                return False
        return True


def _is_all_data(index: Index) -> bool:
    return all(reads_data(Index(0, (term,))) for term in index.terms)


def _is_narrow(shape: Sequence[Dim], strides: Sequence[Dim], places: Sequence[Index]) -> bool:
    """Whether data counts along an axis that goes on in the one before it, where it may count further."""
    return any(
        reads_data(places[axis])
        and places[axis - 1].as_size() is not None
        and shape[axis - 1] != 1
        and strides[axis - 1] == strides[axis] * shape[axis]
        for axis in range(1, len(shape))
    )


def _unwrapped(places: Sequence[Index]) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
    """Places without remainders, and where they are what they were: ``x % n`` is ``x`` where ``x < n``."""
    found: list[Index] = []
    known: list[Index] = []
    for place in places:
        atom = place.terms[0][0] if len(place.terms) == 1 else None
        if isinstance(atom, Remainder) and place == Index(0, ((atom, 1),)):
            known.append(Index(atom.divisor - 1) - atom.numerator)
            found.append(atom.numerator)
        else:
            found.append(place)
    return tuple(found), tuple(known)


def _repeats(places: Sequence[Place | None]) -> bool:
    """Whether one variable moves along two axes."""
    names = [d.variable for p in places if p is not None for d in p.digits]
    return len(names) != len(set(names))
