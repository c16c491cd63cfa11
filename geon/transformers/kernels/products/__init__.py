"""Contractions, attention and chains of them, as data."""
