"""Contractions, attention and convolutions as CUDA kernels or library calls."""
