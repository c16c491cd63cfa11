"""Runtime of compiled programs: feeding, state, calls and checkpoints.

It does not depend on ops: it imports NumPy, the standard library, geon's errors, and from the graph
package only the reading of labelled data, which depends on nothing else. So its text can be part of
the modules that ``Transformer.write`` makes.
"""
