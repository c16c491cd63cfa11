"""NNC: tensors and commands, concrete and symbolic graphs, a dynamic graph, models and data.

Each layer is built on the one before. Dimensions have positions; ``geon.frontends.positional`` maps
them to named axes.
"""

from .commands import cmd, command_table
from .commands.command import Command
from .commands.execution import (
    allows_inplace,
    autotune,
    cmd_exec,
    enforces_inplace,
    hint_auto,
    infer_params,
)
from .tensors import Tensor, TensorParam, map_tensor, read_tensors, write_tensors

__all__ = [
    "Command", "Tensor", "TensorParam", "allows_inplace", "autotune", "cmd", "cmd_exec",
    "command_table", "enforces_inplace", "hint_auto", "infer_params", "map_tensor", "read_tensors",
    "write_tensors",
]  # fmt: skip
