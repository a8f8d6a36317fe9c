"""The numeric twin: both programs on small sizes and random inputs, with all ranks in one process."""
