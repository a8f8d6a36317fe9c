"""Certificates of kernels: normal forms, look-ups and parts are proved again by an audit, and forged ones are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import rewright as rw  # noqa: E402
from rewright.certificates import audit, load  # noqa: E402
from rewright.ir.digest import digest  # noqa: E402
from rewright.ir.errors import Refused, RewrightError  # noqa: E402
from rewright.kernel.certificate import KernelCertificate  # noqa: E402
from rewright.kernel.forms import Way  # noqa: E402
from tests.kernel import blocks  # noqa: E402
from tests.kernel.test_blocks import LABELS, slope  # noqa: E402


@pytest.fixture(scope="module")
def proved() -> Any:
    """A proof by one normal form, under a condition that the certificate states."""
    generator = torch.Generator().manual_seed(0)
    found = rw.kernel(slope, blocks.gradient, (torch.randn(6, 20, generator=generator), LABELS))
    assert found.status == "proved" and isinstance(found.certificate, KernelCertificate)
    return found


def test_an_audit_proves_each_part_again(proved: Any, tmp_path: Path) -> None:
    path = tmp_path / "kernel.json.gz"
    proved.certificate.save(path)

    found = audit(path, *proved.graphs)

    assert found.claim == "what was read of the kernel computes the output of the reference"
    assert any("its divisor is not zero" in text for text in found.said[0].lines)
    assert load(path)[1] == proved.certificate


def test_a_certificate_is_about_its_programs_and_no_others(proved: Any, tmp_path: Path) -> None:
    path = tmp_path / "kernel.json"
    proved.certificate.save(path)
    left, right = proved.graphs
    other = rw.capture(lambda x, labels: slope(x, labels) * 2, (torch.ones(6, 20), LABELS))

    for pair in ((other, right), (left, other)):
        with pytest.raises(RewrightError, match="is not about the"):
            audit(path, *pair)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c: replace(c, parts=()), "no part is about the output"),
        (lambda c: replace(c, assumptions=c.assumptions[:1]), "states other assumptions"),
        (lambda c: replace(c, assumptions=(*c.assumptions, "it is Monday")), "states other assumptions"),
        (lambda c: replace(c, parts=(replace(c.parts[0], outputs=("output", "more")),)), "no such programs"),
        (lambda c: replace(c, parts=(replace(c.parts[0], proof=Way("nothing")),)), "are not proved"),
    ],
)
def test_forged_certificates_are_refused(proved: Any, tmp_path: Path, change: Any, why: str) -> None:
    path = tmp_path / "kernel.json"
    change(proved.certificate).save(path)

    with pytest.raises(Refused, match=why):
        audit(path, *proved.graphs)


def test_a_certificate_for_a_wrong_kernel_is_refused(proved: Any, tmp_path: Path) -> None:
    left, _ = proved.graphs
    wrong = rw.capture(lambda x, labels: slope(x, labels) * 1.01, (torch.ones(6, 20), LABELS))
    forged = replace(proved.certificate, kernel=digest(wrong))
    path = tmp_path / "kernel.json"
    forged.save(path)

    with pytest.raises(Refused, match="are not proved"):
        audit(path, left, wrong)


def test_a_condition_is_made_of_inputs_and_gives_truth_values(proved: Any, tmp_path: Path) -> None:
    path = tmp_path / "kernel.json"
    x, labels = torch.ones(6, 20), LABELS
    of_another_input = rw.capture(lambda x, labels, more: more > 0, (x, labels, x))
    numbers = rw.capture(lambda x, labels: x + 1, (x, labels))
    of_another_type = rw.capture(lambda x, labels: x > 0, (x.double(), labels))

    for condition in (of_another_input, numbers, of_another_type):
        replace(proved.certificate, condition=condition).save(path)
        with pytest.raises(Refused, match="its condition is none"):
            audit(path, *proved.graphs)


def test_short_integers_count_from_the_other_end() -> None:
    x = torch.arange(40, dtype=torch.int8)

    assert rw.kernel(lambda x: x.int() + x.int(), blocks.doubled, (x,)).status == "refuted"
    assert rw.kernel(lambda x: (x + x).int(), blocks.doubled, (x,)).status == "proved"
