"""Which rank waits for which: messages and collectives in the order in which every rank begins and awaits them.

A graph of values does not say when a program waits. Here that is played through, once with messages that are kept until
somebody receives them, and once with sends that end when the receive was begun, as MPI's standard and synchronous
modes are (MPI 4.1, section 3.4).
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from rewright.frontends.torch.messages import calling_line

_Channel = tuple[object, ...]


@dataclass(frozen=True)
class Call:
    """Something that one rank begins, or waits for."""

    kind: Literal["send", "recv", "collective", "wait"]
    ticket: int
    """Its number on its rank; of a wait, that of what is waited for."""
    ranks: tuple[int, ...] = ()
    """The other rank of a message, the group of a collective."""
    tag: int = 0
    where: str = ""


@dataclass(frozen=True)
class Group:
    """A process group that a rank makes, together with all ranks."""

    ranks: tuple[int, ...]
    where: str


@dataclass(frozen=True)
class Waits:
    """What one rank does among others, in order."""

    calls: tuple[Call, ...] = ()
    groups: tuple[Group, ...] = ()


class _Log(threading.local):
    """What the rank that this thread traces or runs has called."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.groups: list[Group] = []

    def taken(self) -> Waits:
        """All of it so far."""
        return Waits(tuple(self.calls), tuple(self.groups))

    def makes(self, ranks: Iterable[int]) -> None:
        """Note that a group is made."""
        self.groups.append(Group(tuple(ranks), _line()))

    def begin(self, kind: Literal["send", "recv", "collective"], ranks: Iterable[int], tag: int = 0) -> int:
        """Note what begins, and return its ticket."""
        ticket = len(self.calls)
        self.calls.append(Call(kind, ticket, tuple(ranks), tag, _line()))
        return ticket

    def wait(self, ticket: int) -> None:
        """Note that it is waited for."""
        self.calls.append(Call("wait", ticket))


log = _Log()


def deadlock(ranks: Sequence[Waits]) -> str:
    """Which ranks wait for ever, for each other's messages or in making a group, or an empty string."""
    why = _other_groups([found.groups for found in ranks])
    if why:
        return f"deadlock: {why}; have every rank make every group, in one order"
    calls = [found.calls for found in ranks]
    why = _Play(calls, kept=True).stuck() if _has_messages(calls) else ""
    return why and f"deadlock: {why}; send before receiving on one of them, or begin both before waiting"


def notes(ranks: Sequence[Waits]) -> tuple[str, ...]:
    """Which ranks wait for each other where messages are not kept until they are received."""
    calls = [found.calls for found in ranks]
    why = _Play(calls, kept=False).stuck() if _has_messages(calls) else ""
    if not why:
        return ()
    return (f"{why}: that ends only where messages are kept until they are received; begin both before waiting",)


def _line() -> str:
    return calling_line(inspect.currentframe()) or "an unknown line"


def _other_groups(ranks: Sequence[Sequence[Group]]) -> str:
    """Where one rank makes another group than the first rank does, or none."""
    for rank, made in enumerate(ranks):
        for mine, other in zip_longest(ranks[0], made):
            if mine is None or other is None or mine.ranks != other.ranks:
                return f"{_making(0, mine)}, while {_making(rank, other)}"
    return ""


def _making(rank: int, group: Group | None) -> str:
    if group is None:
        return f"rank {rank} makes no further group"
    return f"rank {rank} makes the group of ranks {', '.join(map(str, group.ranks))} at {group.where}"


def _has_messages(ranks: Sequence[Sequence[Call]]) -> bool:
    return any(call.kind in ("send", "recv") for calls in ranks for call in calls)


class _Play:
    """All ranks, each as far as it gets."""

    def __init__(self, ranks: Sequence[Sequence[Call]], kept: bool) -> None:
        self.ranks, self.kept = ranks, kept
        self.next = [0] * len(ranks)
        self.places: list[dict[int, tuple[_Channel, int]]] = [{} for _ in ranks]
        """By ticket the channel of a call, and how many of its kind this rank began there before."""
        self.begun: Counter[_Channel] = Counter()
        self.uneven = _uneven(ranks)

    def stuck(self) -> str:
        """Who waits for whom, or an empty string."""
        moved = True
        while moved:
            moved = sum(map(self._advance, range(len(self.ranks)))) > 0
        waiting = [rank for rank, calls in enumerate(self.ranks) if self.next[rank] < len(calls)]
        return " and ".join(map(self._told, waiting[:2]))

    def _advance(self, rank: int) -> bool:
        """Whether the rank got any further."""
        calls, first = self.ranks[rank], self.next[rank]
        while self.next[rank] < len(calls):
            call = calls[self.next[rank]]
            if call.kind == "wait":
                if not self._is_done(rank, call.ticket):
                    break
            else:
                channel = _channel(rank, call)
                self.places[rank][call.ticket] = channel, self.begun[channel]
                self.begun[channel] += 1
            self.next[rank] += 1
        return self.next[rank] > first

    def _is_done(self, rank: int, ticket: int) -> bool:
        call = self.ranks[rank][ticket]
        channel, number = self.places[rank][ticket]
        if call.kind == "collective":
            others = [("collective", call.ranks, member) for member in call.ranks]
            return call.ranks in self.uneven or all(self.begun[other] > number for other in others)
        if call.kind == "send" and self.kept:
            return True
        other = ("recv" if call.kind == "send" else "send", *channel[1:])
        return self.begun[other] > number

    def _told(self, rank: int) -> str:
        call = self.ranks[rank][self.ranks[rank][self.next[rank]].ticket]
        if call.kind == "collective":
            return f"rank {rank} waits at {call.where} for ranks {', '.join(map(str, call.ranks))}"
        does = "receive what it sends" if call.kind == "send" else "send what it receives"
        return f"rank {rank} waits for rank {call.ranks[0]} to {does} at {call.where}"


def _channel(rank: int, call: Call) -> _Channel:
    """Where a call meets others: a message by its ends and tag, a collective by its group."""
    if call.kind == "send":
        return ("send", rank, call.ranks[0], call.tag)
    if call.kind == "recv":
        return ("recv", call.ranks[0], rank, call.tag)
    return ("collective", call.ranks, rank)


def _uneven(ranks: Sequence[Sequence[Call]]) -> set[tuple[int, ...]]:
    """Groups that are not called equally often by their members: some calls do not come by here."""
    counts: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for rank, calls in enumerate(ranks):
        for call in calls:
            if call.kind == "collective":
                counts[call.ranks][rank] += 1
    return {group for group, found in counts.items() if len({found[member] for member in group}) > 1}
