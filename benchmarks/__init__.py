"""Measurements of speed, each against what else could be used: `make bench`."""
