"""Certificates of every kind: one audit reads them all, and none brings in what the others need."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rewright as rw
from rewright.certificates import KINDS, load
from rewright.ir.errors import OtherPrograms, RewrightError
from rewright.proof.kinds import Kind
from tests.programs import mlp
from tests.proof.programs import deep


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("proof") / "proof.json"
    certificate = rw.refine(*deep()).certificate
    assert certificate is not None
    certificate.save(path)
    return path


def test_what_it_proves_is_told(proof: Path) -> None:
    found = rw.audit(proof, *deep())
    assert found.claim == "2 ranks (tp=2) compute what the sequential program computes"
    assert [said.key for said in found.said] == ["inputs", "outputs", "assumptions"]
    assert not found.open
    with pytest.raises(OtherPrograms):
        rw.audit(proof, *mlp(2))
    with pytest.raises(RewrightError, match="is about two programs"):
        rw.audit(proof)


@pytest.mark.parametrize("form", KINDS)
def test_every_kind_reads_its_own_format_alone(form: str, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    assert isinstance(import_module(KINDS[form]).KIND, Kind)
    path = tmp_path / "proof.json"
    path.write_text(json.dumps({"format": form, "version": 99}))
    with pytest.raises(RewrightError, match=r"proof\.json: version 99 of the \w+ is not known"):
        load(path)


@pytest.mark.parametrize("text", ["[]", "3", "{}", '{"format": "rewright.graph"}', '{"format": 3}', '{"format": []}'])
def test_what_is_no_certificate_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.write_text(text)
    with pytest.raises(RewrightError, match="this is no certificate"):
        rw.audit(path)


def test_an_audit_imports_the_module_of_its_own_kind_alone(proof: Path) -> None:
    code = f"import sys; from rewright.certificates import load; load({str(proof)!r}); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    packages = {name.split(".")[1] for name in loaded if name.startswith("rewright.")}
    assert packages == {"analysis", "certificates", "claims", "ir", "ops", "proof", "terms"}
