"""The language of denotations: index expressions, conditions on them, and scalars that read operands at them."""
