"""vLLM's mixtures of experts."""

PARTS = ("sums", "mixtures", "routes")
