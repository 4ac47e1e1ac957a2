"""Cells: which clusters the points of a cluster search together, and the sums over their points."""
