"""Named axes, their lengths, and index maps over them."""
