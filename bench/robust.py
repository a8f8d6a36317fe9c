"""Texts and protos that were damaged, from reading to running: ``python -m bench.robust FOLDER``.

Each goes all the way: read, repaired, a dry run, choices at random, the module as chosen against the original. What is
no module, or none that XLA takes, must be an error of one line; XLA may end its process, and is there for the next.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.memory import most, of_xla, resident
from bench.tables import print_table
from rewright.env.environment import DEFAULT_PASSES
from rewright.env.episode import Episode, Settings
from rewright.env.module import HloModule
from rewright.env.repairs import runnable
from rewright.env.session import Session
from rewright.env.xla.worker import Worker, XlaCrash
from rewright.ir.errors import RewrightError

KINDS = ("cut off", "character", "part left out", "words swapped", "number", "operator", "byte of the proto")
_MARKS = "{}()[],=%0123456789 \n"
_NUMBERS = ("0", "1", "3", "-1", "65537", "4000000000", "99999999999999999999")
_OPERATORS = ("add", "multiply", "divide", "maximum", "and", "dot", "while", "tuple", "parameter", "infeed", "nonsense")
_BAD = ("DIFFERENT", "SEVERAL LINES")
_LARGEST = 40_000
"""Characters of a text at most."""


def mutated(text: str, kind: str, chooser: random.Random) -> str:
    """A text with one damage of a kind."""
    place = chooser.randrange(len(text))
    if kind == "cut off":
        return text[:place]
    if kind == "character":
        return text[:place] + chooser.choice(_MARKS) + text[place + 1 :]
    if kind == "part left out":
        low, high = sorted((place, chooser.randrange(len(text))))
        return text[:low] + text[high:]
    words = text.split(" ")
    if kind == "words swapped":
        a, b = chooser.randrange(len(words)), chooser.randrange(len(words))
        words[a], words[b] = words[b], words[a]
        return " ".join(words)
    pattern, others = (r"\d+", _NUMBERS) if kind == "number" else (r"(?<= )[a-z-]+(?=\()", _OPERATORS)
    places = list(re.finditer(pattern, text))
    if not places:
        return text
    at = chooser.choice(places)
    return text[: at.start()] + chooser.choice(others) + text[at.end() :]


@dataclass
class Tally:
    """What became of the damaged ones of a kind."""

    ends: Counter[str] = field(default_factory=Counter[str])
    slowest: float = 0.0


def survive(
    session: Session,
    sources: Sequence[str],
    count: int,
    seed: int,
    tested: bool = True,
    tell: Callable[[int, str], None] = lambda number, end: None,
    first: int = 0,
) -> dict[str, Tally]:
    """Damage texts and go all the way with each, from a number on; ``tell`` is called with each number and its end.

    A number and the seed are all that decides: each can be damaged again alone. Any exception but RewrightError is
    passed on: it is what must not happen.
    """
    found = {kind: Tally() for kind in KINDS}
    for number in range(first, first + count):
        chooser = random.Random(f"{seed} {number}")
        kind, text = KINDS[number % len(KINDS)], chooser.choice(sources)
        tally, started = found[kind], time.perf_counter()
        end = _end(session, text, kind, chooser, tested)
        tally.ends[end] += 1
        tally.slowest = max(tally.slowest, time.perf_counter() - started)
        tell(number, end)
    return found


def _end(session: Session, text: str, kind: str, chooser: random.Random, tested: bool) -> str:
    try:
        module = _damaged(session, text, kind, chooser)
        episode = Episode(session, runnable(session, module), Settings(DEFAULT_PASSES, tested=tested))
        for number, free in enumerate(episode.mask()):
            if free and chooser.random() < 0.5:
                episode.choose(number)
        if not tested:
            return "played"
        agrees = episode.validate().agrees
    except RewrightError as error:
        lines = str(error).splitlines()
        return "SEVERAL LINES" if len(lines) > 1 else "process replaced" if isinstance(error, XlaCrash) else "one line"
    return {True: "equal", False: "DIFFERENT", None: "not run"}[agrees]


def _damaged(session: Session, text: str, kind: str, chooser: random.Random) -> HloModule:
    if kind != "byte of the proto":
        return session.parse(mutated(text, kind, chooser))
    proto = bytearray(session.parse(text).proto)
    proto[chooser.randrange(len(proto))] = chooser.randrange(256)
    return HloModule(bytes(proto))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the status is 1 where outputs differ, an error has several lines, or XLA is gone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of HLO texts: its files *.txt")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the number to start with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--untested", action="store_true", help="run nothing: read, propose, choose")
    parser.add_argument("--seconds", type=float, default=20.0, help="for one call of XLA")
    given = parser.parse_args(arguments)
    texts = [path.read_text() for path in sorted(given.folder.rglob("*.txt"))]
    sources = [text[text.find("HloModule") :] for text in texts if len(text) <= _LARGEST]
    if not sources:
        print(f"bench.robust: {given.folder} holds no HLO text; name a folder", file=sys.stderr)
        return 3
    with Session(Worker(given.seconds)) as session:
        whole = session.fingerprint(session.parse(sources[0]))
        memory: list[tuple[int, int, int]] = []

        bad: list[str] = []

        def tell(number: int, end: str) -> None:
            if end in _BAD:
                bad.append(f"{number}: {end}; again with --first {number} --count 1 --seed {given.seed}")
            if (number + 1 - given.first) % max(given.count // 4, 1) == 0:
                memory.append((number + 1, resident(), of_xla(session)))

        memory.append((given.first, resident(), of_xla(session)))
        found = survive(session, sources, given.count, given.seed, not given.untested, tell, given.first)
        there = session.fingerprint(session.parse(sources[0])) == whole
    ends = ("equal", "played", "not run", "one line", "process replaced", *_BAD)
    rows = [[kind, *(t.ends[end] for end in ends), f"{t.slowest:.0f}"] for kind, t in found.items()]
    print_table(["damage", *ends, "slowest, s"], rows)
    print("".join(f"{line}\n" for line in bad), end="")
    print_table(["after", "MiB here", "MiB in XLA's process"], memory)
    end = f"{session.worker.started} processes of XLA; {most()} MiB here at most; at the end XLA is"
    print(f"{len(sources)} texts; {end} {'' if there else 'NOT '}there")
    return int(not there or any(tally.ends[end] for tally in found.values() for end in _BAD))


if __name__ == "__main__":
    sys.exit(main())
