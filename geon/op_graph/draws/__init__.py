"""Draws of ``geon.Random`` by transformation of random words, by rejection and by inversion."""
