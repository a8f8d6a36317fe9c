"""Graphs of AOTAutograd's without the tokens by which it orders assertions."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from rewright.frontends.aten.tables import ASSERTIONS

_torch: Any = torch


def without_tokens(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph with its assertions themselves, in the order that it has them in; tokens are passed on as they are.

    ``with_effects(token, operator, ..)`` gives a new token and the results of the operator. Calls in a graph are in
    order anyway, and the tokens are None where it is called. A graph with any other effect is left as it is.
    """
    calls = [node for node in module.graph.nodes if node.target is _torch.ops.higher_order.with_effects]
    if any(str(node.args[1]) not in ASSERTIONS for node in calls):
        return module
    for node in calls:
        token, function, *arguments = node.args
        with module.graph.inserting_before(node):
            plain = module.graph.call_function(function, tuple(arguments), dict(node.kwargs))
            plain.meta.update({key: value for key, value in node.meta.items() if key != "val"})
        for user in list(node.users):  # the token is the first part, and the second one is that there is no result
            user.replace_all_uses_with(token if user.args[1] == 0 else plain)
            module.graph.erase_node(user)
        module.graph.erase_node(node)
    if calls:
        module.recompile()
    return module


__all__ = ["without_tokens"]
