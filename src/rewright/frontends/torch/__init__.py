"""PyTorch programs: capture with fake tensors, and lowering of ATen graphs to the IR."""
