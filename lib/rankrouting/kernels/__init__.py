"""Compiled loops: random numbers, and three exact ways to advance the n-th system. No checks here."""
