"""Python operators and methods of tensors, and names of other libraries."""
