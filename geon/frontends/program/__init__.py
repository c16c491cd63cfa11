"""Networks as programs: operators read and write variables in scopes.

``from geon.frontends import program as fluid``: names below, and the modules ``layers`` and
``optimizers``. Modules of gradients are imported for training only.

- ``registry``: prototypes of operators, ``register_operator``
- ``operators``: the tables of operators
- ``program``: ``Program``, ``Block``, ``Operator``, ``Var``, ``Parameter`` and the guards
- ``creators``, ``layers``, ``control_flow``: what adds operators to a program
- ``backward``, ``gradients``, ``row_reads``, ``optimizers``: gradient operators and updates
- ``scope``, ``storage``: scopes and variables, places, and where values are kept
- ``values``, ``evaluation``: values of variables, and operators evaluated on geon tensors
- ``executor``, ``segments``: runs, compiled or operator by operator
- ``description``, ``protobuf``, ``model_files``: programs as data and in files
- ``operator_checks``: tests of operators against values and differences
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import operators
from .description import ProgramFileError
from .executor import Executor
from .model_files import (
    clone,
    deserialize,
    load_inference_model,
    load_persistables,
    load_program,
    merge,
    prune,
    save_inference_model,
    save_persistables,
    save_program,
    serialize,
)
from .program import (
    Block,
    Operator,
    Parameter,
    Program,
    Var,
    default_main_program,
    default_startup_program,
    program_guard,
)
from .registry import Attribute, ProgramError, Slot, operator_types, register_operator
from .scope import Scope, Variable, current_scope, global_scope, scope_guard
from .segments import place_guard
from .storage import CPUPlace, CUDAPlace

if TYPE_CHECKING:
    from .backward import append_backward, calc_gradient
    from .creators import op
    from .operator_checks import check_gradient, check_output

# What builds and trains programs, for which inference has no need.
_LATER = {
    "append_backward": "backward",
    "calc_gradient": "backward",
    "check_gradient": "operator_checks",
    "check_output": "operator_checks",
    "op": "creators",
}
__all__ = [
    "Attribute", "Block", "CPUPlace", "CUDAPlace", "Executor", "Operator", "Parameter", "Program",
    "ProgramError", "ProgramFileError", "Scope", "Slot", "Var", "Variable", "append_backward",
    "calc_gradient", "check_gradient", "check_output", "clone", "current_scope",
    "default_main_program", "default_startup_program", "deserialize", "global_scope",
    "load_inference_model", "load_persistables", "load_program", "merge", "op", "operator_types",
    "operators", "place_guard", "program_guard", "prune", "register_operator",
    "save_inference_model", "save_persistables", "save_program", "scope_guard", "serialize",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__} has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)
