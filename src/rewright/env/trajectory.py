"""Trajectories run again: the same choices on the same module, and no step that is said to be known better than it is.

A trajectory is a file that anybody may have edited. Its digest tells of a slip; whoever writes a new one still gets
nothing through: the choices are made again, and what is said of every step is compared with what is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewright.env.custom import Pattern
from rewright.env.episode import HEADER, Episode, Settings
from rewright.env.evidence import to_json
from rewright.env.module import HloModule
from rewright.env.proposers import checked_name
from rewright.env.session import Session
from rewright.env.sites import Granularity
from rewright.ir.errors import RewrightError
from rewright.proof.container import check_digest
from rewright.proof.entries import as_bytes, as_integer, as_list, as_table, as_text, as_truth

_SECONDS = 5.0
_NUMBER = r"[-+]?(?:inf|nan|[0-9.]+(?:e[-+]?[0-9]+)?)"
_WORDINGS = {
    "proved": re.compile(""),
    "tested": re.compile(
        rf"one term|follows from earlier steps|[a-z]+ inputs: (?:outputs )?difference {_NUMBER}, allowed {_NUMBER}"
    ),
}
"""What is said of a step that is known well, its numbers aside, which another machine rounds otherwise."""
_STEP = ("claim", "status", "text", "grade", "left", "right")
_KNOWN = ("refuted", "unknown", "tested", "proved")
_GRADES = ("real", "move", "same")
"""How steps are known, the worst first, and how proofs hold."""


@dataclass(frozen=True)
class _Round:
    passes: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    chosen: tuple[int, ...]


@dataclass(frozen=True)
class _Written:
    """A trajectory as it was written, each part of its type."""

    original: HloModule
    fingerprint: str
    settings: Settings
    rounds: tuple[_Round, ...]
    final: str
    steps: tuple[dict[str, Any], ...]


def replay(session: Session, data: object, patterns: Sequence[Pattern] = (), seconds: float = _SECONDS) -> Episode:
    """The episode of a trajectory, run again with the patterns that it had; ``seconds`` for each proof, 0 for none.

    Raises RewrightError where the file was changed, a pattern is missing, a choice cannot be made, a step is said to be
    known better than it is, and where it does not end at the same module.
    """
    own = _read(data, patterns)
    if session.fingerprint(own.original) != own.fingerprint:
        raise RewrightError("the trajectory starts at another module than it says; save it again")
    episode = Episode(session, own.original, own.settings)
    for number, entry in enumerate(own.rounds):
        if number:
            episode.settings = replace(own.settings, passes=entry.passes, patterns=entry.patterns)
            episode.next_round()
        for choice in entry.chosen:
            if not 0 <= choice < len(episode.run) or not episode.choose(choice):
                why = "the trajectory is from another jaxlib, or was changed"
                raise RewrightError(f"choice {choice} of round {number} cannot be made; {why}")
    if session.fingerprint(episode.current) != own.final:
        raise RewrightError("the trajectory does not end at the module that it says; it is from another jaxlib")
    _compare(episode, own.steps, seconds)
    return episode


def _compare(episode: Episode, steps: Sequence[dict[str, Any]], seconds: float) -> None:
    """Raise RewrightError where steps are not those that were taken, or not known as well as they are said to be."""
    taken = episode.claims()
    if [step.get("claim") for step in steps] != taken:
        raise RewrightError("the steps of the trajectory are not the choices that it makes; save it again")
    if not seconds:
        return
    for number, (step, (_, evidence)) in enumerate(zip(steps, episode.evidence(seconds), strict=True)):
        found = to_json(evidence)
        said, status = step["status"], found["status"]
        if said not in _KNOWN or _KNOWN.index(said) > _KNOWN.index(status):
            raise RewrightError(f"step {number} is said to be {said!r:.20} and is {status} here; save it again")
        # A machine with more to do may have found no more than a weaker grade.
        if said != "proved" and any(step[what] for what in ("grade", "left", "right")):
            raise RewrightError(f"step {number} is not proved and says how it is; save the trajectory again")
        if said in _WORDINGS and not _WORDINGS[said].fullmatch(step["text"]):
            raise RewrightError(f"step {number} is {said} and says {step['text']!r:.40}; save the trajectory again")
        grade = step["grade"]
        is_weaker = grade in _GRADES and _GRADES.index(grade) <= _GRADES.index(found["grade"] or "real")
        if said == "proved" and not (is_weaker and all(step.get(side) == found[side] for side in ("left", "right"))):
            raise RewrightError(f"step {number} is not proved as it is said to be; save the trajectory again")


def _read(data: object, patterns: Sequence[Pattern]) -> _Written:
    entries = HEADER.entries(data)
    check_digest(entries, HEADER.name)
    rounds = entries.each("rounds", lambda entry: _round(entry, patterns))
    entries.each("refused", as_text)
    if not rounds:
        raise RewrightError("the trajectory has no rounds; save it again")
    return _Written(
        HloModule(entries.one("original", as_bytes), entries.one("late", as_truth), entries.one("entrance", _entrance)),
        entries.one("fingerprint", as_text),
        Settings(
            rounds[0].passes,
            entries.one("granularity", _granularity),
            entries.one("tested", as_truth),
            entries.one("seed", as_integer),
            rounds[0].patterns,
        ),
        rounds,
        entries.one("final", as_text),
        entries.each("steps", _step),
    )


def _round(entry: Any, patterns: Sequence[Pattern]) -> _Round:
    table = as_table(entry, ("passes", "patterns", "chosen"))
    passes = tuple(checked_name(as_text(name)) for name in as_list(table["passes"]))
    names = [as_text(name) for name in as_list(table["patterns"])]
    return _Round(passes, _patterns(names, patterns), tuple(as_integer(n) for n in as_list(table["chosen"])))


def _step(entry: Any) -> dict[str, str]:
    return {key: as_text(value) for key, value in as_table(entry, _STEP).items()}


def _entrance(text: Any) -> bytes | None:
    return None if text is None else as_bytes(text)


def _granularity(name: Any) -> Granularity:
    if name != "value" and name != "use":
        raise ValueError(f"there is no granularity {name!r:.40}")
    return name


def _patterns(names: Sequence[str], given: Sequence[Pattern]) -> tuple[Pattern, ...]:
    known = {pattern.name: pattern for pattern in given}
    for name in names:
        if name not in known:
            raise RewrightError(f"the trajectory was made with the pattern {name!r:.60}; give it again")
    return tuple(known[name] for name in names)
