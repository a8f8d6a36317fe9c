"""Captured graphs against PyTorch, on the samples of PyTorch's own operator database: ``make conformance``."""
