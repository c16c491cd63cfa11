"""Contractions, attention and convolutions as CUDA text or library calls."""
