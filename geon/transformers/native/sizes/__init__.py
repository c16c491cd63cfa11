"""Sizes of native programs that depend on open lengths: scratch memory and packed copies."""
