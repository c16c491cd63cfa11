"""C compilers, their flags, and shared objects."""
