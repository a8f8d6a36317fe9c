"""Chosen rewrites in a JAX program of the user's own: XLA compiles the chosen module wherever it meets the original.

A deployment is keyed by what XLA makes of the original with all of its passes, names aside. Inside of ``active()``
every program that JAX compiles is compared with that, and the one that is it is compiled as chosen: the passes that
were decided by hand do not run on it, all others have run. A program that is any other is left alone.

The certificate is about the chosen module. What XLA's other passes then make of it is run against the original.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from rewright.env.certificate import audit, certify
from rewright.env.episode import Episode
from rewright.env.module import HloModule
from rewright.env.proposers import hand_decided
from rewright.env.session import Session
from rewright.env.testing import compare_modules
from rewright.env.xla.adapter import fingerprint, transforming
from rewright.ir.errors import RewrightError

FORMAT, VERSION = "rewright.deployment", 1


@dataclass
class Deployment:
    """The module to compile in the place of another, with the certificate that they compute the same."""

    key: str
    """Fingerprint of the original after XLA's own passes."""
    module: bytes
    certificate: dict[str, Any]
    used: int = field(default=0, compare=False)
    """How many programs were compiled as chosen."""

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
        """Write the deployment as JSON."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "key": self.key,
            "module": base64.b64encode(self.module).decode(),
            "certificate": self.certificate,
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)


def load(path: str | os.PathLike[str]) -> Deployment:
    """A deployment from a file; raises RewrightError where it is none, or its certificate does not hold."""
    name = os.fspath(path)
    try:
        with open(name, encoding="utf-8") as file:
            document: object = json.load(file)
    except OSError as error:
        raise RewrightError(f"cannot read {name}: {error.strerror}; check the path") from None
    except ValueError as error:
        raise RewrightError(f"{name} is no JSON ({error!s:.60}); save the deployment again") from None
    table = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if table.get("format") != FORMAT or table.get("version") != VERSION:
        raise RewrightError(f"{name} is no deployment of version 1; save it again")
    try:
        found = Deployment(str(table["key"]), base64.b64decode(table["module"], validate=True), table["certificate"])
    except (KeyError, TypeError, ValueError) as error:
        raise RewrightError(f"{name} is incomplete or malformed ({error!r:.80}); save it again") from None
    audit(found.certificate)
    return found


def deploy(session: Session, episode: Episode, decided: Sequence[str] = (), unproved: bool = False) -> Deployment:
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
    original, chosen = episode.original, HloModule(episode.current.program)
    before, after = session.optimised(original), session.optimised(chosen, *names)
    if [str(s) for s in before.result_shapes()] != [str(s) for s in after.result_shapes()]:
        raise RewrightError("what was chosen gives other results; choose again")
    test = compare_modules(session, session.canonical(original), HloModule(after.proto, True, original.proto))
    if test.agrees is False:
        raise RewrightError(f"what was chosen gives other values: {test.what:.160}")
    return Deployment(session.fingerprint(before), after.proto, own.document)
