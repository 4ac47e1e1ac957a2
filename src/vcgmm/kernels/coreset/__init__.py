"""Rows as they are read: moments, draws, coordinates."""
