"""The operations of TTIR by theme, each entered in the table with what it means."""
