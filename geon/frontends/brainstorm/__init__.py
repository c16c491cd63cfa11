"""Parts of Brainstorm: networks with named, inspectable buffers, and their training."""
