"""Several environments in processes of their own."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from rewright.env.environment import HloRewrite
from rewright.env.module import HloModule
from rewright.env.session import Session
from tests.env.modules import RATES


def _make(proto: bytes) -> gymnasium.Env:
    return HloRewrite(HloModule(proto), ["algsimp"], tested=False, most_alternatives=4, most_nodes=64)


@pytest.mark.slow
def test_environments_in_processes_step_together(xla: Session) -> None:
    proto = xla.parse(RATES).proto
    envs = gymnasium.vector.AsyncVectorEnv([lambda: _make(proto)] * 2, context="spawn")
    try:
        observation, _ = envs.reset(seed=[0, 1])
        assert observation["nodes"].shape[0] == 2
        masks = np.stack(envs.call("action_masks"))
        assert masks[:, :2].all()
        _, rewards, ended, _, info = envs.step(np.array([0, 5]))
        assert rewards[1] == 0
        assert ended.tolist() == [False, True]
        assert info["action_mask"].shape == masks.shape
    finally:
        envs.close()
