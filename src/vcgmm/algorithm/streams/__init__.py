"""Streams: coresets of coresets, and blocks that go into a fitted model."""
