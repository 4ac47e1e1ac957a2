"""The M-step: means, and its rare second pass."""
