"""vLLM's linear attention and state-space models."""

PARTS = ("linear", "states", "chunks", "recurrences", "gates", "scans", "kda", "lightning", "windows")
