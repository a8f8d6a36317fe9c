"""The second route of capture: programs run for real, on tiny tensors, and a recorder notes what they do."""
