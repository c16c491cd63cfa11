"""Regions: loops and branches, ops whose attributes are closed bodies."""
