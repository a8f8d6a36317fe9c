"""The container of certificates: how every kind of claim is written in a file, and read again in one way only.

Two readers of one text may see two things in it: a key that occurs twice, a number that JSON does not have. So what is
read is what is written here, letter for letter, or it says so. A kind of claim has a :class:`Header`, which names its
entries; what becomes of these is the kind's own. The text ends with a digest, which tells of a slip and of no forgery.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from rewright.ir.errors import RewrightError
from rewright.ir.files import decode_text, prefix_errors, read_bytes, read_text, write_text
from rewright.proof.entries import Entries, as_table

Claim = TypeVar("Claim")


@dataclass(frozen=True)
class Header:
    """What a file of a kind begins with, and the entries that it has."""

    format: str
    version: int
    required: tuple[str, ...]
    """Entries besides the format and the version."""
    optional: tuple[str, ...] = ()
    name: str = "certificate"
    hint: str = "name a file that rewright refine --certificate wrote"
    """What to do about another file."""

    def entries(self, value: object) -> Entries:
        """The entries of an object of this kind and version; raises RewrightError for any other."""
        table = cast("dict[str, Any]", value) if isinstance(value, dict) else dict[str, Any]()
        if table.get("format") != self.format:
            raise RewrightError(f"this is no {self.name}; {self.hint}")
        version = table.get("version")
        if type(version) is not int or version != self.version:
            raise RewrightError(f"version {version!r:.20} of the {self.name} is not known; this is {self.version}")
        try:
            return Entries(as_table(table, ("format", "version", *self.required), self.optional))
        except ValueError as error:
            raise RewrightError(f"{error}; write the {self.name} again") from None

    def document(self, body: dict[str, Any]) -> dict[str, Any]:
        """The object with these entries, but for a digest."""
        return {"format": self.format, "version": self.version, **body}


@dataclass(frozen=True)
class Form(Generic[Claim]):
    """How certificates of one kind become text and come of it: dataclasses with a field ``intact``."""

    header: Header
    table: Callable[[Claim], dict[str, Any]]
    """The entries of a certificate."""
    build: Callable[[Entries], Claim]
    """A certificate of entries; raises RewrightError, naming the place, where they are of another form."""

    def text(self, certificate: Claim) -> str:
        """A certificate as text."""
        return seal_text(self.header.document(self.table(certificate)))

    def sealed(self, certificate: Claim) -> dict[str, Any]:
        """A certificate as an object that is part of another one, its digest included."""
        return json.loads(self.text(certificate))

    def of_value(self, value: object) -> Claim:
        """The certificate of a JSON value; raises RewrightError, naming the place."""
        return self.build(self.header.entries(value))

    def read(self, text: str, value: object) -> Claim:
        """The certificate of a text and its JSON value, which is not intact where its text is another one."""
        found: Any = self.of_value(value)
        return replace(found, intact=text == self.text(found))

    def save(self, certificate: Claim, path: str | os.PathLike[str]) -> None:
        """Write a certificate, as a whole or not at all; raises RewrightError."""
        check_name(path)
        write_text(path, self.text(certificate))

    def load(self, path: str | os.PathLike[str]) -> Claim:
        """Read a certificate; raises RewrightError, naming the place."""
        return open_file(path, self.read)


def open_file(path: str | os.PathLike[str], read: Callable[[str, Any], Claim]) -> Claim:
    """What ``read`` makes of the text of a file and of its JSON value; raises RewrightError with the path."""
    contents = read_bytes(path)
    is_plain = contents.startswith(b"{")  # documents were once written without compression under any name
    text = prefix_errors(path, lambda: decode_text(contents)) if is_plain else read_text(path)
    return prefix_errors(path, lambda: read(text, decode(text)))


def decode(text: str) -> Any:
    """The JSON value of a certificate; raises RewrightError where two readers may see two values in it.

    So it is with a key that occurs twice, and with numbers that JSON does not have.
    """

    def entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise RewrightError(f"the entry {twice!r:.40} occurs twice; write the file again")
        return found

    def number(name: str) -> float:
        raise RewrightError(f"{name} is no number of JSON; write the file again")

    try:
        return json.loads(text, object_pairs_hook=entries, parse_constant=number)
    except (ValueError, RecursionError) as error:
        raise RewrightError(f"this is no JSON ({str(error).splitlines()[0]}); write the file again") from None


def seal_text(entries: dict[str, Any]) -> str:
    """A JSON object as text that ends with a digest of what comes before it."""
    text = json.dumps(entries, allow_nan=False, ensure_ascii=False, separators=(",", ":"))[:-1]
    return f'{text},"digest":"{hashlib.sha256(text.encode()).hexdigest()}"}}\n'


def check_name(path: str | os.PathLike[str]) -> None:
    """Raise RewrightError for a name that no certificate can have."""
    name = os.fspath(path)
    if not name.endswith((".json", ".json.gz")):
        raise RewrightError(f"{name} is no name of a certificate; name a file that ends in .json or .json.gz")


# --- documents: objects whose digest is of what they say, and not of its text


def seal_document(document: dict[str, Any]) -> dict[str, Any]:
    """A document with its digest, in the place of one that it has."""
    body = {key: value for key, value in document.items() if key != "digest"}
    return {**body, "digest": hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()}


def check_digest(entries: Entries, name: str) -> None:
    """Raise RewrightError for a document that was changed after it was written."""
    table = dict(entries.table)
    if seal_document(table) != table:
        raise RewrightError(f"the {name} was changed after it was written: its digest is not that of its contents")


def save_document(path: str | os.PathLike[str], document: dict[str, Any], indent: int | None = None) -> None:
    """Write a document, as a whole or not at all; raises RewrightError."""
    write_text(path, json.dumps(document, indent=indent))


def read_document(text: str, value: Any) -> dict[str, Any]:
    """The document that a text is; raises RewrightError where that is not as it is written here."""
    if not isinstance(value, dict) or text.rstrip("\n") not in (json.dumps(value), json.dumps(value, indent=1)):
        raise RewrightError("it is not written as its printer writes it; write it again")
    return cast("dict[str, Any]", value)
