"""What programs of the sweep take, written as text: ``"f b s 16"`` is a float tensor of sizes b, s and 16."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Sizes = Mapping[str, int]
KINDS = {
    "f": "floats, whose dtype is drawn",
    "p": "floats above zero",
    "n": "integers, whose dtype is drawn",
    "m": "booleans",
    "i": "places along the axis whose size is the first word: ``i v b`` has size b and numbers below v",
    "number": "a float",
    "count": "an integer",
    "flag": "a boolean",
}


@dataclass(frozen=True)
class Spec:
    """One argument."""

    kind: str
    words: tuple[str, ...] = ()

    @staticmethod
    def of(text: str) -> Spec:
        """Read it; raises ValueError for a kind that there is not."""
        kind, *words = text.split()
        if kind not in KINDS:
            raise ValueError(f"{text!r} begins with none of {', '.join(KINDS)}")
        return Spec(kind, tuple(words))

    @property
    def is_tensor(self) -> bool:
        """Whether it is no number of Python's."""
        return len(self.kind) == 1

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        """The sizes of the tensor."""
        words = self.words[1:] if self.kind == "i" else self.words
        return tuple(_size(word, sizes) for word in words)

    def limit(self, sizes: Sizes) -> int:
        """What places are below."""
        return _size(self.words[0], sizes)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The sizes that it names."""
        return tuple(word for word in self.words if not word.isdigit())


@dataclass(frozen=True)
class Program:
    """A function, or with ``module`` what makes one for some sizes, and its arguments."""

    name: str
    function: Callable[..., Any]
    specs: tuple[Spec, ...]
    module: bool = False
    exact: bool = True
    """Whether its floats in float64 are the same function, so that errors can be told from differences."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """The sizes that its arguments name, each once."""
        return tuple(dict.fromkeys(symbol for spec in self.specs for symbol in spec.symbols))

    def made(self, sizes: Sizes) -> Callable[..., Any]:
        """What is called at some sizes; modules have the same parameters each time."""
        return self.function(sizes) if self.module else self.function


def programs(module: bool = False, **texts: tuple[Callable[..., Any], str]) -> dict[str, Program]:
    """Programs by name, each a function and its arguments, set apart by commas."""
    return {
        name: Program(name, function, tuple(Spec.of(part) for part in text.split(",")), module)
        for name, (function, text) in texts.items()
    }


def _size(word: str, sizes: Sizes) -> int:
    return int(word) if word.isdigit() else sizes[word]
