"""Clusters near each cluster, and points in the order of their clusters."""
