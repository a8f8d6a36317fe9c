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

from rewright.frontends.aten.context import Communicator
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
    """The tag of a message; of a collective which of the groups of these ranks it is called on."""
    where: str = ""


@dataclass(frozen=True)
class Group:
    """A process group that a rank makes, together with all ranks, or, if it is ``local``, with the members only.

    Ranks meet by its name. PyTorch counts the groups that all ranks make; the name of a local one is made of its ranks
    and of the number of groups that the rank is in.
    """

    name: str
    ranks: tuple[int, ...]
    where: str
    own: bool
    """Whether the rank is a member."""
    local: bool


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

    def entries(self) -> Waits:
        """All of it so far."""
        return Waits(tuple(self.calls), tuple(self.groups))

    def makes(self, name: str, ranks: Iterable[int], rank: int, local: bool = False) -> None:
        """Note that a rank makes a group."""
        every = tuple(ranks)
        self.groups.append(Group(name, every, _line(), rank in every, local))

    def communicators(self) -> dict[str, Communicator]:
        """The groups that the rank is or was in, by name; those of the same ranks are counted as they were made."""
        found: dict[str, Communicator] = {}
        counts: Counter[frozenset[int]] = Counter()
        for group in self.groups:
            if group.own and group.name not in found:
                members = frozenset(group.ranks)
                found[group.name] = Communicator(group.ranks, counts[members])
                counts[members] += 1
        return found

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
    """Which ranks wait for ever, for each other's calls or in making a group, or an empty string."""
    groups = [found.groups for found in ranks]
    why = _other_groups(groups) or _other_names(groups)
    if why:
        return f"deadlock: {why}; have every rank make every group, in one order"
    calls = [found.calls for found in ranks]
    if not (_has_messages(calls) or _goes_on(calls) or _has_several(calls)):
        return ""  # then the calls themselves say all
    why = _Play(calls, kept=True, groups=groups).stuck()
    return why and f"deadlock: {why}; {_way_out(calls)}"


def notes(ranks: Sequence[Waits]) -> tuple[str, ...]:
    """Which ranks wait for each other where messages are not kept, and what meets that another line begins."""
    calls, groups = [found.calls for found in ranks], [found.groups for found in ranks]
    play = _Play(calls, kept=False, groups=groups)
    why = play.stuck() if _has_messages(calls) else ""
    if why:
        return (f"{why}: that ends only where messages are kept until they are received; begin both before waiting",)
    return _cross(calls, groups) if _has_several(calls) else ()


def have_equal_order(ranks: Sequence[Waits]) -> bool:
    """Whether ranks begin and await as much in one order, each on its own groups: then no rank waits for ever."""
    return len({_shape(rank) for rank in ranks}) == 1


def _shape(rank: Waits) -> tuple[tuple[object, ...], ...]:
    """What a rank does in order, with the groups as the rank counts those that it is in."""
    own = [(frozenset(group.ranks), group.name) for group in rank.groups if group.own]
    of_ranks: defaultdict[frozenset[int], list[int]] = defaultdict(list)
    for number, (members, _) in enumerate(own):
        of_ranks[members].append(number)

    def place(call: Call) -> object:
        if call.kind != "collective":
            return None
        numbers = of_ranks[frozenset(call.ranks)]
        return numbers[call.tag] if call.tag < len(numbers) else call

    return tuple((call.kind, call.ticket, place(call)) for call in rank.calls)


def _way_out(calls: Sequence[Sequence[Call]]) -> str:
    if _has_messages(calls):
        found = Counter(_channel(rank, call) for rank, own in enumerate(calls) for call in own)
        for kind, sender, receiver, tag in sorted(c for c in found if c[0] == "recv"):
            if found["send", sender, receiver, tag] < found[kind, sender, receiver, tag]:
                return f"rank {sender} sends less to rank {receiver} than that receives: add the matching send"
        return "send before receiving on one of them, or begin both before waiting"
    return "call the collectives in one order on every rank, each on the group that the others call it on"


def _line() -> str:
    return calling_line(inspect.currentframe()) or "an unknown line"


def _other_groups(ranks: Sequence[Sequence[Group]]) -> str:
    """Where one rank makes another group with all ranks than the first rank does, or none."""
    common = [[group for group in made if not group.local] for made in ranks]
    for rank, made in enumerate(common):
        for mine, other in zip_longest(common[0], made):
            if mine is None or other is None or mine.ranks != other.ranks:
                return f"{_making(0, mine)}, while {_making(rank, other)}"
    return ""


def _other_names(ranks: Sequence[Sequence[Group]]) -> str:
    """Where members of a group that they make alone call it by other names, or only one of them makes it."""
    made: defaultdict[frozenset[int], dict[int, list[Group]]] = defaultdict(lambda: defaultdict(list))
    for rank, groups in enumerate(ranks):
        for group in groups:
            if group.local:
                made[frozenset(group.ranks)][rank].append(group)
    for members, found in made.items():
        first = min(members)
        for rank in sorted(members):
            for mine, other in zip_longest(found[first], found[rank]):
                if mine is None or other is None:
                    return f"{_making(first, mine)}, while {_making(rank, other)}"
                if mine.name != other.name:
                    why = "when they are in different numbers of groups, after which PyTorch names it"
                    return f"{_making(first, mine)}, and {_making(rank, other)}, {why}"
    return ""


def _making(rank: int, group: Group | None) -> str:
    if group is None:
        return f"rank {rank} makes no further group"
    return f"rank {rank} makes the group of ranks {', '.join(map(str, group.ranks))} at {group.where}"


def _has_messages(ranks: Sequence[Sequence[Call]]) -> bool:
    return any(call.kind in ("send", "recv") for calls in ranks for call in calls)


def _goes_on(ranks: Sequence[Sequence[Call]]) -> bool:
    """Whether a rank begins something and goes on before it waits for it."""
    return any(
        call.kind == "collective" and (after is None or (after.kind, after.ticket) != ("wait", call.ticket))
        for calls in ranks
        for call, after in zip_longest(calls, calls[1:])
        if call is not None
    )


def _has_several(ranks: Sequence[Sequence[Call]]) -> bool:
    """Whether the same ranks meet on several groups."""
    return any(call.kind == "collective" and call.tag for calls in ranks for call in calls)


def _cross(ranks: Sequence[Sequence[Call]], groups: Sequence[Sequence[Group]]) -> tuple[str, ...]:
    """Calls that meet on one of several groups of the same ranks although other lines call them."""
    several = {call.ranks for calls in ranks for call in calls if call.kind == "collective" and call.tag}
    met: defaultdict[tuple[tuple[int, ...], int], dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
    for rank, calls in enumerate(ranks):
        for call in calls:
            if call.kind == "collective" and call.ranks in several:
                met[call.ranks, call.tag][rank].append(call)
    for (members, _), found in met.items():
        first = members[0]
        for rank in members[1:]:
            for mine, other in zip(found[first], found[rank], strict=False):
                if mine.where != other.where:
                    calls = f"rank {first} at {mine.where} and rank {rank} at {other.where} meet"
                    which = _which(groups[first], mine)
                    return (f"{calls} in {which}: such groups are told apart by the order in which a rank makes them",)
    return ()


def _which(groups: Sequence[Group], call: Call) -> str:
    """A group in words, where several have the same ranks."""
    same = [group for group in groups if group.own and frozenset(group.ranks) == frozenset(call.ranks)]
    made = f"made at {same[call.tag].where}" if call.tag < len(same) else "of them"
    shown = ", ".join(map(str, call.ranks))
    return f"the group {made} (number {call.tag + 1} of the {len(same)} of ranks {shown})"


class _Play:
    """All ranks, each as far as it gets."""

    def __init__(self, ranks: Sequence[Sequence[Call]], kept: bool, groups: Sequence[Sequence[Group]]) -> None:
        self.ranks, self.kept, self.groups = ranks, kept, groups
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
            others = [(*channel[:3], member) for member in call.ranks]
            return channel[1:3] in self.uneven or all(self.begun[other] > number for other in others)
        if call.kind == "send" and self.kept:
            return True
        other = ("recv" if call.kind == "send" else "send", *channel[1:])
        return self.begun[other] > number

    def _told(self, rank: int) -> str:
        call = self.ranks[rank][self.ranks[rank][self.next[rank]].ticket]
        if call.kind == "collective":
            told = f"rank {rank} waits at {call.where} for ranks {', '.join(map(str, call.ranks))}"
            several = any(call.ranks == other.ranks and other.tag for calls in self.ranks for other in calls)
            return f"{told} in {_which(self.groups[rank], call)}" if several else told
        does = "receive what it sends" if call.kind == "send" else "send what it receives"
        return f"rank {rank} waits for rank {call.ranks[0]} to {does} at {call.where}"


def _channel(rank: int, call: Call) -> _Channel:
    """Where a call meets others: a message by its ends and tag, a collective by its group."""
    if call.kind == "send":
        return ("send", rank, call.ranks[0], call.tag)
    if call.kind == "recv":
        return ("recv", call.ranks[0], rank, call.tag)
    return ("collective", frozenset(call.ranks), call.tag, rank)


def _uneven(ranks: Sequence[Sequence[Call]]) -> set[tuple[object, ...]]:
    """Groups that are not called equally often by their members: some calls do not come by here."""
    counts: defaultdict[tuple[frozenset[int], int], Counter[int]] = defaultdict(Counter)
    for rank, calls in enumerate(ranks):
        for call in calls:
            if call.kind == "collective":
                counts[frozenset(call.ranks), call.tag][rank] += 1
    return {group for group, found in counts.items() if len({found[member] for member in group[0]}) > 1}
