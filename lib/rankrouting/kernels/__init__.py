"""Compiled loops: random numbers, and what advances the queues. No checks here.

The loops of `diffusion`, `_controls` and `exact` are beside what calls them.
"""
