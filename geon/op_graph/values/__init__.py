"""dtypes, attribute types, and arrays of other libraries."""
