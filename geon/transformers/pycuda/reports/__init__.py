"""Profiles, and diagnosis of a GPU's software."""
