"""Seeds: chains, greedy seeds inside cells, moves."""
