"""Convolutions, pools, resizing and samples of images."""
