"""The shared functions of products as units of their own, the same for every module.

They are compiled once and come from the cache of objects from then on; the units that call them
have their prototypes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..c_functions import PRELUDE
from .product import micro_kernels
from .product_driver import product_struct
from .product_shape import TAGS, shape

POOL = """\
extern void (*geon_pool_run)(void (*task)(void *argument, int64_t index), void *argument,
                             int64_t count, int32_t threads) __attribute__((visibility("hidden")));
extern int32_t (*geon_seat)(void) __attribute__((visibility("hidden")));
/* A copy kept from call to call, as it was when what it is of had that version; NULL: none. The
   first of a table has the version alone. */
struct geon_kept {
    int64_t *version, seen;
    void *copy;
};
GEON_INLINE struct geon_kept *geon_kept_of(void *table, int64_t number)
{
    return table ? (struct geon_kept *)table + number : NULL;
}
GEON_INLINE void geon_wrote(void *table)
{
    if (table)
        ++*((struct geon_kept *)table)->version;
}
"""
_HIDDEN = '__attribute__((visibility("hidden")))'
_FUNCTION = re.compile(
    r"^static (?P<how>(?:GEON_QUICK|__attribute__\(\(.*?\)\)) )?"
    r"(?P<head>\w[^{;=]*?\))\s*\{.*?^\}\n",
    re.MULTILINE | re.DOTALL,
)
_TYPED = re.compile(r"geon_(?:product|copy|spread|transpose)_(f\d+)\b")
_SHARED = "geon_product_{0} geon_copy_{0} geon_spread_{0} geon_transpose_{0}"


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
    return "\n".join([PRELUDE, POOL, exported])


def prototypes(names: tuple[str, ...], vector_bytes: int) -> str:
    """What a unit declares that calls these functions."""
    return "".join(_prototype(name, vector_bytes) for name in names if _TYPED.fullmatch(name))


@lru_cache(maxsize=64)
def _prototype(name: str, vector_bytes: int) -> str:
    of = shape(next(type for type, tag in TAGS.items() if name.endswith(tag)), vector_bytes)
    if name.startswith("geon_product"):
        told = f"const struct geon_product_{of.tag} *told"
        return f"{product_struct(of)}{_HIDDEN} void {name}({told}, int32_t threads);\n"
    text = micro_kernels(name, vector_bytes)
    heads = (m["head"] for m in _FUNCTION.finditer(text))
    return f"{_HIDDEN} {next(head for head in heads if f' {name}(' in head)};\n"


def called(text: str) -> tuple[str, ...]:
    """The names of geon's functions that a text mentions, in order."""
    return tuple(dict.fromkeys(re.findall(r"geon_\w+", text)))
