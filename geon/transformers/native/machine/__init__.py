"""Measurements of this machine: caches, ceilings, threads."""
