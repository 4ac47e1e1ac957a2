"""Triton kernels: tensors in, tensors out.

They run on a GPU, or on the CPU under Triton's interpreter (TRITON_INTERPRET=1), where tests hold them to the CPU
kernels.  No kernel adds floats atomically: all sums are taken in an order that follows from the data.
"""
