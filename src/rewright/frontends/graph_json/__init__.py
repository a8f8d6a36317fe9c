"""Graphs that others captured, as JSON of the format ``graph-json/1``: ATen calls, one file a rank, no pickle."""

from rewright.frontends.graph_json.reading import read_alone, read_ranks

__all__ = ["read_alone", "read_ranks"]
