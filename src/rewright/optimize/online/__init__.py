"""Online reductions: how sums follow running values in one pass. Start at ``derive``."""
