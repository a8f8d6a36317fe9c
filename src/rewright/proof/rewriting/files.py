"""Rewritings in the text of certificates: every lemma once, and the stages of each program by its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from rewright import ops
from rewright.ir.json_form import decode, encode, from_json, to_json
from rewright.ops.facts import Facts
from rewright.proof.entries import as_integer, as_list, as_text
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.splices import Rewriting, Splice, Stage, Within

_FLAGS = ("zero", "whole", "nan", "plus_infinity", "minus_infinity")
_STATEMENT = 5
"""The parts of a lemma: its evidence, what is given, which inputs are inner, what is put in, and what was there."""


def rewriting_table(rewritings: Sequence[Rewriting]) -> dict[str, Any]:
    """The JSON object of the rewritings of several programs."""
    lemmas: dict[tuple[str, str], Lemma] = {}
    for rewriting in rewritings:
        for lemma in rewriting.lemmas:
            lemmas.setdefault((lemma.evidence, lemma.key), lemma)
    numbers = {key: number for number, key in enumerate(lemmas)}
    return {
        "lemmas": [_lemma(lemma) for lemma in lemmas.values()],
        "programs": [_program(rewriting, numbers) for rewriting in rewritings],
    }


def _program(rewriting: Rewriting, numbers: dict[tuple[str, str], int]) -> list[Any]:
    """The stages of a program; those that assume something, if there are any, with what they assume."""
    narrowing = [
        [[list(one) for one in stage.within.inputs], list(stage.within.casts), *_stages([stage], numbers)]
        for stage in rewriting.narrowing
    ]
    both = [_stages(rewriting.before, numbers), _stages(rewriting.after, numbers)]
    return [*both, narrowing] if narrowing else both


def _lemma(lemma: Lemma) -> list[Any]:
    given = [[name, *_facts(facts)] for name, facts in lemma.given]
    inner = [list(pair) for pair in lemma.inner]
    return [lemma.evidence, given, inner, to_json(lemma.left), to_json(lemma.right)]


def _facts(facts: Facts) -> list[Any]:
    return [encode(facts.low), encode(facts.high), *(getattr(facts, flag) for flag in _FLAGS)]


def _stages(stages: Sequence[Stage], numbers: dict[tuple[str, str], int]) -> list[Any]:
    found: list[Any] = []
    for stage in stages:
        own = {lemma.key: numbers[lemma.evidence, lemma.key] for lemma in stage.lemmas}
        found.append(
            [[s.position, own[s.lemma], [[name, list(held)] for name, held in s.leaves]] for s in stage.splices]
        )
    return found


def rewritings_of(entry: Any) -> tuple[Rewriting, ...]:
    """The rewritings of a JSON object; raises RewrightError, ValueError, TypeError or KeyError for what is none."""
    if not isinstance(entry, dict) or set(cast("dict[str, Any]", entry)) != {"lemmas", "programs"}:
        raise ValueError("rewritings are an object with lemmas and programs")
    known = cast("dict[str, Any]", entry)
    lemmas = [_read_lemma(number, as_list(item)) for number, item in enumerate(as_list(known["lemmas"]))]
    return tuple(_rewriting(as_list(item), lemmas) for item in as_list(known["programs"]))


def _rewriting(item: list[Any], lemmas: Sequence[Lemma]) -> Rewriting:
    first, second, *third = item
    before, after = (tuple(_stage(as_list(stage), lemmas) for stage in as_list(part)) for part in (first, second))
    if len(third) > 1 or third == [[]]:
        raise ValueError("a program has two kinds of stages, and some that assume something")
    return Rewriting(
        before, after, tuple(_narrowing(as_list(stage), lemmas) for part in third for stage in as_list(part))
    )


def _narrowing(item: list[Any], lemmas: Sequence[Lemma]) -> Stage:
    inputs, casts, splices = map(as_list, item)
    known = tuple((as_text(name), as_integer(low), as_integer(high)) for name, low, high in map(as_list, inputs))
    return replace(_stage(splices, lemmas), within=Within(known, tuple(as_integer(position) for position in casts)))


def _read_lemma(number: int, item: list[Any]) -> Lemma:
    if len(item) != _STATEMENT:
        raise ValueError(f"lemma {number} has {len(item)} parts")
    evidence, given, inner, left, right = item
    known = tuple(_read_facts(as_list(entry)) for entry in as_list(given))
    sides = [from_json(side, ops.REGISTRY) for side in (left, right)]
    inside = tuple((as_text(name), as_integer(position)) for name, position in map(as_list, as_list(inner)))
    if any(not 0 <= position < len(sides[1].nodes) for _, position in inside):
        raise ValueError(f"lemma {number} is about a node that is none")
    return Lemma(f"lemma {number + 1}", sides[0], sides[1], as_text(evidence), (), known, inside)


def _read_facts(item: list[Any]) -> tuple[str, Facts]:
    name, low, high, *flags = item
    ends = [decode(end) for end in (low, high)]
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
        raise ValueError("the ends of what is given are no numbers")
    if len(flags) != len(_FLAGS) or not all(isinstance(flag, bool) for flag in flags):
        raise ValueError("what is given is not said in full")
    bottom, top = cast("list[int | float]", ends)
    return as_text(name), Facts(bottom, top, **dict(zip(_FLAGS, flags, strict=True)))


def _stage(item: list[Any], lemmas: Sequence[Lemma]) -> Stage:
    splices: list[Splice] = []
    used: dict[str, Lemma] = {}
    for position, number, leaves in map(as_list, item):
        place = as_integer(number)
        if not 0 <= place < len(lemmas):
            raise ValueError(f"there is no lemma {number}")
        lemma = lemmas[place]
        if used.setdefault(lemma.key, lemma) is not lemma:
            raise ValueError("a stage has one lemma twice")
        held = tuple(
            (as_text(name), tuple(as_integer(p) for p in as_list(where)))
            for name, where in map(as_list, as_list(leaves))
        )
        splices.append(Splice(as_integer(position), lemma.key, held))
    return Stage(tuple(splices), tuple(used.values()))
