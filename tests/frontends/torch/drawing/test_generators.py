"""Names of draws against PyTorch's generators: draws of one name give the same numbers, others give others."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import rewright as rw
from rewright.ir.draws import draws
from rewright.ir.graph import Graph

Program = Callable[[torch.Tensor], Any]
X = torch.ones(2, 3)


def captured(program: Program) -> Graph:
    return rw.capture(program, (X,), validate=False)


def names(program: Program) -> list[str]:
    return [draw.name for draw in draws(captured(program))]


def random_program(seed: int) -> Callable[[list[torch.Tensor]], Program]:
    """Draws, seeds, states that are saved and gone back to, in an order that the seed says."""
    steps = random.Random(seed)
    todo = [(steps.choice(("draw", "seed", "save", "restore", "fork")), steps.randrange(3)) for _ in range(12)]

    def with_notes(found: list[torch.Tensor]) -> Program:
        def program(x: torch.Tensor) -> torch.Tensor:
            states = [torch.get_rng_state()]
            total = x

            def draw(kind: int) -> torch.Tensor:
                found.append(torch.rand(2, 3) if kind == 0 else torch.randn(2, 3) if kind == 1 else torch.rand(3))
                return total + found[-1]

            for what, number in todo:
                if what == "draw":
                    total = draw(number)
                elif what == "seed":
                    torch.manual_seed(number)
                elif what == "save":
                    states.append(torch.get_rng_state())
                elif what == "restore":
                    torch.set_rng_state(states[number % len(states)])
                else:
                    with torch.random.fork_rng(devices=()):
                        torch.manual_seed(number)
                        total = draw(number)
            return total + draw(0)

        return program

    return with_notes


@pytest.mark.parametrize("seed", range(20))
def test_draws_of_one_name_are_the_same_numbers(seed: int) -> None:
    make = random_program(seed)
    told = names(make([]))
    found: list[torch.Tensor] = []
    torch.manual_seed(1234 + seed)  # the state that the program begins in is another one than any it sets
    make(found)(X)
    assert len(told) == len(found)
    for place, one in enumerate(told):
        for other in range(place):
            alike = found[place].shape == found[other].shape and torch.equal(found[place], found[other])
            assert alike == (one == told[other]), (seed, other, place)


def test_a_capture_leaves_generators_as_they_were() -> None:
    own = torch.Generator().manual_seed(3)
    before = torch.get_rng_state(), own.get_state(), torch.initial_seed()
    captured(lambda x: x + torch.rand(3) + torch.rand(3, generator=own))
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], own.get_state())
    assert before[2] == torch.initial_seed()


def test_a_checkpoint_draws_again_what_it_drew() -> None:
    def program(keeps: bool) -> Program:
        def step(x: torch.Tensor) -> torch.Tensor:
            own = x.clone().requires_grad_()
            dropped: Any = checkpoint(
                lambda y: torch.nn.functional.dropout(y).exp(), own, use_reentrant=False, preserve_rng_state=keeps
            )
            return torch.autograd.grad(dropped.sum(), own)[0]

        return step

    first, again = names(program(True))
    assert first == again
    first, again = names(program(False))
    assert first != again


def test_a_program_may_look_at_states() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        before = torch.get_rng_state()
        assert bool((before == torch.get_rng_state()).all().item())
        drawn = x + torch.rand(3)
        assert not torch.equal(before, torch.get_rng_state())
        return drawn

    assert len(names(program)) == 1


def test_a_generator_of_its_own_is_told_by_its_state() -> None:
    def of_seed(seed: int) -> list[str]:
        return names(lambda x: x + torch.rand(3, generator=torch.Generator().manual_seed(seed)))

    assert of_seed(1) == of_seed(1)
    assert of_seed(1) != of_seed(2)


def test_what_other_generators_gave_is_said() -> None:
    graph = captured(lambda x: x * random.random())
    assert "drawn from the generator of Python" in graph.metadata["assumptions"]
    assert "assumptions" not in captured(lambda x: x * 2).metadata


def test_a_program_that_sets_a_seed_leaves_the_state_as_it_was() -> None:
    torch.manual_seed(42)
    before = torch.get_rng_state()

    def program(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(42)
        return x + torch.rand(3)

    first, again = (draws(captured(program))[0] for _ in range(2))
    assert first == again
    assert first.before.startswith("seed ")
    assert torch.equal(before, torch.get_rng_state())
