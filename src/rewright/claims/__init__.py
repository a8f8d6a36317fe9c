"""The language of claims: terms that are total functions of indices, and tensors that are windows of them.

Read ``language``, which is all of it. The engine claims in it what every node of every program computes; certificates
are written in it, and the checker gives each term its meaning.
"""
