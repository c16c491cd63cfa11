"""What a call needs when nothing is compiled any more: feeding, state, calls, checkpoints.

Nothing here knows ops: it imports NumPy, the standard library and geon's errors, and of the graph
the reading of labelled data, which needs no more than that. So its text is part of the modules that
``Transformer.write`` makes.
"""
