"""Names and spellings of emitted C: parameters, dialect, C files."""
