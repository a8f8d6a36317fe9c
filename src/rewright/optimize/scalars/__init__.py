"""Scalars with loops: what every element of a tensor is, and what is known of its values. Start at ``expressions``."""
