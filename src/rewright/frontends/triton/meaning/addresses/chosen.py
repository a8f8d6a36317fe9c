"""Places that are one of two: ``where(row < rows, row, 0)``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rewright.frontends.triton.meaning.addresses.indices import DATA, lanes, rejoined, substitute, variables
from rewright.frontends.triton.meaning.addresses.safety import Ranges
from rewright.frontends.triton.meaning.values import Address, Truth
from rewright.frontends.triton.meaning.writer import Writer
from rewright.ir.dims import Dim
from rewright.terms.index import Index


def settled(
    writer: Writer, ranges: Ranges, address: Address, given: Sequence[Index], sizes: Mapping[str, Dim]
) -> Address:
    """The address with choices made that are decided wherever it is used."""
    index = rejoined(address.index)
    while True:
        for name in [name for name in variables(index) if name in writer.choices]:
            choice = writer.choices[name]
            if ranges.holds(sizes, given, choice.parts):
                index = substitute(index, {name: choice.yes})
            elif any(ranges.implies(sizes, given, part * -1 - 1) for part in choice.parts):
                index = substitute(index, {name: choice.no})
            else:
                continue
            break
        else:
            return replace(address, index=index)


def open_choice(writer: Writer, index: Index) -> str | None:
    """A choice by one condition that an index depends on, and no other data beside."""
    names = [name for name in variables(index) if name.startswith(DATA)]
    is_simple = all(name in writer.choices and len(writer.choices[name].parts) == 1 for name in names)
    return names[0] if names and is_simple else None


def ways(
    writer: Writer, ranges: Ranges, address: Address, name: str, active: Sequence[Index], masks: Sequence[Truth]
) -> Iterator[tuple[Address, Truth | None, Truth | None]]:
    """Both places that may be chosen, with the first and the last of some masks there; None for one that never holds.

    The place where the condition does not hold comes first.
    """
    choice = writer.choices[name]
    sizes = {**writer.axes, **dict(zip(lanes(len(address.shape)), address.shape, strict=True))}
    (part,) = choice.parts
    alike = [other for other, its in writer.choices.items() if its == choice]
    for index, own in ((choice.no, part * -1 - 1), (choice.yes, part)):
        values = dict.fromkeys(alike, index)
        found: list[Truth | None] = []
        for mask in masks:
            parts = (*(substitute(p, values) for p in mask.parts), own)
            never = any(ranges.implies(sizes, active, p * -1 - 1) for p in parts)
            found.append(None if never else replace(mask, parts=parts))
        yield replace(address, index=substitute(address.index, values)), found[0], found[-1]
