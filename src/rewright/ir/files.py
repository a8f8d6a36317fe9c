"""Text in files: compressed where the extension says so, written as a whole or not at all, and errors with the path."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rewright.ir.errors import RewrightError

Contents = TypeVar("Contents")
LARGEST = 1 << 30
"""Bytes of the largest file that is read, unpacked."""


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file, decompressed where its extension says so; raises RewrightError."""
    contents = read_bytes(path)
    try:
        unpacked = _unpack(contents) if is_packed(path) else contents
    except (OSError, EOFError, zlib.error) as error:
        raise RewrightError(f"cannot read {os.fspath(path)}: {_reason(error)}; save the program again") from None
    try:
        return decode_text(unpacked)
    except RewrightError as error:
        raise RewrightError(f"cannot read {os.fspath(path)}: {error}") from None


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether a file is compressed, by its name."""
    return os.fspath(path).endswith(".json.gz")


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The contents of a file; raises RewrightError."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise RewrightError(f"cannot read {os.fspath(path)}: {_reason(error)}; check the path") from None


def decode_text(contents: bytes) -> str:
    """UTF-8 as text; raises RewrightError."""
    try:
        return contents.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RewrightError(f"{_reason(error)}; save the program again") from None


def _unpack(contents: bytes) -> bytes:
    """What was compressed, up to a size that no program has: a few bytes may stand for more than there is memory."""
    with gzip.GzipFile(fileobj=io.BytesIO(contents)) as file:
        found = file.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise OSError(f"it holds more than {LARGEST >> 20:,} MiB")
    return found


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file as a whole or not at all, compressed where its extension says so; raises RewrightError."""
    contents = text.encode()
    if is_packed(path):
        contents = gzip.compress(contents, mtime=0)
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(contents)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RewrightError(f"cannot write {target}: {_reason(error)}; name another file") from None


def decode_json(text: str) -> Any:
    """The JSON value of a text; raises RewrightError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RewrightError(f"this is no JSON ({str(error).splitlines()[0]}); save the program again") from None


def prefix_errors(path: str | os.PathLike[str], read: Callable[[], Contents]) -> Contents:
    """What ``read`` returns, its errors prefixed with the path."""
    try:
        return read()
    except RewrightError as error:
        raise RewrightError(f"{os.fspath(path)}: {' '.join(str(error).split())}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return (getattr(error, "strerror", None) or str(error) or "it is incomplete").splitlines()[0]
