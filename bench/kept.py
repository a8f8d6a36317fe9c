"""What a long comparison has done so far, in a folder: a run that was ended goes on from there.

A file belongs to one set of settings, whose digest is in its name, so that results of other settings are never mixed.
What was kept by another version of the code is the business of whoever names the folder.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rewright.env.rewards import Measurement
from rewright.env.rollouts import Rollout


@dataclass(frozen=True)
class Kept:
    """Rollouts by module and agent, and where a policy is saved; with no folder nothing is kept."""

    folder: Path | None
    training: tuple[object, ...]
    """What a policy is trained with, but for how long."""
    settings: tuple[object, ...]
    """What else decides what agents make of modules."""

    def __post_init__(self) -> None:
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def policy(self) -> Path | None:
        """Where the policy is saved while it is trained."""
        return None if self.folder is None else self.folder / f"policy-{_digest(self.training)}.zip"

    def _trained(self, *bounds: object) -> Path | None:
        return None if self.policy is None else self.policy.with_suffix(f".{_digest(bounds)}.trained")

    def is_trained(self, *bounds: object) -> bool:
        """Whether training within some bounds came to its end in an earlier run."""
        path = self._trained(*bounds)
        return path is not None and path.exists()

    def end_training(self, *bounds: object) -> None:
        """Keep that training within some bounds came to its end."""
        path = self._trained(*bounds)
        if path is not None:
            path.touch()

    def _path(self, title: str, agent: str) -> Path | None:
        if self.folder is None:
            return None
        plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"{title}.{agent}")
        return self.folder / f"{plain}.{_digest((self.training, self.settings))}.json"

    def read(self, title: str, agent: str) -> Rollout | None:
        """What an agent made of a module, where that is there."""
        path = self._path(title, agent)
        if path is None or not path.exists():
            return None
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if table["measured"] is not None:
            table["measured"] = Measurement(**table["measured"])
        return Rollout(**table)

    def write(self, title: str, rollout: Rollout) -> None:
        """Keep what an agent made of a module, its trajectory aside."""
        path = self._path(title, rollout.agent)
        if path is not None:
            table = {**asdict(rollout), "trajectory": None}
            # In one piece: a run may be ended at any time.
            part = path.with_suffix(".part")
            part.write_text(json.dumps(table), encoding="utf-8")
            part.replace(path)


def _digest(settings: object) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:12]
