"""Names and syntax of the emitted C: parameters, dialect, C files."""
