"""Whether a captured graph computes what the program computes that it was captured from: numbers on both sides."""
