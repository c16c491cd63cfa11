"""The processor's caches, and how much a kernel stores before it stores past them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .roofline_peaks import kept_ceilings

LEAST = 1 << 22  # bytes that stay in some cache of every machine
NEVER = (1 << 63) - 1
CACHES = (32 << 10, 1 << 20, 32 << 20)  # where the system does not say
PROCESSOR = Path("/sys/devices/system/cpu/cpu0")
CACHE_FILES = ("type", "level", "size")


def past_bytes() -> int:
    """The bytes that a kernel may store and read before it stores them past the caches.

    Those of the last cache: of more, what was stored first is gone when the next kernel reads it.
    Never so many where it was measured that such stores are not the faster ones.
    """
    known = kept_ceilings(1)
    if known is not None and not known.passes():
        return NEVER
    return max(caches_of()[-1], 4 * LEAST)


@cache
def caches_of(folder: Path = PROCESSOR) -> tuple[int, ...]:
    """The bytes of a processor's caches for data, nearest first; ``CACHES`` where it is not told.

    Linux describes them in ``folder``, each in a folder of its own (Documentation/ABI, cacheinfo).
    """
    found: dict[int, int] = {}
    for each in folder.glob("cache/index*"):
        try:
            kind, level, size = ((each / name).read_text().strip() for name in CACHE_FILES)
            if kind != "Instruction":
                found[int(level)] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):  # a machine that says it in another way
            return CACHES
    return tuple([found[level] for level in sorted(found)]) if len(found) > 1 else CACHES
