"""A certificate is read only as it is written: two readers of its text never see two claims."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from rewright.ir.errors import Damaged, RewrightError
from rewright.proof.certificate import Certificate
from rewright.proof.checker import audit
from rewright.proof.container import seal_text
from rewright.proof.files import REFINEMENT
from rewright.refine import refine
from tests.proof.programs import PROGRAMS


@pytest.fixture(scope="module")
def text() -> str:
    certificate = refine(*PROGRAMS["mlp"]()).certificate
    assert certificate is not None
    return REFINEMENT.text(certificate)


def with_digest(text: str) -> str:
    body = text[: text.rindex(',"digest"')]
    return f'{body},"digest":"{hashlib.sha256(body.encode()).hexdigest()}"}}\n'


def read(text: str, folder: Path) -> None:
    path = folder / "certificate.json"
    path.write_text(text)
    audit(Certificate.load(path), *PROGRAMS["mlp"]())


def test_what_was_written_is_read(text: str, tmp_path: Path) -> None:
    read(text, tmp_path)
    read(with_digest(text), tmp_path)


@pytest.mark.parametrize("entry", ["outputs", "ranks", "assumptions", "version"])
def test_an_entry_that_occurs_twice_is_refused(entry: str, text: str, tmp_path: Path) -> None:
    """The last one won, with a digest that was right: other readers take the first."""
    with pytest.raises(RewrightError, match=f"the entry '{entry}' occurs twice"):
        read(with_digest(text.replace(f'"{entry}":', f'"{entry}":[],"{entry}":', 1)), tmp_path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_lacks_are_refused(number: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(RewrightError, match="is no number of JSON"):
        read(with_digest(text.replace('"given":[', f'"given":[{number},', 1)), tmp_path)


@pytest.mark.parametrize("form", ["spaces", "order", "escapes", "no end of line"])
def test_another_text_of_the_same_entries_is_refused(form: str, text: str, tmp_path: Path) -> None:
    entries = json.loads(text)
    del entries["digest"]
    if form == "spaces":
        other = with_digest(json.dumps(entries)[:-1] + ',"digest":""}')
    elif form == "order":
        other = seal_text(dict(reversed(entries.items())))
    elif form == "escapes":
        other = with_digest(text.replace('"sequential"', '"\\u0073equential"', 1))
    else:
        other = text.rstrip("\n")
    with pytest.raises(Damaged, match="it is not the text of its contents"):
        read(other, tmp_path)
