"""The shared functions of products as units of their own, the same for every module.

They are compiled once and come from the cache of objects from then on; the units that call them
have their prototypes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..c_functions import PRELUDE
from .product import micro_kernels

_HIDDEN = '__attribute__((visibility("hidden")))'
_FUNCTION = re.compile(
    r"^static (?P<how>(?:GEON_QUICK|__attribute__\(\(.*?\)\)) )?"
    r"(?P<head>\w[^{;=]*?\))\s*\{.*?^\}\n",
    re.MULTILINE | re.DOTALL,
)
_TYPED = re.compile(r"geon_(?:tiles|stream|dots|copy|spread|transpose)_(f\d+)\b")
_OWN = re.compile(r"\bgeon_(split|share)\(")  # small, and of no type: each unit has its own
_SHARED = " ".join(
    f"geon_{name}_{{0}}" for name in ("tiles", "copy", "spread", "transpose", "stream", "dots")
)


def tags(text: str) -> tuple[str, ...]:
    """The types (``f32``, ``f64``) whose shared functions a C text calls."""
    return tuple(sorted(set(_TYPED.findall(text))))


@lru_cache(maxsize=16)
def shared_unit(tag: str, vector_bytes: int) -> str:
    """The unit with all shared functions of one type."""
    text = micro_kernels(_SHARED.format(tag), vector_bytes)
    exported, count = _FUNCTION.subn(
        lambda m: f"{_HIDDEN} {m['head']};\n{m['how'] or ''}{m[0][m.start('head') - m.start() :]}",
        text,
    )
    assert count, "the shared functions of products are written in another way"
    return "\n".join([PRELUDE, exported])


@lru_cache(maxsize=64)
def prototypes(names: tuple[str, ...], vector_bytes: int) -> str:
    """What a unit declares that calls these functions; ``geon_split`` is its own."""
    text = micro_kernels(" ".join(names), vector_bytes)

    def declared(found: re.Match[str]) -> str:
        head = found["head"]
        return found[0] if _OWN.search(head) else f"{_HIDDEN} {head};\n"

    return _FUNCTION.sub(declared, text)


def called(text: str) -> tuple[str, ...]:
    """The names of geon's functions that a text mentions, in order."""
    return tuple(dict.fromkeys(re.findall(r"geon_\w+", text)))
