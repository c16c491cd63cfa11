"""Sizes of native programs that a call evaluates: scratch memory and packed copies."""
