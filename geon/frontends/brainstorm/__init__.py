"""Networks with named, inspectable buffers, and their training, in the manner of Brainstorm.

``from geon.frontends import brainstorm as bs``: ``bs.layers`` has the layers, which ``>>`` wires,
``bs.Network`` the network, ``bs.handlers`` the kinds of memory and arithmetic.
"""

from . import handlers, initializers, layers, value_modifiers
from .describable import create_from_description, get_description
from .randomness import global_rnd
from .structure.architecture import generate_architecture
from .structure.network import Network

__all__ = [
    "Network", "create_from_description", "generate_architecture", "get_description", "global_rnd",
    "handlers", "initializers", "layers", "value_modifiers",
]  # fmt: skip
