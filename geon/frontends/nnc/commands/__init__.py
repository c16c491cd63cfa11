"""The table of commands, ``cmd`` that makes them by name, and their execution.

- ``command``: ``Command``, a row with attributes; its backward is derived from the graph
- ``table``: the rows; their functions are those of ``geon.frontends.positional.networks``
- ``execution``: programs of commands on tensors, ``cmd_exec`` and autotune
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from ....errors import ArgumentError
from ..checks import checked
from .command import Command, CommandRow, checked_attributes
from .table import ROWS


@cache
def command_table() -> dict[str, CommandRow]:
    """Return the rows of all commands by name."""
    return {row.name: row for row in ROWS}


class CommandNames:
    """Commands by name: ``cmd.gemm(transpose_b=True)``, ``cmd("CCV_NNC_GEMM_BACKWARD")``.

    A call takes the attributes; names of the original's headers are known too.
    """

    def __call__(self, name: str, **attributes: Any) -> Command:
        short = str(name).upper().removeprefix("CCV_NNC_").removeprefix("CMD_")
        is_backward = short.endswith("_BACKWARD")
        short = short.removesuffix("_FORWARD").removesuffix("_BACKWARD").lower()
        row = command_table().get(short)
        if row is None:
            raise ArgumentError(
                f"there is no command {name!r}; the commands are {', '.join(command_table())}"
            )
        return Command(row, checked_attributes(row, attributes), int(is_backward))

    __call__ = checked(__call__, "cmd")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name.removesuffix("_backward") not in command_table():
            raise AttributeError(
                f"cmd has no command {name!r}; the commands are {', '.join(command_table())}"
            )
        return partial(self, name)

    def __dir__(self) -> list[str]:
        return sorted(command_table())


cmd = CommandNames()
