"""Stored tensors that a plan reads, as graphs: layout operators where these can, and gathers where they cannot."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.dims import Dim, at_most, divide, is_nonnegative, product
from rewright.ir.errors import RewrightError
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.optimize.planning.folding import digit_of, folded_axes, parted_axis
from rewright.optimize.scalars.expressions import Expression, Table, names
from rewright.optimize.scalars.ranges import Span, is_below, span
from rewright.optimize.scalars.simplify import as_index
from rewright.optimize.sizes.counting import add_count
from rewright.terms.index import Index, Quotient, Variable

Axes = tuple[str, ...]
Digit = tuple[str, Quotient | None, Dim]
"""A loop, the quotient of it that is the digit (None: itself), and the number of values."""
Value = tuple[int, Axes]
"""A node, and the loops that its axes are."""


class NoGraph(RewrightError):
    """A plan that has no form as a graph, and the tensors of the kernel that has none; it can be tested, not proved."""

    def __init__(self, why: str, tensors: tuple[int, ...] = ()) -> None:
        super().__init__(why)
        self.tensors = tensors


class Loads:
    """Writes what is read at indices; what these are is up to the graph that is written."""

    def __init__(self, builder: GraphBuilder, table: Table) -> None:
        self.builder, self.table = builder, table
        self.sizes: dict[str, Dim] = {}
        """The sizes of loops by name."""

    @property
    def ranges(self) -> dict[str, Span]:
        """The first and the last value of loops by name."""
        return {name: (0, count - 1) for name, count in self.sizes.items()}

    def value(self, e: Expression) -> Value:
        """The tensor of an expression."""
        raise NotImplementedError

    def copied(self, position: int) -> int:
        """A stored tensor, or a view of one."""
        raise NotImplementedError

    # --- axes

    def filled(self, value: Dim, kind: TensorType) -> int:
        """A tensor of one size."""
        if isinstance(value, int):
            return self.builder.add(ops.Constant(kind, (value,)))
        return self.builder.add(ops.BroadcastInDim(kind.shape, ()), add_count(self.builder, value, kind.dtype))

    def converted(self, value: Value, dtype: DType) -> Value:
        """The value in the dtype of the tensor that it becomes."""
        if self.builder.type(value[0]).dtype is dtype:
            return value
        return self.builder.add(ops.Convert(dtype), value[0]), value[1]

    def ordered(self, value: Value, axes: Axes) -> int:
        """The tensor with axes in an order."""
        position, mine = value
        permutation = tuple(mine.index(a) for a in axes)
        if permutation == tuple(range(len(mine))):
            return position
        return self.builder.add(ops.Transpose(permutation), position)

    def spread(self, value: Value, axes: Axes) -> Value:
        """The value broadcast to axes, of which it has some."""
        position, mine = value
        if mine == axes:
            return value
        shape = tuple(self.sizes[a] for a in axes)
        order = [a for a in axes if a in mine]
        position = self.ordered(value, tuple(order))
        if tuple(order) == axes:
            return position, axes
        return self.builder.add(ops.BroadcastInDim(shape, tuple(axes.index(a) for a in order)), position), axes

    def joint(self, values: list[Value]) -> Axes:
        """The axes that values have together, in order of first occurrence in the longest."""
        longest = max(values, key=lambda v: len(v[1]))[1]
        return tuple(dict.fromkeys([*longest, *(a for v in values for a in v[1])]))

    # --- loads

    def load(self, e: Expression) -> Value:
        """A stored tensor at indices, by layout operators."""
        position, places = self.folded(*self.stretched(self.copied(e.tensor), e.arguments))
        if not all(self.is_layout(position, places, axis) for axis in range(len(places))):
            return self.looked_up(position, places)
        axes: list[str] = []
        for index in map(as_index, places):
            assert index is not None
            position, names = self.along(position, len(axes), index)
            axes += names
        kept = [(a, self.sizes[a]) for a in axes if a]
        if len(kept) != len(axes):
            position = self.builder.add(ops.Reshape(tuple(size for _, size in kept)), position)
        return position, tuple(a for a, _ in kept)

    def stretched(self, position: int, places: Sequence[Expression]) -> tuple[int, tuple[Expression, ...]]:
        """The tensor and where it is read, with axes that are read at ``x div n`` as axes n times as long, read at x.

        What is computed from data has no digits that layout operators know; the tokens that choices belong to have.
        """
        found = list(places)
        for axis, place in enumerate(places):
            index = as_index(place)
            if index is None or index.constant != 0 or len(index.terms) != 1 or index.terms[0][1] != 1:
                continue
            atom = index.terms[0][0]
            inner = atom.numerator.as_variable() if isinstance(atom, Quotient) else None
            alone = all(a is place or not _reads(a, inner) for a in places)
            if inner is None or not inner.name.startswith("@") or not alone:
                continue
            if isinstance(atom, Quotient):
                position = self.long(position, axis, 1, atom.divisor)
                found[axis] = self.table.index(Index(0, ((inner, 1),)), place.dtype)
        return position, tuple(found)

    def folded(self, position: int, places: Sequence[Expression]) -> tuple[int, tuple[Expression, ...]]:
        """The tensor and where it is read, with axes side by side that the digits of one loop are read along."""
        sizes, ranges = self.builder.type(position).shape, self.ranges
        indices = [as_index(a) for a in places]
        found = folded_axes(indices, sizes, ranges)
        if found is None:
            other = [None if self.is_layout(position, places, axis) else i for axis, i in enumerate(indices)]
            parted = parted_axis(other, sizes, ranges)
            if parted is None:
                return position, tuple(places)
            cut = parted.axis
            count = divide(sizes[cut], parted.step)
            assert count is not None
            both = [self.table.index(i, places[cut].dtype) for i in (parted.high, parted.low)]
            shape = (*sizes[:cut], count, parted.step, *sizes[cut + 1 :])
            position = self.builder.add(ops.Reshape(shape), position)
            return self.folded(position, [*places[:cut], *both, *places[cut + 1 :]])
        before = [axis for axis in range(len(sizes)) if axis < min(found.axes)]
        after = [axis for axis in range(len(sizes)) if axis > min(found.axes) and axis not in found.axes]
        order = (*before, *found.axes, *after)
        if order != tuple(range(len(sizes))):
            position = self.builder.add(ops.Transpose(order), position)
        wide = (*(sizes[a] for a in before), product(sizes[a] for a in found.axes), *(sizes[a] for a in after))
        position = self.builder.add(ops.Reshape(wide), position)
        joined = self.table.index(found.index, places[found.axes[0]].dtype)
        return self.folded(position, [*(places[a] for a in before), joined, *(places[a] for a in after)])

    def is_layout(self, position: int, places: Sequence[Expression], axis: int) -> bool:
        """Whether layout operators can read an axis at its index: a loop of its own, perhaps from an offset."""
        index = as_index(places[axis])
        size = self.builder.type(position).shape[axis]
        if index is None:
            return False
        if not index.terms:
            return True
        if any(places[axis].free & a.free for n, a in enumerate(places) if n != axis):
            return False
        if self.digits(index, size) is not None:
            return True
        if len(index.terms) != 1 or index.terms[0][1] != 1:
            return False
        digit = digit_of(index.terms[0][0], self.sizes) if index.constant == 0 else None
        return digit is not None and digit[2] == size

    def digits(self, index: Index, size: Dim) -> list[Digit] | None:
        """The digits of an index that is a number in mixed radix, most significant first."""
        left = [(factor, self.digit(atom)) for atom, factor in index.terms]
        found: list[Digit] = []
        step: Dim = 1
        while left:
            place = next((n for n in reversed(range(len(left))) if left[n][0] == step), None)
            digit = None if place is None else left.pop(place)[1]
            if digit is None:
                return None
            found.insert(0, digit)
            step = step * digit[2]
        fits = is_nonnegative(index.constant) and at_most(index.constant + step, size)
        return found if fits else None

    def digit(self, atom: object) -> Digit | None:
        """A loop, or the quotient of one by a divisor of its size."""
        if isinstance(atom, Variable) and not atom.name.startswith("@"):
            return atom.name, None, self.sizes[atom.name]
        inner = atom.numerator.as_variable() if isinstance(atom, Quotient) else None
        if not isinstance(atom, Quotient) or inner is None or inner.name.startswith("@"):
            return None
        count = divide(self.sizes[inner.name], atom.divisor)
        return None if count is None else (inner.name, atom, count)

    def looked_up(self, position: int, places: Sequence[Expression]) -> Value:
        """A stored tensor at computed indices, by a gather; indices that are not used are brought into range.

        Axes that layout operators can read are windows of the gather, as the rows of a table of embeddings are.
        """
        windows: list[str] = []
        sought: list[Value] = []
        looked: list[int] = []
        axis = 0
        for number, place in enumerate(places):
            size = self.builder.type(position).shape[axis]
            index = as_index(place) if self.is_loop(places, number, size) else None
            if index is None:
                looked.append(axis)
                sought.append(self.converted(self.clamped(place, self.value(place), size), DType.I64))
                axis += 1
            else:
                position, names = self.along(position, axis, index)
                if names == [""]:
                    shape = self.builder.type(position).shape
                    position = self.builder.add(ops.Reshape((*shape[:axis], *shape[axis + 1 :])), position)
                    names = []
                windows += names
                axis += len(names)
        axes = self.joint(sought)
        last = len(axes)
        shape = (*(self.sizes[a] for a in axes), 1)
        parts = [self.builder.add(ops.Reshape(shape), self.spread(v, axes)[0]) for v in sought]
        indices = parts[0] if len(parts) == 1 else self.builder.add(ops.Concatenate(last), *parts)
        whole = self.builder.type(position).shape
        sizes = tuple(1 if a in looked else size for a, size in enumerate(whole))
        offsets = tuple(range(last, last + len(windows)))
        op = ops.Gather(offsets, tuple(looked), (), (), tuple(looked), last, sizes)
        return self.builder.add(op, position, indices), (*axes, *windows)

    def is_loop(self, places: Sequence[Expression], axis: int, size: Dim) -> bool:
        """Whether an axis is read at the digits of loops, all of it or a part, and no other axis at these loops."""
        index = as_index(places[axis])
        if index is None:
            return False
        if (place := index.as_size()) is not None:
            return is_below((place, place), size)
        if any(places[axis].free & a.free for n, a in enumerate(places) if n != axis):
            return False
        found = self.digits(index, size)
        return found is not None and all(quotient is None for _, quotient, _ in found)

    def clamped(self, e: Expression, value: Value, size: Dim) -> Value:
        """The index, brought into range where it may leave it: there the value is read and not used."""
        index = as_index(e)
        found = None if index is None else span(index, self.ranges)
        if found is None or is_below(found, size):
            return value
        kind = self.builder.type(value[0])
        low = self.builder.add(ops.Constant(kind, (0,)))
        high = self.filled(size - 1, kind)
        return self.builder.add(ops.Clamp(), low, value[0], high), value[1]

    def along(self, position: int, axis: int, index: Index) -> tuple[int, list[str]]:
        """One axis of a stored tensor at an index: the loops that it becomes; an empty name is an axis of size one."""
        shape = self.builder.type(position).shape
        size = index.as_size()
        if size is not None:
            return self.window(position, axis, size, 1), [""]
        found = self.digits(index, shape[axis])
        if found is not None:
            sizes = [extent for _, _, extent in found]
            position = self.window(position, axis, index.constant, product(sizes))
            if len(found) > 1:
                shape = self.builder.type(position).shape
                position = self.builder.add(ops.Reshape((*shape[:axis], *sizes, *shape[axis + 1 :])), position)
            for number, (name, quotient, _) in enumerate(found):
                if quotient is not None:
                    position = self.repeated(position, axis + number, quotient, name)
            return position, [name for name, _, _ in found]
        digit = digit_of(index.terms[0][0], self.sizes)
        assert digit is not None
        return self.repeated(position, axis, index.terms[0][0], digit[0]), [digit[0]]

    def window(self, position: int, axis: int, start: Dim, width: Dim) -> int:
        """A slice along one axis."""
        shape = self.builder.type(position).shape
        if shape[axis] == width:
            return position
        low = tuple(start if a == axis else 0 for a in range(len(shape)))
        high = tuple(start + width if a == axis else s for a, s in enumerate(shape))
        return self.builder.add(ops.Slice(low, high, (1,) * len(shape)), position)

    def repeated(self, position: int, axis: int, atom: object, loop: str) -> int:
        """An axis at a digit of a loop: every element is repeated, and then the whole, until the loop is full."""
        shape, size = self.builder.type(position).shape, self.sizes[loop]
        digit = digit_of(atom, self.sizes)
        if digit is None or shape[axis] != digit[2]:
            raise NoGraph(f"a digit of a loop of size {size} has no layout operator")
        _, step, values = digit
        whole = divide(size, step * values)
        if whole is None:
            raise NoGraph(f"a digit of a loop of size {size} has no layout operator")
        return self.long(position, axis, whole, step)

    def long(self, position: int, axis: int, whole: Dim, step: Dim) -> int:
        """An axis of which every element is repeated so many times, and then all of that."""
        shape = self.builder.type(position).shape
        values = shape[axis]
        size = whole * values * step
        before, after = [whole] * (whole != 1), [step] * (step != 1)
        wide = (*shape[:axis], *before, values, *after, *shape[axis + 1 :])
        kept = tuple(a + len(before) * (a >= axis) + len(after) * (a > axis) for a in range(len(shape)))
        spread = self.builder.add(ops.BroadcastInDim(wide, kept), position)
        return self.builder.add(ops.Reshape((*shape[:axis], size, *shape[axis + 1 :])), spread)


def _reads(place: Expression, name: Variable | None) -> bool:
    """Whether an index is made of a name."""
    index = as_index(place)
    return index is None or name is None or name.name in names(index)
