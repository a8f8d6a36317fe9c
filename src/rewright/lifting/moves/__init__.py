"""Operators that only move elements: layout, padding, gathers and scatters. Read ``views``, then ``layout``."""
