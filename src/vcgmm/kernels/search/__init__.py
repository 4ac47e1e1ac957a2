"""The E-step: costs, the least of them, winners, and the sums of the M-step."""
