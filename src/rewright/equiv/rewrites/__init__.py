"""Rewrites of both programs in front of a proof, each a step that the checker verifies. ``preparing`` applies them.

A module is one rewrite: what it replaces and by what. Start with ``neutral_max``, the shortest, and ``topk_monotone``,
a typical one.
"""
