"""Instantiate the functions of the C files in ``c/`` for given types and macros."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from ...printing.scalars.helpers import definitions
from .c_texts import c_text
from .dialect import PRELUDE
from .external_names import declarations

DEFINED = re.compile(r"^#define (\w+)", re.MULTILINE)


def defines(macros: Mapping[str, object]) -> str:
    """Return ``#define`` lines; the keys may have macro parameters."""
    return "".join(f"#define {name} {value}\n" for name, value in macros.items())


class FileFunction(NamedTuple):
    """A function that a C file defines for given types.

    ``name`` is its C name. ``header`` is the text that a calling unit includes. ``definition`` is
    the rest of a unit of its own, if the header only declares the function. That unit is the same
    for all programs. ``calls`` are the helper functions that the definition calls, ``external`` the
    keys of the external functions that it calls.
    """

    name: str
    header: str
    definition: str = ""
    calls: tuple[str, ...] = ()
    external: tuple[str, ...] = ()

    @property
    def units(self) -> tuple[str, ...]:
        """Return the unit that defines it, or none if the header defines it."""
        return (_unit(self.definition, self.calls, self.external),) if self.definition else ()


@cache
def _unit(definition: str, calls: tuple[str, ...], external: tuple[str, ...]) -> str:
    """Return a unit with a definition and the helpers that it needs."""
    declared = [declarations(external)] if external else []
    return "\n".join([PRELUDE, definitions(calls), c_text("module.h"), *declared, definition])


def instance(file: str, name: str, macros: Mapping[str, object]) -> str:
    """Return a C file's text with its function named ``name`` and other names made by PART(x).

    All macros, those of the file too, are undefined at the end.
    """
    text = defines({"NAME": name, "PART(part)": f"{name}_##part", **macros}) + c_text(file)
    return text + "".join(f"#undef {macro}\n" for macro in dict.fromkeys(DEFINED.findall(text)))


def file_function(
    file: str,
    name: str,
    types: Mapping[str, object],
    macros: Mapping[str, object],
    header: str | None = None,
    calls: tuple[str, ...] = (),
    external: tuple[str, ...] = (),
) -> FileFunction:
    """Return the function that ``file.c`` defines for these macros; its header needs only the
    types.

    ``header`` names another header file than ``file.h``. ``calls`` are the helpers that the macros
    call, ``external`` the keys of the external functions that the file calls.
    """
    declared = instance(f"{header or file}.h", name, types)
    definition = instance(f"{file}.c", name, {**types, **macros})
    return FileFunction(name, declared, definition, calls, external)
