"""Rewright rewrites tensor programs and proves the result right."""
