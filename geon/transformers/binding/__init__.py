"""Values of calls for the ops of a computation: options, results, variables, open lengths."""
