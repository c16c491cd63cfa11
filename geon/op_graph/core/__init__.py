"""Core of the graph: primitives, intern tables, source lines, traversal; below `op_graph.py`."""
