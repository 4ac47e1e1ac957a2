"""Points by cluster and clusters near each other: nearest of lists, sums by cluster."""
