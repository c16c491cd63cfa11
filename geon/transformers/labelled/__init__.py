"""Results as labelled arrays of xarray."""
