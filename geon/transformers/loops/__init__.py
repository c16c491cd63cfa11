"""Loop trees: schedules of kernels as data, with the transformations and rules that shape them."""
