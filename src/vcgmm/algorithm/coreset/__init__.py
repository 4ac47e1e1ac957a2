"""The coreset: coordinates, two passes over the rows, draws, and the points that were drawn."""
