"""The paper: coreset, seeding, E-step, M-step, bound, and the loop over them.

Files are what a fit goes through, from `pipeline` on; folders hold what these are made of.
"""
