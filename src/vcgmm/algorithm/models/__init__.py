"""Mixtures whose clusters have weights, and variances of their own, beside the paper's model."""
