"""Sizes that each call computes from open lengths: buffers, scratch memory and iteration counts.

Records of programs in the disk cache consist of these classes, which need no stage of the compiler.
"""
