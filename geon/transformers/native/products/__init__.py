"""Matrix products and convolutions as C text."""
