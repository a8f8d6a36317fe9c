"""Whatever raises on the way, the program runs: by Inductor, and else as it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rewright.optimize.backend import captured, entry, kernels, others
from rewright.optimize.running.execution import Runner
from tests.optimize.backend.training import Twins, compiled, layer_norm
from tests.optimize.programs import normal


def fail(*_: Any, **__: Any) -> Any:
    """What cannot be done."""
    raise OSError("no space is left")


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (captured, "plain_graph"),
        (captured, "capture"),
        (kernels, "request"),
        (kernels, "Kernels"),
        (captured, "returned_by"),
        (Runner, "__call__"),
        (entry, "_by_autograd"),
    ],
    ids=lambda place: place if isinstance(place, str) else place.__name__.rpartition(".")[2],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Inductor's own
def test_an_error_at_any_stage_is_a_line_in_the_log(
    place: Any, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", logger="rewright.optimize")
    if place is not entry:
        monkeypatch.setattr(others, "_by_inductor", lambda module, arguments: module.forward)
    module, x = layer_norm()
    twins = Twins.of(module)
    monkeypatch.setattr(place, name, fail)

    twins.step(x)

    twins.agree()
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("rewright")]
    assert lines
    assert all("OSError: no space is left" in line and "\n" not in line for line in lines)


def test_where_inductor_fails_too_the_graph_runs_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", logger="rewright.optimize")
    monkeypatch.setattr(kernels, "request", fail)
    monkeypatch.setattr(others, "_by_inductor", fail)
    module, x = layer_norm()
    twins = Twins.of(module)

    twins.step(x)

    twins.agree()
    assert "left to eager PyTorch: Inductor does not compile it (OSError: no space is left)" in caplog.text


def test_the_error_of_a_program_is_its_own() -> None:
    def program(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return torch.softmax(table[places], -1)

    run = compiled(program)
    run(normal(4, 3), torch.tensor([0, 3]))

    with pytest.raises(IndexError):
        run(normal(4, 3), torch.tensor([0, 4]))
    torch.testing.assert_close(run(normal(4, 3), torch.tensor([1, 2])), program(normal(4, 3), torch.tensor([1, 2])))


@pytest.mark.parametrize(
    ("options", "said"),
    [({"targets": "cpu"}, "'targets'"), ({"target": "tpu"}, "'tpu'"), ({"allow": "all"}, "'all'")],
)
def test_options_that_there_are_not(options: dict[str, Any], said: str) -> None:
    run = compiled(torch.exp, **options)

    with pytest.raises(Exception, match=said):
        run(normal(3))
