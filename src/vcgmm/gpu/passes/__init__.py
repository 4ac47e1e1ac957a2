"""E-steps in passes over all rows, whose way to their clusters is found anew."""
