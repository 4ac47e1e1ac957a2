"""Sizes that kernels are launched with: Triton's functions for them take the host as long as a small launch."""

from __future__ import annotations


def pieces_of(n: int, size: int) -> int:
    """How many pieces of at most `size` n things are."""
    return -(-n // size)


def power_of_two(n: int) -> int:
    """The smallest power of two that is not less than n, from 1 on."""
    return 1 << (n - 1).bit_length() if n > 1 else 1
