"""What was found out about a graph of Dynamo's or AOTAutograd's in an earlier process.

None of it has to be right: a graph with symbols is compared with what is captured, and what was fastest once is only
slower where it no longer is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.json_form import from_json, to_json
from rewright.optimize.remembered.cache import keep_note, key_of_text, recall_note

_REFUSED = "refused"


@dataclass(frozen=True)
class Known:
    """Notes under the text of a graph; without a key nothing is kept."""

    key: str

    @staticmethod
    def of(module: torch.fx.GraphModule, what: str, *, remember: bool) -> Known:
        """The notes of one kind about a graph."""
        if not remember:
            return Known("")
        places = [node.meta for node in module.graph.nodes if node.op == "placeholder"]
        said = [_said(meta.get("val", meta.get("example_value"))) for meta in places]
        inner = [str(part.code) for part in module.modules() if isinstance(part, torch.fx.GraphModule)]
        return Known(key_of_text(what, *inner, *said))

    def recall(self) -> Any:
        """What was kept, or None."""
        return recall_note(self.key) if self.key else None

    def keep(self, value: object) -> None:
        """Keep something that JSON has."""
        if self.key:
            keep_note(self.key, value)

    def recall_graph(self) -> Graph | None:
        """The graph that was kept, or None."""
        said = self.recall()
        try:
            return None if said is None or _REFUSED in said else from_json(said, ops.REGISTRY)
        except RewrightError:
            return None

    def recall_refusal(self, hints: Mapping[str, int]) -> str:
        """Why there was no graph with symbols at these sizes; empty where that is not known."""
        said: dict[str, Any] = self.recall() or {}
        return str(said[_REFUSED]) if _REFUSED in said and said["at"] == dict(hints) else ""

    def keep_refusal(self, hints: Mapping[str, int], why: str) -> None:
        """Keep why there is no graph with symbols at these sizes."""
        self.keep({_REFUSED: why, "at": dict(hints)})

    def keep_graph(self, graph: Graph) -> None:
        """Keep a graph, if it has a JSON form."""
        try:
            self.keep(to_json(graph))
        except RewrightError:
            return


def _said(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {value.device} {tuple(value.shape)} {value.stride()} {value.requires_grad}"
    return str(value)


__all__ = ["Known"]
