"""How the points in memory search for their winners."""
