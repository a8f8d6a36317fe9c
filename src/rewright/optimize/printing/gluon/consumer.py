"""The consumer partition: tiles are waited for instead of loaded, multiplied where they are, and released."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.printing.gluon.rings import Ring, require, tile_load
from rewright.optimize.printing.statements import (
    Assign,
    Call,
    Do,
    If,
    Let,
    Load,
    Loop,
    Name,
    Scalar,
    Statement,
    Store,
    Sum,
    call,
    total,
    whole,
)


@dataclass(frozen=True, slots=True)
class _View:
    """A tile in shared memory by a name, which may call its elements wider than they are."""

    tile: Name
    is_transposed: bool
    stored: DType
    dtype: DType


@dataclass(frozen=True)
class Consumer:
    """The consumer partition of a kernel with these rings."""

    rings: Mapping[str, Ring]
    lefts: set[str]
    """Left operands of products that are the same for all tiles: they are put into shared memory once."""
    views: dict[str, _View] = field(default_factory=dict[str, _View])
    held: set[str] = field(default_factory=set[str])
    """Rings of which a tile is held."""

    def all(self, body: Sequence[Statement]) -> Iterator[Statement]:
        """All statements of the partition; raises RewrightError where it uses a tile otherwise than in a product."""
        yield from (Let(ring.count.text, whole(0), DType.I32) for ring in self.rings.values())
        made = {s.name for s in body if isinstance(s, Let)}
        require(self.lefts <= made, "a left operand changes from tile to tile")
        for s in self.block(body):
            yield s
            if isinstance(s, Let) and s.name in self.lefts:
                yield Let(_shared(s.name), call("as_shared", Name(s.name)))

    def block(self, body: Sequence[Statement]) -> list[Statement]:
        """Statements whose tiles are released at their end."""
        found: list[Statement] = []
        taken: list[Ring] = []
        for s in body:
            if (load := tile_load(s)) is not None:
                ring = self.rings[load.descriptor]
                require(ring.name not in self.held, "two tiles of a tensor are held at once")
                self.held.add(ring.name)
                taken.append(ring)
                self.views[load.name] = _View(Name(load.name), load.is_transposed, ring.dtype, ring.dtype)
                found.append(Let(load.name, call("take_tile", ring.places, ring.count)))
            else:
                found += self.statement(s)
        for ring in taken:
            self.held.remove(ring.name)
            found.append(Do(call("release_tile", ring.places, ring.count)))
            found.append(Assign(ring.count, total(ring.count, 1)))
        return found

    def statement(self, s: Statement) -> list[Statement]:
        match s:
            case Let(name, value) | Assign(Name(name), value) if (view := self.view(value)) is not None:
                require(isinstance(s, Let) or name in self.views, "a tile is computed with")
                self.views[name] = view
                return []
            case Assign(_, Call("descriptor")):
                return []
            case Let(name, value):
                self.views.pop(name, None)
                return [replace(s, value=self.value(value))]
            case Assign(target, value):
                require(not isinstance(target, Name) or target.text not in self.views, "a tile is computed with")
                return [replace(s, value=self.value(value))]
            case Store():
                guard = None if s.guard is None else self.value(s.guard)
                return [replace(s, place=self.value(s.place), value=self.value(s.value), guard=guard)]
            case Loop():
                return [replace(s, body=tuple(self.block(s.body)), is_piped=False)]
            case If():
                then, otherwise = tuple(self.block(s.then)), tuple(self.block(s.otherwise))
                return [replace(s, condition=self.value(s.condition), then=then, otherwise=otherwise)]
            case _:
                raise RewrightError(f"no specialised warps for the statement {type(s).__name__}")

    def view(self, e: Scalar) -> _View | None:
        """The tile that a value is; one that is widened and narrowed again is as it was."""
        match e:
            case Name(text):
                return self.views.get(text)
            case Call("cast", (argument,)) if (view := self.view(argument)) is not None:
                return replace(view, dtype=e.dtype) if e.dtype in (view.stored, DType.F32) else None
            case _:
                return None

    def left(self, e: Scalar) -> Scalar:
        """The left operand of a product: in shared memory, or in the registers that the product reads."""
        if isinstance(e, Name) and e.text in self.lefts:
            return Name(_shared(e.text))
        return call("as_left", self.value(e))

    def value(self, e: Scalar) -> Scalar:
        match e:
            case Name(text):
                require(text not in self.views, "a tile is computed with")
                return e
            case Sum():
                return replace(e, terms=tuple((self.value(term), n) for term, n in e.terms))
            case Load():
                return replace(e, place=self.value(e.place), guard=None if e.guard is None else self.value(e.guard))
            case Call("dot" | "add_dot", (left, right, *rest)):
                view = self.view(right)
                if view is None or view.dtype is not view.stored:
                    raise RewrightError("no specialised warps where a product has no tile that was copied")
                tile = call("transposed", view.tile) if view.is_transposed else view.tile
                return replace(e, arguments=(self.left(left), tile, *map(self.value, rest)))
            case Call("cast_like", (value, items)) if (view := self.view(items)) is not None:
                return call("cast", self.value(value), dtype=view.dtype)
            case Call():
                return replace(e, arguments=tuple(map(self.value, e.arguments)))
            case _:
                return e


def _shared(name: str) -> str:
    """The variable of a left operand in shared memory."""
    return f"shared_{name}"
