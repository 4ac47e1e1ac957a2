"""Seeding: clusters from points alone, and clusters moved to where more are needed."""
