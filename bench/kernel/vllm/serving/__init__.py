"""vLLM's sampling, speculation and bookkeeping."""

PARTS = (
    "sampling",
    "batches",
    "logits",
    "shards",
    "speculation",
    "verification",
    "speculators",
    "drafting",
    "tables",
    "steps",
    "lora",
)
