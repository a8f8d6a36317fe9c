"""Models of packages that other people wrote, against those of Transformers: ``make pairs``."""
