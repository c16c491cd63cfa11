"""Contractions, attention and chains of kernels, as data."""
