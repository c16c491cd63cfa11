"""C identifiers from users' names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ....errors import ArgumentError

# Keywords of C and C++, and macros of their standard headers, that a header must not use as names.
RESERVED_WORDS = frozenset(
    """
    I NULL EOF INFINITY NAN alignas alignof and and_eq asm auto bitand bitor bool break case catch
    char class compl complex concept const constexpr continue decltype default delete do double else
    enum errno explicit export extern false final float for friend fortran goto if imaginary import
    inline int linux long module mutable namespace new noexcept noreturn not not_eq nullptr operator
    or or_eq override private protected public register requires restrict return short signed sizeof
    static static_assert stderr stdin stdout struct switch template this thread_local throw true try
    typedef typeid typename typeof union unix unsigned using virtual void volatile wchar_t while xor
    xor_eq int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t
    """.split()
)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def require_name(name: object) -> str:
    """Return ``name`` if functions of C can begin with it; raise ``ArgumentError`` if not."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED_WORDS:
        raise ArgumentError(
            f"name={name!r} cannot begin the names of C functions: write letters of ASCII, digits "
            "and underscores, with a letter first, and no keyword of C or C++"
        )
    return name


class Identifiers:
    """Distinct C identifiers of one scope."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = {*taken, *RESERVED_WORDS}

    def new(self, wanted: str) -> str:
        """Return ``wanted`` as an identifier that no other name of the scope has.

        It does not end with an underscore, as local names of the written functions do.
        """
        base = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "value"
        if base[0].isdigit():
            base = f"value_{base}"
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name
