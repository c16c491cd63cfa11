"""The compiler's flags for a processor other than the one of this machine."""

from __future__ import annotations

import dataclasses
import shlex

from ....errors import ArgumentError
from .compilers import Toolchain, UnusableError, instruction_macros
from .flags import INSTEAD, TUNED, WIDE

OWN = "native"  # name that compilers have for the processor of this machine
# Flags that choose the processor, one of which each toolchain has.
CHOICES = ("-march=native", INSTEAD["-march=native"])


def for_processor(toolchain: Toolchain, march: str) -> Toolchain:
    """Return the toolchain with flags for the processor that its compiler calls ``march``.

    Raises ``ArgumentError`` with the compiler's message if it has no processor of that name.
    """
    if march == OWN:
        return toolchain
    chosen = [
        flag.replace(OWN, str(march)) if flag in CHOICES else flag for flag in toolchain.flags
    ]
    tuned = (WIDE, TUNED, INSTEAD[TUNED])
    flags = tuple(flag for flag in chosen if flag not in tuned)
    try:
        macros, _ = instruction_macros(toolchain.command, flags)
    except UnusableError as error:
        raise ArgumentError(
            f"march={march!r} is no processor that {shlex.join(toolchain.command)} knows; give "
            f'"{OWN}" for this machine, or a name such as "x86-64-v3"'
        ) from error
    if "__AVX512F__" in macros and WIDE in toolchain.flags:
        flags = (*flags, WIDE)
    return dataclasses.replace(toolchain, flags=flags, macros=macros, cpu=str(march), linker="")
