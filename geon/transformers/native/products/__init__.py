"""Emit matrix products and convolutions as C."""
