"""Results as labelled xarray arrays."""
