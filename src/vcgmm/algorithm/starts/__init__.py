"""Starts: seeds that are improved, in few dimensions or by hard steps, before a fit or without one."""
