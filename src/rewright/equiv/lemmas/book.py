"""A file of rules: what pairs of programs asked for and was proved, kept for later runs.

A rule is read as two programs whose sizes and numbers are parameters, and is proved again when it is first of use,
whatever the file says of it: who can write a file cannot make a wrong rule count. Reading a file executes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import rewright
from rewright import ops
from rewright.equiv.lemmas.equations import Prover
from rewright.equiv.lemmas.synthesised import SynthesisedRule
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.files import write_text
from rewright.ir.json_form import from_json, to_json
from rewright.ir.sizes_in_text import parse_dim
from rewright.rules.reading import Counted, Given, Number, Where
from rewright.rules.scheme import Scheme

FORMAT = "rewright.lemmas"
VERSION = 2
_WANTED = {"statement", "evidence", "prover", "left", "right", "numbers", "positive", "narrowed", "digest"}


def write_book(path: Path, rules: Iterable[SynthesisedRule]) -> None:
    """Write rules, with those that the file has already; raises RewrightError where it cannot be written."""
    entries = {entry["digest"]: entry for entry in (_entries(path) if path.is_file() else [])}
    for rule in rules:
        entry = _entry(rule)
        entries.setdefault(entry["digest"], entry)
    document = {"format": FORMAT, "version": VERSION, "rules": list(entries.values())}
    write_text(path, json.dumps(document, indent=1) + "\n")


def read_book(path: Path) -> Prover:
    """A prover that proves the rules of a file as they are of use.

    Raises RewrightError for a file that is none, or was changed.
    """
    return Prover(claimed=[_scheme(path, entry) for entry in _entries(path)])


def _entry(rule: SynthesisedRule) -> dict[str, Any]:
    scheme = rule.scheme
    numbers = [[*where, _number(number)] for where, number in scheme.numbers]
    entry: dict[str, Any] = {
        "statement": rule.statement,
        "evidence": rule.evidence,
        "prover": rewright.__version__,
        "places": [list(place) for place in rule.places[:8]],
        "left": to_json(scheme.left),
        "right": to_json(scheme.right),
        "numbers": numbers,
        "positive": list(scheme.positive),
        "narrowed": scheme.narrowed,
    }
    return {**entry, "digest": _digest(entry, scheme)}


def _number(number: Number) -> dict[str, Any]:
    if isinstance(number, Counted):
        return {"size": str(number.size), "inverted": number.inverted}
    return {"given": number.name, "negated": number.negated, "inverted": number.inverted}


def _digest(entry: Mapping[str, Any], scheme: Scheme) -> str:
    said: list[Any] = [entry[name] for name in ("evidence", "prover", "numbers", "positive", "narrowed")]
    said += [digest(scheme.left), digest(scheme.right)]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _scheme(path: Path, entry: Mapping[str, Any]) -> Scheme:
    left, right = (from_json(entry[side], ops.REGISTRY) for side in ("left", "right"))
    try:
        numbers = tuple(_read_number(item) for item in entry["numbers"])
        scheme = Scheme(left, right, numbers, tuple(map(str, entry["positive"])), bool(entry["narrowed"]))
        scheme.check()
    except (TypeError, ValueError, KeyError) as error:
        raise RewrightError(f"{path} has a rule that cannot be read ({error}); delete the file") from None
    except RewrightError as error:
        raise RewrightError(f"{path} has a rule whose parts do not belong together: {error}; delete the file") from None
    if entry["digest"] != _digest(entry, scheme):
        raise RewrightError(f"{path}: the rule {entry['statement']!r:.60} was changed after it was written; delete it")
    return scheme


def _read_number(item: Any) -> tuple[Where, Number]:
    side, position, said = item
    where = int(side), int(position)
    if "size" in said:
        return where, Counted(parse_dim(str(said["size"])), bool(said["inverted"]))
    return where, Given(str(said["given"]), bool(said["negated"]), bool(said["inverted"]))


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RewrightError(f"cannot read {path}: {error.strerror}; check the path") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise RewrightError(f"{path} is no file of lemmas: it is no JSON; name another file") from None
    known = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if known.get("format") != FORMAT or known.get("version") != VERSION:
        raise RewrightError(f"{path} is no file of lemmas of this version; name another file")
    entries: object = known.get("rules")
    if not isinstance(entries, list) or not all(_says_enough(entry) for entry in cast("list[object]", entries)):
        raise RewrightError(f"{path} has a rule that says too little; delete the file")
    return cast("list[dict[str, Any]]", entries)


def _says_enough(entry: object) -> bool:
    return isinstance(entry, dict) and cast("dict[str, Any]", entry).keys() >= _WANTED
