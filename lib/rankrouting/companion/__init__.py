"""The machinery of the book: parameters, claims, results, execution, provenance, the build.

Nothing that simulates or computes a law depends on it.
"""
