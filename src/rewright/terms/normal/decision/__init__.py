"""When two values are equal. Read ``equality`` and ``regrouping``, then ``entailment`` and ``assumptions``."""
