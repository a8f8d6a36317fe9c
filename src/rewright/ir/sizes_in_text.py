"""Sizes as people and files write them."""

from __future__ import annotations

from rewright.ir.dims import Dim, ceil_quotient, symbol


def parse_dim(text: str) -> Dim:
    """Read what ``str`` prints: integers, or sums of products such as ``2*b*s-ceil(s/32)``; raises ValueError."""
    total: Dim = 0
    for part in _split(text.replace(" ", "").replace("-", "+-"), "+"):
        if not part:
            continue
        value: Dim = -1 if part.startswith("-") else 1
        for factor in _split(part.lstrip("-"), "*"):
            if factor.startswith("ceil(") and factor.endswith(")"):
                parts = _split(factor[5:-1], "/")
                numerator, denominator = (p[1:-1] if p.startswith("(") else p for p in parts)
                value = value * ceil_quotient(parse_dim(numerator), parse_dim(denominator))
            elif factor.isidentifier():
                value = value * symbol(factor)
            else:
                value = value * int(factor)
        total = total + value
    return total


def _split(text: str, mark: str) -> list[str]:
    """The parts between marks that are outside of brackets."""
    found, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == mark and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return found
