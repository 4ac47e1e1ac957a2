"""The nearest centre: of all, of those in a cell, of those along a way."""
