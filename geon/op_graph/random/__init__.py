"""Random streams: Philox bits, uniform and normal values."""
