"""Composites: statistics, losses, convolution, pooling, resizing, NumPy's functions."""
