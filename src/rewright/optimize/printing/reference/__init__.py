"""Plain torch on whole tensors: the reference of what the kernel IR means."""
