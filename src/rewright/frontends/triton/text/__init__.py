"""TTIR, the first form of a Triton kernel, as a tree: ``parse_module`` reads the text that Triton prints.

Read ``syntax`` first: what a module, an operation and a type are. ``tokens`` and ``parser`` read them from text.
"""

from rewright.frontends.triton.text.parser import parse_module
from rewright.frontends.triton.text.syntax import (
    Block,
    Function,
    Kind,
    Location,
    Module,
    Operation,
    all_operations,
)

__all__ = ["Block", "Function", "Kind", "Location", "Module", "Operation", "all_operations", "parse_module"]
