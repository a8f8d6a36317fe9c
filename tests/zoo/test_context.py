"""``context_parallel`` of torch: loss and gradients are proved; slips in how blocks are masked and merged refuted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo import context

ATTENTION: Any = vars(context)["_attention"]


def proof(degree: int, build: Callable[[DeviceMesh], Any] | None = None, **how: Any) -> Verdict:
    step, args, kwargs = context.sequential(degree, causal=how["causal"])
    program = rw.capture_ranks(build or context.parallel(degree, **how), {"cp": degree})
    held = "HeadTail(2)" if how.get("balanced") else "Shard(2)"
    relations = dict.fromkeys(context.NAMES, held)
    return rw.refine(rw.capture(step, args, kwargs), program, relations, {"loss": "Partial(sum)", "output": held})


MASKS = [pytest.param(False, False, id="no mask"), (True, False), (True, True)]
"""Whether attention is causal, and whether shares are of head and tail."""


def test_what_sharded_a_module_before_in_this_process_changes_nothing() -> None:
    with mock.patch.object(ATTENTION, "_dispatch_mode", ATTENTION._DispatchMode.MODULE_WRAPPER):
        verdict = proof(2, causal=False, balanced=False, rotation="allgather")
    assert verdict.status == "proved", verdict.reason


@pytest.mark.sample(5)
@pytest.mark.parametrize("rotation", ["allgather", "alltoall"])
@pytest.mark.parametrize(("causal", "balanced"), MASKS)
def test_loss_and_gradients_of_queries_keys_and_values(causal: bool, balanced: bool, rotation: str) -> None:
    verdict = proof(2, causal=causal, balanced=balanced, rotation=rotation)
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["grad:key"].placement == ("HeadTail(2)" if balanced else "Shard(2)")


@pytest.mark.slow
@pytest.mark.parametrize("degree", [3, 4, 5])
@pytest.mark.parametrize(("causal", "balanced"), MASKS)
def test_more_ranks(degree: int, causal: bool, balanced: bool) -> None:
    assert proof(degree, causal=causal, balanced=balanced, rotation="alltoall").status == "proved"


def test_shares_of_head_and_tail_that_are_said_to_be_contiguous() -> None:
    step, args, kwargs = context.sequential(2, causal=True)
    program = rw.capture_ranks(context.parallel(2, causal=True, balanced=True), {"cp": 2})
    relations = dict.fromkeys(context.NAMES, "Shard(2)")
    verdict = rw.refine(rw.capture(step, args, kwargs), program, relations, {"loss": "Partial(sum)"})
    assert verdict.status == "refuted"


def proof_of_exchanges(build: Callable[[DeviceMesh], Any], *, causal: bool) -> Verdict:
    step, args, kwargs = context.sequential(2, causal=causal, heads=2)
    relations = dict.fromkeys(context.NAMES, "Shard(2)")
    program = rw.capture_ranks(build, {"cp": 2})
    return rw.refine(rw.capture(step, args, kwargs), program, relations, {"loss": "Partial(sum)"})


@pytest.mark.parametrize("causal", [False, True])
def test_tokens_that_are_exchanged_for_heads(causal: bool) -> None:
    verdict = proof_of_exchanges(context.ulysses(2, causal=causal), causal=causal)
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["grad:value"].placement == "Shard(2)"


def test_heads_that_come_back_in_another_order() -> None:
    def build(mesh: DeviceMesh) -> Any:
        program, args, given = context.ulysses(2, causal=True)(mesh)

        def flipped(x: torch.Tensor, mesh: DeviceMesh, split: int, joined: int) -> torch.Tensor:
            found = exchanged(x, mesh, split, joined)
            return found if joined == 2 else found.flip(1)

        def slipped(**given: torch.Tensor) -> Any:
            with mock.patch.object(context, "exchanged", flipped):
                return program(**given)

        return slipped, args, given

    exchanged = context.exchanged
    assert proof_of_exchanges(build, causal=True).status == "refuted"


def changed(name: str, replacement: Any, **how: Any) -> Callable[[DeviceMesh], Any]:
    """The program with one function of torch's replaced."""

    def build(mesh: DeviceMesh) -> Any:
        program, args, given = context.parallel(2, **how)(mesh)

        def slipped(**given: torch.Tensor) -> Any:
            owner, attribute = name.rsplit(".", 1)
            with mock.patch.object(eval(owner, {"F": F, "A": ATTENTION}), attribute, replacement):
                return program(**given)

        return slipped, args, given

    return build


def never_skips(rank: int, world_size: int, i: int, is_causal: bool) -> Any:
    """Later keys are attended to as well."""
    return ATTENTION._CausalBehavior.IS_CAUSAL if i == 0 else ATTENTION._CausalBehavior.NOT_IS_CAUSAL


def never_masks(rank: int, world_size: int, i: int, is_causal: bool) -> Any:
    """The own block has no mask."""
    skips = (rank - i) % world_size > rank
    return ATTENTION._CausalBehavior.SKIP if skips else ATTENTION._CausalBehavior.NOT_IS_CAUSAL


def adds_elsewhere(*args: Any, idx: int, **kwargs: Any) -> Any:
    """The second half of a result goes to the first."""
    return _partial_update(*args, idx=1 - idx, **kwargs)


_partial_update = ATTENTION._partial_update


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "replacement", "how"),
    [
        ("A._is_causal_behavior", never_skips, {"causal": True}),
        ("A._is_causal_behavior", never_masks, {"causal": True}),
        ("A._partial_update", adds_elsewhere, {"causal": True, "balanced": True}),
        ("F.sigmoid", torch.tanh, {"causal": False}),
        ("F.logsigmoid", F.softplus, {"causal": True}),
    ],
)
def test_slips_in_blocks(name: str, replacement: Any, how: dict[str, Any]) -> None:
    verdict = proof(2, changed(name, replacement, **how), **how)
    assert verdict.status == "refuted"


class Still(ATTENTION._AllToAllRotater):
    """Gradients of keys stay where they are, and count for keys of another rank."""

    def exchange_buffers(self, curr_buffer: torch.Tensor) -> None:
        self._buffer = curr_buffer


def test_gradients_that_do_not_travel_with_their_keys() -> None:
    verdict = proof(2, changed("A._AllToAllRotater", Still, causal=True), causal=True)
    assert verdict.status == "refuted"
    assert verdict.relation["output"].holds
    assert verdict.relation["grad:query"].holds
    assert not verdict.relation["grad:key"].holds
