"""Profiles of computations, and computations as C functions for other callers."""
