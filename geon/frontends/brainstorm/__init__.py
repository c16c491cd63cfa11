"""Networks with named, inspectable buffers, and their training, in the manner of Brainstorm.

``from geon.frontends import brainstorm as bs``: ``bs.layers`` has the layers, which ``>>`` wires,
``bs.Network`` the network, ``bs.handlers`` the kinds of memory and arithmetic, ``bs.Trainer`` the
training, with ``bs.hooks`` and ``bs.scorers``.
"""

from . import (
    data_iterators,
    handlers,
    hooks,
    initializers,
    layers,
    scorers,
    tools,
    training,
    value_modifiers,
)
from .describable import create_from_description, get_description
from .randomness import global_rnd
from .structure.architecture import generate_architecture
from .structure.network import Network
from .training import Trainer

__all__ = [
    "Network", "Trainer", "create_from_description", "data_iterators", "generate_architecture",
    "get_description", "global_rnd", "handlers", "hooks", "initializers", "layers", "scorers",
    "tools", "training", "value_modifiers",
]  # fmt: skip
