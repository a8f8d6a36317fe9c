"""XLA from a stock jaxlib: one adapter of its private names, and the process that it runs in."""
