"""FlagGems: ATen in Triton, beside ATen."""
