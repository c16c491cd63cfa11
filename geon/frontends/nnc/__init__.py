"""NNC: tensors and commands, concrete and symbolic graphs, a dynamic graph, models and data.

Each layer is built on the one before. Dimensions have positions; ``geon.frontends.positional`` maps
them to named axes.
"""

from ..positional.networks.recurrent import lstm_shapes
from . import cnnp, micro
from .commands import cmd, command_table
from .commands.command import Command
from .commands.execution import autotune, cmd_exec, hint_auto
from .commands.facts import allows_inplace, enforces_inplace, infer_params, needed_inputs
from .concrete import Exec, Graph, Schedule
from .dataframe import DataFrame, DataIterator, Jitter
from .dynamic import DynamicGraph, TensorVariable
from .files import map_tensor, read_tensors, write_tensors
from .streams import Signal, Stream
from .symbolic.graph import ExecSymbol, SymbolicGraph, TensorSymbol
from .symbolic.passes import data_parallel, memory_compression, memory_reduction
from .tensors import Tensor, TensorParam

__all__ = [
    "Command", "DataFrame", "DataIterator", "DynamicGraph", "Exec", "ExecSymbol", "Graph", "Jitter",
    "Schedule", "Signal", "Stream", "SymbolicGraph", "Tensor", "TensorParam", "TensorSymbol",
    "TensorVariable", "allows_inplace", "autotune", "cmd", "cmd_exec", "cnnp", "command_table",
    "data_parallel", "enforces_inplace", "hint_auto", "infer_params", "lstm_shapes", "map_tensor",
    "memory_compression", "memory_reduction", "micro", "needed_inputs", "read_tensors",
    "write_tensors",
]  # fmt: skip
