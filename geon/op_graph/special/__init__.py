"""Special functions and activations, and the formulas that targets print."""
