"""Which calls of which ranks meet, while the ranks run: the values change hands here, whatever carries them.

Ranks ask, one request at a time, and wait for the answer. The members of a group meet in the order in which each of
them calls its collectives; messages of one sender, receiver and tag arrive in the order in which they were sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewright.ir.errors import CaptureError


@dataclass(frozen=True)
class Meet:
    """A collective: every member of the group gets the payloads of all, in the order of the group."""

    group: tuple[int, ...]
    communicator: int
    """Which of the communicators of these ranks."""
    what: str
    payload: Any
    where: str

    @property
    def channel(self) -> tuple[frozenset[int], int]:
        """What calls that meet have in common."""
        return frozenset(self.group), self.communicator


@dataclass(frozen=True)
class Send:
    """A message; the answer is None, at once."""

    destination: int
    tag: int
    payload: Any


@dataclass(frozen=True)
class Receive:
    """The message number ``ticket`` of a sender under a tag; the answer is its payload."""

    source: int
    tag: int
    ticket: int
    where: str


Request = Meet | Send | Receive
Answer = tuple[int, Any]
"""A rank and what it gets."""


class Switchboard:
    """Requests that wait for others."""

    def __init__(self) -> None:
        self._waiting: dict[int, Meet | Receive] = {}
        self._messages: defaultdict[tuple[int, int, int], list[Any]] = defaultdict(list)

    def submit(self, rank: int, request: Request) -> list[Answer]:
        """The answers that a request makes possible; raises CaptureError where ranks do not agree."""
        if isinstance(request, Send):
            channel = (rank, request.destination, request.tag)
            self._messages[channel].append(request.payload)
            return [(rank, None), *self._deliver(request.destination)]
        self._waiting[rank] = request
        if isinstance(request, Receive):
            return self._deliver(rank)
        return self._met(request)

    def _deliver(self, rank: int) -> list[Answer]:
        """The answer to a rank that waits for a message, if it is there."""
        request = self._waiting.get(rank)
        if not isinstance(request, Receive):
            return []
        sent = self._messages[request.source, rank, request.tag]
        if len(sent) <= request.ticket:
            return []
        del self._waiting[rank]
        payload, sent[request.ticket] = sent[request.ticket], None
        return [(rank, payload)]

    def _met(self, request: Meet) -> list[Answer]:
        present: list[Meet] = []
        for member in request.group:
            other = self._waiting.get(member)
            if not isinstance(other, Meet) or other.channel != request.channel:
                return []
            present.append(other)
        self._check(request, present)
        payloads = [other.payload for other in present]
        for member in request.group:
            del self._waiting[member]
        return [(member, payloads) for member in request.group]

    def _check(self, request: Meet, present: Sequence[Meet]) -> None:
        for rank, other in zip(request.group, present, strict=True):
            if (other.what, other.group) != (request.what, request.group):
                own = request.group[present.index(request)]
                raise CaptureError(
                    f"rank {rank} calls {other.what} at {other.where} where rank {own} calls {request.what} at "
                    f"{request.where}; call the collectives in one order on every rank"
                )

    def stuck(self, ended: Sequence[int]) -> CaptureError:
        """Why nobody can go on."""
        rank, request = min(self._waiting.items())
        if isinstance(request, Receive):
            what = f"waits for message {request.ticket} from rank {request.source} under tag {request.tag}"
            reason = f"rank {request.source} " + ("ended" if request.source in ended else "waits as well")
        else:
            what = f"waits for ranks {sorted(request.group)} in {request.what}"
            missing = next(r for r in request.group if not isinstance(o := self._waiting.get(r), Meet) or o != request)
            reason = f"rank {missing} " + ("ended" if missing in ended else self._elsewhere(missing, request))
        return CaptureError(
            f"deadlock: rank {rank} {what} at {request.where}, and {reason}; add the call that is missing"
        )

    def _elsewhere(self, rank: int, request: Meet) -> str:
        """Where a rank waits that another one waits for."""
        found = self._waiting[rank]
        if isinstance(found, Meet) and set(found.group) == set(request.group):
            return f"waits at {found.where} on another group of these ranks"
        return "waits elsewhere"
