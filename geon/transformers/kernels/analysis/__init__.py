"""Analyses of kernels: index ranges, footprints, loop depths, operation counts."""
