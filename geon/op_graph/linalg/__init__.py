"""Linear algebra over two named axes: factorisations, solutions, and functions made of them."""
