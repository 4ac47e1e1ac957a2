"""Compiled kernels: arrays in, arrays out.

They know nothing of classes, files or threads; arguments are marked IN, OUT or IN/OUT, and a range
first..last-1 says which part of the work a call does.
"""
