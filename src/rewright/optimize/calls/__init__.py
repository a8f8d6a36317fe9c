"""Calls of what was optimised: what they depend on besides the values of tensors, and what they return."""
