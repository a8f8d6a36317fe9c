"""vLLM's attention, caches and what is looked up in them."""

PARTS = ("attention", "caches", "prefill", "unified", "paged", "sparse")
