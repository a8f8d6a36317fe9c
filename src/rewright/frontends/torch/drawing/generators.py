"""Names for the states of generators while a program is traced.

A trace has no values, so a draw would leave its generator as it was. Here it leaves it in a state of its own, which is
made of the name of the state before and of what was drawn. So whatever saves a state and goes back to it (activation
checkpoints, Megatron's tracker, ``fork_rng``) draws the same numbers again, and whatever sets a seed draws others.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from rewright.ir.draws import START, Draw, digest_of

_NOBODYS_SEED = 0x5EED_0F_4000_0D1E
"""What the default generator says its seed is until somebody sets one."""
Run = Callable[[], torch.Tensor]
_C: Any = torch._C  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True)
class Region:
    """Where each rank draws its part of one tensor: which part, and the shape of the whole."""

    part: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]


class Generators:
    """The generators that a program draws from; inside the block that it is, they may be moved.

    Args:
        seeded: whether the program has set the seed of the default generator, so that its state is known.
        moves: whether a draw has to move its generator, because nothing is drawn in fact.
    """

    def __init__(self, *, seeded: bool = False, moves: bool = True) -> None:
        self._seeded, self._moves = seeded, moves
        self._names: dict[str, str] = {}
        self._first: dict[int, tuple[Any, Any]] = {}
        """The generators that were moved, with the state that they had."""
        self.region: Region | None = None

    def __enter__(self) -> Generators:
        """Begin: the default generator is in the state that its program finds it in."""
        generator: Any = torch.default_generator
        if self._moves:
            self._keep(generator)
        if not self._seeded:
            if self._moves:  # no seed makes this state
                self._move(generator, digest_of(START))
            self._names[_state(generator)] = START
        return self

    def __exit__(self, *_: object) -> None:
        """End: every generator that was moved is where it was."""
        for generator, state in self._first.values():
            generator.set_state(state)
        self._first.clear()

    def draw(self, kind: str, generator: Any, device: Any, run: Run) -> tuple[torch.Tensor, Draw]:
        """What a call gives that draws from a generator, the default one of a device for None, and which draw it is."""
        chosen = generator if generator is not None else _default(device)
        if self._moves:
            self._keep(chosen)
        before = self._name(chosen)
        result = run()
        shape = tuple(result.shape)  # numbers are real ones, whatever they are rounded to
        value = after = digest_of(before, kind, shape)
        if self.region is not None:
            value = digest_of(before, kind, shape, self.region)
            after = digest_of(before, kind, self.region.shape)
        if self._moves:
            self._move(chosen, after)
        self._names[_state(chosen)] = after
        return result, Draw(kind, before, value, after)

    def _keep(self, generator: Any) -> None:
        """Remember the state of a generator, to which it goes back at the end."""
        if id(generator) not in self._first:
            self._first[id(generator)] = generator, generator.get_state()

    def _name(self, generator: Any) -> str:
        """The name of the state that a generator is in; one that is not known was set by a seed."""
        state = _state(generator)
        return self._names.get(state) or f"seed {state}"

    def _move(self, generator: Any, name: str) -> None:
        """Leave a generator in the state of this name; what it says of its seed stays."""
        seed = generator.initial_seed()
        generator.manual_seed(int(name, 16))
        _say_seed(generator, seed)


def seed_was_set() -> bool:
    """Whether the program set a seed since :func:`watching_seeds` was entered."""
    return torch.default_generator.initial_seed() != _NOBODYS_SEED


@contextmanager
def watching_seeds() -> Generator[None]:
    """Inside, it is known whether the seed of the default generator is set; its numbers stay as they are."""
    generator: Any = torch.default_generator
    with unset_fake_temporarily():
        before = generator.initial_seed()
        _say_seed(generator, _NOBODYS_SEED)
    try:
        yield
    finally:
        if not seed_was_set():
            with unset_fake_temporarily():
                _say_seed(generator, before)


def _default(device: Any) -> Any:
    """The generator that draws on a device, the current one for None, where no generator is named."""
    chosen = torch.device(device) if device is not None else torch.get_default_device()
    if chosen.type == "cuda":
        return torch.cuda.default_generators[chosen.index or 0]
    return torch.default_generator


def _state(generator: Any) -> str:
    return digest_of(_bytes(generator.get_state()))


def _bytes(state: Any) -> bytes:
    guard = _C._DisableTorchDispatch()
    try:
        return state.numpy().tobytes()
    finally:
        del guard


def _say_seed(generator: Any, seed: int) -> None:
    """Have a generator of the CPU say that this was its seed: eight bytes of its state, which it does not draw from."""
    if generator.device.type != "cpu":
        return
    state = generator.get_state()
    guard = _C._DisableTorchDispatch()
    try:
        state.numpy()[:8] = list(struct.pack("<Q", seed))
    finally:
        del guard
    generator.set_state(state)
