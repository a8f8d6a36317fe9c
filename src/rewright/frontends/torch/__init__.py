"""PyTorch programs: capture with fake tensors, and lowering of ATen graphs to the IR."""

from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks

__all__ = ["capture", "capture_ranks"]
