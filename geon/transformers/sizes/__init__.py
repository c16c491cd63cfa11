"""Sizes that a call evaluates: bytes of buffers and scratch memory, indices that kernels go over.

Nothing here needs a stage: a program that is recalled from the disk cache is made of these.
"""
