"""C library kernels that are not loop nests: sorts, prefix sums, scatters, and calls of them."""
