"""The structure of a network: wiring, architecture, layout of buffers, and ``Network``."""
