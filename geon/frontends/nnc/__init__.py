"""Layers of NNC."""
