"""dtypes, attribute types, arrays of other libraries, and trees of values."""
