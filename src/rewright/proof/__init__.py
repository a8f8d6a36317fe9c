"""Certificates, and the checker that verifies them without any engine. Read ``checker``, then ``language``.

``language`` says what a certificate claims of every node; ``ledger`` keeps what has been verified; ``lemma`` proves one
step; ``theory`` and ``meaning`` say what terms and tensors mean. ``conditions`` are the obligations that are left as
assumptions, and ``rewriting`` verifies the rewrites that were made in front of the proof.
"""
