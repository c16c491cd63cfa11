"""C names of external functions, whose addresses a program gets when it is loaded.

Each is a global function pointer of the module, with the type ``void (*)(void)``; a caller casts it
to its own type. ``runtime/external_functions.py`` finds the addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

DECLARED = 'extern void (*{})(void) __attribute__((visibility("hidden")));\n'
LINKED = """\
void geon_link_external{suffix}(void *const *addresses);
void geon_link_external{suffix}(void *const *addresses)
{{
{copies}}}
"""


def external_name(key: str) -> str:
    """Return the C name of the pointer to the external function ``key``."""
    return f"geon_external_{key.replace('.', '_')}"


def declarations(keys: Iterable[str]) -> str:
    """Return the declarations of pointers to external functions."""
    return "".join(DECLARED.format(external_name(key)) for key in keys)


def external_link(keys: Sequence[str], suffix: str) -> str:
    """Return the definitions of the pointers and the function that sets them, in this order.

    ``suffix`` ends the name of the function. Without keys the text is empty.
    """
    if not keys:
        return ""
    names = [external_name(key) for key in keys]
    defined = "".join(f"void (*{name})(void);\n" for name in names)
    copies = [
        f"    __builtin_memcpy(&{name}, &addresses[{k}], sizeof {name});\n"
        for k, name in enumerate(names)
    ]
    return declarations(keys) + defined + LINKED.format(suffix=suffix, copies="".join(copies))
