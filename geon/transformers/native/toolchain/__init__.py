"""Find C compilers, choose their flags, compile units and link shared objects."""
