"""Stored tensors that one pass can compute together: they share reductions, rows and grid."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rewright.optimize.kernel import Kernel
from rewright.optimize.planning.reading import Places, Reader
from rewright.optimize.planning.roles import Cut, Job, arrange
from rewright.optimize.scalars.expressions import walk
from rewright.terms.index import Index, variable

MOST_TRIES, MOST_PAIRS = 2000, 64
"""So many pairs of jobs are tried, and for each of them so many places that they have in common; others stay apart.

A network of fifty layers takes some hundred. A recurrence that is written out, step by step, would take millions.
"""


class Merger:
    """Puts jobs together in each round of a search: what was tried in an earlier round is known."""

    def __init__(self) -> None:
        self.known: dict[tuple[tuple[int, ...], int], tuple[Job, Kernel] | None] = {}
        """By the jobs of a kernel and one more job what they are together; None where they stay apart."""
        self.jobs: dict[int, Job] = {}
        """By number, so that no other job gets it."""
        self.sizes: dict[int, int] = {}
        """How many expressions a job has, by its number."""
        self.loaded = _Loaded()
        self.anchors: _Anchors | None = None

    def _new(self, jobs: Sequence[Job]) -> list[Job]:
        return [job for job in jobs if id(job) not in self.sizes]

    def kernels(self, reader: Reader, jobs: Sequence[Job], reads: Mapping[int, Collection[int]]) -> list[Kernel]:
        """One kernel for each group of jobs that fit together; groups are grown from the job with the most work."""
        self.jobs |= {id(job): job for job in jobs}
        self.sizes |= {id(job): len(list(walk(*(s.value for s in job.stores)))) for job in self._new(jobs)}
        waiting = sorted(jobs, key=lambda job: -self.sizes[id(job)])
        order = _Order(reads, jobs, self.loaded)
        anchors = self.anchors = self.anchors or _Anchors(reader)
        kernels: list[Kernel] = []
        tries = 0
        while waiting:
            host = waiting.pop(0)
            members: tuple[int, ...] = (id(host),)
            kernel = arrange(reader.table, host, f"kernel{len(kernels)}")
            rest: list[Job] = []
            for guest in waiting:
                if anchors.of(host).keys().isdisjoint(anchors.of(guest)) or order.is_between(host, guest):
                    rest.append(guest)
                    continue
                key = members, id(guest)
                if key not in self.known:
                    tries += 1
                    if tries <= MOST_TRIES:
                        self.known[key] = _together(anchors, host, guest, kernel) or _swap(anchors, host, guest, kernel)
                both = self.known.get(key)
                if both is None:
                    rest.append(guest)
                else:
                    host, kernel = both
                    members = (*members, id(guest))
                    order.join(host)
            waiting = rest
            kernels.append(replace(kernel, name=f"kernel{len(kernels)}"))
        return kernels


class _Loaded:
    """The tensors that jobs read, worked out once for each."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Job, frozenset[int]]] = {}

    def of(self, job: Job) -> frozenset[int]:
        """Those of a job."""
        if id(job) not in self._known:  # with the job, so that no other one gets its number
            self._known[id(job)] = job, loaded_tensors(job)
        return self._known[id(job)][1]


class _Order:
    """Which stored tensor is computed from which others; the stores of one kernel count as one."""

    def __init__(self, reads: Mapping[int, Collection[int]], jobs: Sequence[Job], loaded: _Loaded) -> None:
        self.loaded = loaded
        self.reads = {tensor: frozenset(found) for tensor, found in reads.items()}
        for job in jobs:
            self.join(job)

    def join(self, job: Job) -> None:
        """Note what a job reads, for all that it stores."""
        found = self.loaded.of(job)
        for store in job.stores:
            self.reads[store.tensor] = found

    def is_between(self, one: Job, other: Job) -> bool:
        """Whether one of two jobs needs what the other one stores."""
        mine, theirs = (frozenset(s.tensor for s in j.stores) for j in (one, other))
        return self.needs(one, theirs) or self.needs(other, mine)

    def needs(self, job: Job, targets: frozenset[int]) -> bool:
        """Whether a job reads one of the targets, or something that is computed from one."""
        seen: set[int] = set()
        stack = list(self.loaded.of(job))
        while stack:
            p = stack.pop()
            if p in targets:
                return True
            if p not in seen:
                seen.add(p)
                stack.extend(self.reads.get(p, ()))
        return False


def loaded_tensors(job: Job) -> frozenset[int]:
    """The tensors that a job reads."""
    return frozenset(e.tensor for e in walk(*(s.value for s in job.stores)) if e.op == "load")


def _swap(anchors: _Anchors, host: Job, guest: Job, kernel: Kernel) -> tuple[Job, Kernel] | None:
    """The two jobs as one with the loops of the guest, which may have features that the host has not."""
    other = arrange(anchors.reader.table, guest, kernel.name)
    if other.features is None or kernel.features is not None or not other.sweeps:
        return None
    return _together(anchors, guest, host, other, max(len(kernel.sweeps), len(other.sweeps)))


def _together(anchors: _Anchors, host: Job, guest: Job, kernel: Kernel, most: int = 0) -> tuple[Job, Kernel] | None:
    """The two jobs as one, where loops can be matched.

    That takes as many passes as the kernel of the host has, or ``most``, or at least one less than apart.
    """
    reader = anchors.reader
    for match in _matches(anchors, host, guest):
        names = match.names
        renamed = {old: variable(new) for old, new in names.items()}
        own = host.stores
        if match.zeros:
            renamed |= {old: Index(0) for old in guest.units}
            zeros = {name: Index(0) for name in host.units}
            own = tuple(replace(s, value=reader.rename(s.value, zeros)) for s in own)
        stores = tuple(
            replace(s, axes=tuple(names[a] for a in s.axes), value=reader.rename(s.value, renamed))
            for s in guest.stores
        )
        # A loop of one index that the host has not is one more of its grid.
        ones = {new: 1 for new in names.values() if new not in host.sizes}
        job = Job((*own, *stores), {**host.sizes, **ones})
        try:
            found = arrange(reader.table, job, kernel.name)
        except Cut:
            continue
        grids = [tuple(loop for loop in k.grid if loop.name not in ones) for k in (found, kernel)]
        same = grids[0] == grids[1] and (found.rows, found.features) == (kernel.rows, kernel.features)
        alone = arrange(reader.table, guest, kernel.name)
        if match.guesses and _products(found) >= _products(kernel) + _products(alone):
            continue
        passes = len(kernel.sweeps) + len(alone.sweeps)
        if same and len(found.sweeps) <= max(len(kernel.sweeps) + _stores_rows_only(kernel), most, passes - 1):
            return job, found
    return None


def _products(kernel: Kernel) -> int:
    return sum(len(sweep.products) for sweep in kernel.sweeps)


def _stores_rows_only(kernel: Kernel) -> bool:
    """Whether a kernel has no sweep that stores along the lane, so that one more costs a reading and no more."""
    return not any(s.stores for s in kernel.sweeps)


@dataclass(frozen=True)
class _Match:
    """A way to read the loops of one job as those of another one."""

    names: dict[str, str]
    guesses: bool
    """Whether what they have in common does not say it of all: a loop is then the only one of its size."""
    zeros: bool
    """Whether one is at zero where the other one has a loop of one index: both are to be."""


def _matches(anchors: _Anchors, host: Job, guest: Job) -> list[_Match]:
    """Ways to read the guest's loops as the host's: those under which a common reduction or load is the same."""
    seen: list[_Match] = []
    mine, other = anchors.of(host), anchors.of(guest)
    pairs = ((theirs, ours) for anchor in other for theirs in other[anchor] for ours in mine.get(anchor, ()))
    for theirs, ours in itertools.islice(pairs, MOST_PAIRS):
        match = _unify(guest, host, theirs, ours)
        if match is not None and match not in seen:
            seen.append(match)
    return sorted(seen, key=lambda match: (match.guesses, match.zeros))[:8]


class _Anchors:
    """What two jobs may have in common, reductions, stores and loads, each with the indices that it is at."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._known: dict[int, tuple[Job, dict[object, list[Places]]]] = {}

    def of(self, job: Job) -> dict[object, list[Places]]:
        """The anchors of a job."""
        if id(job) not in self._known:  # with the job, so that no other one gets its number
            self._known[id(job)] = job, self._found(job)
        return self._known[id(job)][1]

    def _found(self, job: Job) -> dict[object, list[Places]]:
        found: dict[object, list[Places]] = {}
        every = list(walk(*(s.value for s in job.stores)))
        for e in every:
            if e in self.reader.origin:
                position, places = self.reader.origin[e]
                found.setdefault(("node", position), []).append(places)
        for store in job.stores:
            found.setdefault(("node", store.tensor), []).append(tuple(variable(a) for a in store.axes))
        for e in every:
            if e.op == "load" and all(a.op in ("index", "constant") for a in e.arguments):
                places = tuple(a.index if a.index is not None else Index(int(a.value)) for a in e.arguments)
                found.setdefault(("load", e.tensor), []).append(places)
        return found


def _unify(guest: Job, host: Job, theirs: tuple[Index, ...], ours: tuple[Index, ...]) -> _Match | None:
    names: dict[str, str] = {}
    zeros = False
    for a, b in zip(theirs, ours, strict=True):
        left, right = a.as_variable(), b.as_variable()
        if left is None or right is None:
            if a == b:
                continue
            if _is_first(a, guest) and _is_first(b, host):
                zeros = True
                continue
            return None
        if left.name in guest.sizes:
            if guest.sizes[left.name] != host.sizes.get(right.name) or names.get(left.name, right.name) != right.name:
                return None
            names[left.name] = right.name
    used = set(names.values())
    guesses = False
    for name, size in guest.sizes.items():
        if name in names:
            continue
        free = [n for n, s in host.sizes.items() if s == size and n not in used]
        if size != 1 and len(free) != 1:
            return None
        guesses |= size != 1
        names[name] = free[0] if free else f"one{len(host.sizes) + len(used)}"
        used.add(names[name])
    return _Match(names, guesses, zeros) if len(set(names.values())) == len(names) else None


def _is_first(place: Index, job: Job) -> bool:
    """Whether a place is zero, or the loop of a unit axis."""
    name = place.as_variable()
    return place == Index(0) if name is None else name.name in job.units
