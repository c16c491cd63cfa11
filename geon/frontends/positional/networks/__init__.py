"""Layers of networks by position, which frontends with positional tensors share.

Functions take inputs by position and attributes by keyword. Images have a layout: NHWC, NCHW or
CHWN.

- ``arithmetic``: elementwise functions, products and orders of dimensions
- ``losses``: reductions and losses
- ``filling``: constants, random numbers and dropout
- ``normalisation``, ``images``, ``recurrent``, ``attention``, ``boxes``: layers
- ``optimisers``, ``compression``: steps of parameters; halves in fewer bits
- ``common``: what these share
"""
