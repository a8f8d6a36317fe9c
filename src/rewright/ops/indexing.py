"""Operators whose indices are data: gather, scatter and slices at computed starts."""

from rewright.ops.dynamic import DynamicSlice, DynamicUpdateSlice, Update
from rewright.ops.gather import Gather
from rewright.ops.scatter import Scatter

__all__ = ["DynamicSlice", "DynamicUpdateSlice", "Gather", "Scatter", "Update"]
