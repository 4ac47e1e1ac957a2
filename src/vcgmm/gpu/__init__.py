"""The fit on a GPU: torch for what it does well, Triton kernels for the rest.

`kernels/` holds the kernels, the rooms beside it the steps that use them, each the twin of the CPU's in the room
of the same name.  EM itself is `algorithm.em`, which asks a `Search` and does not know where its points are.
"""
