"""Graph to graph: clones, state as values, derivative sweeps, batching."""
