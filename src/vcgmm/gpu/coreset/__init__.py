"""Rows become points on the device: where they lie, or up through pinned buffers; moments and coresets of them."""
