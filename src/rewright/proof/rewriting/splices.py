"""What a rewriting of a program is: stages of splices, each by a lemma."""

from __future__ import annotations

from dataclasses import dataclass

from rewright.proof.rewriting.lemma import Lemma


@dataclass(frozen=True)
class Within:
    """What is assumed of one program: bounds of integer inputs, and casts of what fits."""

    inputs: tuple[tuple[str, int, int], ...] = ()
    """A name, and the least and the largest number."""
    casts: tuple[int, ...] = ()
    """The positions of casts from floats to integers, in front of which a choice is made of what does not fit."""

    def __bool__(self) -> bool:
        return bool(self.inputs or self.casts)


NOWHERE = Within()


@dataclass(frozen=True)
class Splice:
    """The node at ``position`` is the right side of a lemma over ``leaves``: the nodes that hold each of its inputs."""

    position: int
    lemma: str
    """The key of the lemma."""
    leaves: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Stage:
    """Splices of one program, positions being those before any of them is made, and the lemmas that they use."""

    splices: tuple[Splice, ...]
    lemmas: tuple[Lemma, ...]
    within: Within = NOWHERE
    """What is assumed of numbers of the program as it is before."""

    def __bool__(self) -> bool:
        return bool(self.splices)

    def by_key(self) -> dict[str, Lemma]:
        """The lemmas by their key."""
        return {lemma.key: lemma for lemma in self.lemmas}


@dataclass(frozen=True)
class Rewriting:
    """The stages of one program, before and after arithmetic of short integers is written out (``proof.wrapping``).

    Those of ``narrowing`` come last, where unknown tensors of the programs are matched (``proof.unknowns``), and are
    the ones that may assume that numbers are in range.
    """

    before: tuple[Stage, ...] = ()
    after: tuple[Stage, ...] = ()
    narrowing: tuple[Stage, ...] = ()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of them in order."""
        return (*self.before, *self.after, *self.narrowing)

    @property
    def lemmas(self) -> tuple[Lemma, ...]:
        """The lemmas of all stages."""
        return tuple(lemma for stage in self.stages for lemma in stage.lemmas)
