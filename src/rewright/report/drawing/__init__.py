"""Programs as pictures: a few nodes around a place, laid out in layers, as SVG."""

from rewright.report.drawing.pair import draw_finding, draw_graph, draw_pair

__all__ = ["draw_finding", "draw_graph", "draw_pair"]
