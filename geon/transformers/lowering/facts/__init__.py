"""Facts about targets, sizes of values and layouts of views."""
