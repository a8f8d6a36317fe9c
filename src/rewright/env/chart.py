"""Ratios by agent as an SVG chart: a dot for each module, and the mean with its interval, on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_LEFT, _WIDTH, _ROW, _TOP = 130, 460, 44, 40
_TICKS = (0.1, 0.2, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Bar:
    """A row of the chart; ``mean`` goes with the ends of its interval."""

    label: str
    values: tuple[float, ...]
    mean: tuple[float, float, float]


def chart(title: str, bars: Sequence[Bar]) -> str:
    """The chart; values must be above zero. The line at 1 says: as good as the baseline."""
    everything = [1.0, *(value for bar in bars for value in (*bar.values, *bar.mean))]
    low, high = math.log(min(everything)) - 0.05, math.log(max(everything)) + 0.05
    height = _TOP + _ROW * len(bars) + 30

    def x(value: float) -> float:
        return _LEFT + _WIDTH * (math.log(value) - low) / (high - low)

    font = 'font-family="system-ui, sans-serif" font-size="12"'
    size = f'width="{_LEFT + _WIDTH + 20}" height="{height}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>']
    lines.append(f'<rect width="100%" height="100%" fill="#fff"/><text x="10" y="20">{escape(title)}</text>')
    for tick in (own for own in _TICKS if low <= math.log(own) <= high):
        colour = "#333" if tick == 1 else "#ddd"
        lines.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP}" y2="{height - 25}" stroke="{colour}"/>')
        lines.append(f'<text x="{x(tick):.1f}" y="{height - 8}" text-anchor="middle">{tick:g}</text>')
    for place, bar in enumerate(bars):
        lines += _row(bar, _TOP + _ROW * place + _ROW / 2, x)
    return "\n".join([*lines, "</svg>"])


def _row(bar: Bar, y: float, x: Callable[[float], float]) -> list[str]:
    mean, low, high = bar.mean
    lines = [f'<text x="10" y="{y + 4:.1f}">{escape(bar.label)}</text>']
    for value in bar.values:
        lines.append(f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="3" fill="#39c" fill-opacity="0.5"/>')
    interval = f'x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y + 12:.1f}" y2="{y + 12:.1f}"'
    lines.append(f'<line {interval} stroke="#c33" stroke-width="3"/>')
    lines.append(f'<circle cx="{x(mean):.1f}" cy="{y + 12:.1f}" r="5" fill="#c33"/>')
    return lines
