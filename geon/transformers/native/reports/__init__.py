"""Profiles, and computations as C functions."""
