"""Compiled loops: random numbers, and what advances the queues and diffusions of every module. No checks here."""
