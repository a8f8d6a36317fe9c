"""Chosen rewrites in a JAX program of the user's own: XLA compiles the chosen module wherever it meets the original.

A deployment is keyed by what XLA makes of the original with all of its passes, names aside. Inside of ``active()``
every program that JAX compiles is compared with that, and the one that is it is compiled as chosen: the passes that
were decided by hand do not run on it, all others have run. A program that is any other is left alone.

Three certificates belong together: the chosen module computes what the original does, what XLA's other passes make of
it computes what it does, and so does what XLA makes of the original, which is what is met. What of that is not proved
is listed, and the module that is compiled is run against the original in any case.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from rewright.env.alternatives import AlternativeGraph, Provenance
from rewright.env.certificate import Certified, Stage, audit, certify, certify_stages
from rewright.env.episode import Episode
from rewright.env.hlo.editing import remove_dead_code
from rewright.env.module import HloModule
from rewright.env.proposers import hand_decided
from rewright.env.session import Change, Session
from rewright.env.sites import split
from rewright.env.testing import compare_modules
from rewright.env.xla.adapter import fingerprint, transforming
from rewright.frontends.hlo.module import Module
from rewright.frontends.hlo.proto import read, write
from rewright.frontends.hlo.wire import Field
from rewright.ir.errors import Refused, RewrightError
from rewright.proof.container import Header, open_file, read_document, save_document
from rewright.proof.entries import as_bytes, encode_bytes
from rewright.proof.kinds import Kind, Proved, Said

_HEADER = Header(
    "rewright.deployment",
    2,
    ("replaced", "module", "certificate", "made", "met"),
    name="deployment",
    hint="name a file that a deployment was saved in",
)
_INTERFACE = (4, 8, 18)
"""Fields of HloModuleProto: the shape of the program, buffers of inputs that outputs take, buffers that are given."""


@dataclass
class Deployment:
    """The module to compile in the place of another, with the certificate that they compute the same."""

    replaced: bytes
    """What XLA's own passes make of the original, which is met."""
    module: bytes
    """What is compiled in its place."""
    certificate: dict[str, Any]
    """That the chosen module computes what the original does."""
    made: dict[str, Any]
    """That the module computes what the chosen one does, from which XLA's other passes made it."""
    met: dict[str, Any]
    """That what is met computes what the original does, from which XLA's passes made it."""
    used: int = field(default=0, compare=False)
    """How many programs were compiled as chosen."""

    @cached_property
    def key(self) -> str:
        """The fingerprint of what is met: names aside, it is all that HLO says."""
        return fingerprint(self.replaced)

    @property
    def open(self) -> tuple[str, ...]:
        """What of all this was not proved; XLA's own work, where every choice is proved."""
        parts = {"chosen": self.certificate, "made by XLA": self.made, "met": self.met}
        return tuple(f"{what}: {line}" for what, document in parts.items() for line in document["open"])

    @contextmanager
    def active(self) -> Generator[Deployment]:
        """Inside of the block a program of this process that is the original is compiled as chosen.

        Programs that JAX compiled before are not compiled again: enter the block before the first call.
        """

        def chosen(proto: bytes) -> bytes | None:
            if fingerprint(proto) != self.key:
                return None
            self.used += 1
            return self.module

        with transforming(chosen):
            yield self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the deployment, as a whole or not at all; raises RewrightError."""
        body = {
            "replaced": encode_bytes(self.replaced),
            "module": encode_bytes(self.module),
            "certificate": self.certificate,
            "made": self.made,
            "met": self.met,
        }
        save_document(path, _HEADER.document(body))


def load(path: str | os.PathLike[str], unproved: bool = False) -> Deployment:
    """A deployment from a file, which anybody may have written.

    Raises RewrightError where it is none, its certificates do not hold, or they leave something open: whoever knows
    where the file is from may allow that with ``unproved``. What XLA did itself is no exception, as a file can say so
    of anything.
    """
    found = open_file(path, _read)
    _check(found)
    if found.open and not unproved:
        name = os.fspath(path)
        raise RewrightError(f"{name} leaves {len(found.open)} claims open, the first {found.open[0]:.160}; allow it")
    return found


def _read(text: str, value: Any) -> Deployment:
    entries = _HEADER.entries(read_document(text, value))
    replaced, module = (entries.one(what, as_bytes) for what in ("replaced", "module"))
    certificate, made, met = (entries.one(what, _document) for what in ("certificate", "made", "met"))
    return Deployment(replaced, module, certificate, made, met)


def _document(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it is no certificate")
    return cast("dict[str, Any]", value)


def _check(deployment: Deployment) -> None:
    """Raise Refused where a certificate does not hold, or the three are not about what is met and compiled."""
    chosen, made, met = (audit(own) for own in (deployment.certificate, deployment.made, deployment.met))
    for one, other, what in (
        (chosen.final, made.original, "what XLA's other passes started from is not what was chosen"),
        (chosen.original, met.original, "what is met was made of another original"),
        (made.final, deployment.module, "the module is not the one that the certificate ends with"),
        (met.final, deployment.replaced, "what is met is not what the certificate ends with"),
    ):
        if write(remove_dead_code(read(one))) != write(remove_dead_code(read(other))):
            raise Refused(what)
    if _interface(read(deployment.module)) != _interface(read(deployment.replaced)):
        raise Refused("the module takes, gives or shares other buffers than what it stands for")


def deploy(
    session: Session, episode: Episode, decided: Sequence[str] = (), unproved: bool = False, seconds: float = 1.0
) -> Deployment:
    """What an episode has chosen, to be compiled in the place of its original.

    ``decided`` are the passes of XLA that are not to run again on what was chosen: those of the episode where none is
    named. Raises RewrightError where a step was only tested, unless ``unproved`` allows it, where the outputs of the
    two modules differ, and where XLA's passes give one that takes or gives other layouts.
    """
    own = certify(episode)
    if own.open and not unproved:
        raise RewrightError(
            f"{len(own.open)} steps were only tested, the first {own.open[0]:.160}; allow it, or undo it"
        )
    names = hand_decided(decided or episode.settings.passes)
    original, chosen = episode.original, HloModule(_program(own.document["final"]))
    before, after = session.optimised(original), session.optimised(chosen, *names)
    if [str(s) for s in before.result_shapes()] != [str(s) for s in after.result_shapes()]:
        raise RewrightError("what was chosen gives other results; choose again")
    test = compare_modules(session, session.canonical(original), HloModule(after.proto, True, original.proto))
    if test.agrees is False:
        raise RewrightError(f"what was chosen gives other values: {test.what:.160}")
    if _interface(before.program) != _interface(after.program):
        raise RewrightError("XLA gives what was chosen other layouts, or shares other buffers; choose again")
    made = _by_xla(chosen.program, session.all_changes(chosen, *names), after.program, seconds)
    met = _by_xla(original.program, session.all_changes(original), before.program, seconds)
    return Deployment(before.proto, after.proto, own.document, made.document, met.document)


def _program(text: str) -> Module:
    return read(as_bytes(text))


def _interface(program: Module) -> list[Field]:
    """What the caller of a module relies on besides values: shapes with layouts, and which buffers may be shared."""
    return sorted((entry for entry in program.fields if entry[0] in _INTERFACE), key=lambda entry: entry[0])


def _by_xla(original: Module, changes: Sequence[Change], end: Module, seconds: float) -> Certified:
    """The certificate of what XLA's passes did, one run of one pass after the other."""
    stages: list[Stage] = []
    for change in changes:
        graph = split(change.before.program, change.after.program, Provenance("xla", change.name, change.pipeline))
        if len(graph):
            stages.append(Stage(change.before.program, graph, tuple(range(len(graph)))))
    return certify_stages(original, [*stages, Stage(end, AlternativeGraph(end), ())], seconds)


def _prove(deployment: Deployment, _programs: object, _store: object) -> Proved:
    _check(deployment)
    known = "proved" if not deployment.open else "proved in part"
    return Proved(
        f"deployment in the place of {deployment.key[:16]}: {known}",
        (Said("open", "not proved", deployment.open),),
        "3 certificates",
        {"certificates": 3},
        open=deployment.open,
    )


KIND = Kind(_read, _prove)
