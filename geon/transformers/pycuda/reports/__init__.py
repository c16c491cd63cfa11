"""Profiles, and what a GPU needs."""
