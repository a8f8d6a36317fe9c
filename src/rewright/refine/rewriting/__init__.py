"""Rewrites of programs before a proof begins, and the steps of a certificate that show them to change nothing.

A rewrite here proposes, and is not trusted: what it did is written down (``drafts``), and each step gets a lemma
(``steps``) that the checker proves again.
"""
