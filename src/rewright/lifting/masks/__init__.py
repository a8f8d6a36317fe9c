"""Masks and guards: values that count where an integer lies in a set. Read ``guards``, then ``positions``."""
