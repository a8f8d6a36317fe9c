"""From a graph to kernels: what is stored, and which loop does what. Start at ``planner``."""
