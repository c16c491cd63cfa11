"""What every target shares between the graph and text: rules, and kernels as data."""
