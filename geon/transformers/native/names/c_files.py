"""Functions that the C files of ``c/`` define, for given types and macros."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from ...printing.scalars.helpers import definitions
from .c_texts import c_text
from .dialect import PRELUDE


def defines(macros: Mapping[str, object]) -> str:
    """The lines that define macros, by name with parameters."""
    return "".join(f"#define {name} {value}\n" for name, value in macros.items())


class FileFunction(NamedTuple):
    """A function that a C file defines for some types.

    ``header`` is what a unit has that calls it. Where that only declares it, ``definition`` is the
    rest of a unit of its own, the same for all programs. ``calls`` are the helper functions that
    the definition calls.
    """

    name: str
    header: str
    definition: str = ""
    calls: tuple[str, ...] = ()

    @property
    def units(self) -> tuple[str, ...]:
        """The unit that defines it, if it is not the caller's own."""
        return (_unit(self.definition, self.calls),) if self.definition else ()


@cache
def _unit(definition: str, calls: tuple[str, ...]) -> str:
    """A unit with what a definition needs."""
    return "\n".join([PRELUDE, definitions(calls), c_text("module.h"), definition])


def instance(file: str, name: str, macros: Mapping[str, object]) -> str:
    """What a file says where the function is called NAME and what else it defines PART(x).

    No macro is left defined.
    """
    given = {"NAME": name, "PART(part)": f"{name}_##part", **macros}
    undefined = "".join(f"#undef {macro.partition('(')[0]}\n" for macro in given)
    return defines(given) + c_text(file) + undefined


def file_function(
    file: str,
    name: str,
    types: Mapping[str, object],
    macros: Mapping[str, object],
    header: str | None = None,
    calls: tuple[str, ...] = (),
) -> FileFunction:
    """The function that ``file.c`` defines for these macros; its header needs the types alone.

    The header is that of the same name unless it is given; ``calls`` are the helpers that the
    macros call.
    """
    declared = instance(f"{header or file}.h", name, types)
    return FileFunction(name, declared, instance(f"{file}.c", name, {**types, **macros}), calls)
