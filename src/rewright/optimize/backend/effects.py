"""Graphs of AOTAutograd's without the tokens by which it orders operators that may raise an error."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx

_torch: Any = torch


def without_tokens(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph with such operators themselves, in the order that it has them in; tokens are passed on as they are.

    ``with_effects(token, operator, ..)`` gives a new token and the results of the operator. Calls in a graph are in
    order anyway, and the tokens are None where it is called.
    """
    calls = [node for node in module.graph.nodes if node.target is _torch.ops.higher_order.with_effects]
    for node in calls:
        token, function, *arguments = node.args
        with module.graph.inserting_before(node):
            plain = module.graph.call_function(function, tuple(arguments), dict(node.kwargs))
            plain.meta.update({key: value for key, value in node.meta.items() if key != "val"})
        several = len(function._schema.returns) > 1
        for user in list(node.users):
            number = user.args[1]
            if number == 0:
                user.replace_all_uses_with(token)
            elif several:
                with module.graph.inserting_before(user):
                    part = module.graph.call_function(operator.getitem, (plain, number - 1))
                    part.meta.update(user.meta)
                user.replace_all_uses_with(part)
            else:
                plain.meta.update(user.meta)
                user.replace_all_uses_with(plain)
            module.graph.erase_node(user)
        module.graph.erase_node(node)
    if calls:
        module.recompile()
    return module


__all__ = ["without_tokens"]
