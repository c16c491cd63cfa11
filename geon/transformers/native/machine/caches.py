"""Cache sizes of the processor, and the threshold for non-temporal stores."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from ...sizes.blocks import L1_BYTES, L2_BYTES
from ...sizes.limits import MIN_LAST_CACHE_BYTES
from .roofline_peaks import kept_ceilings
from .threads import processors

# Bytes of traffic from which on results of a machine without measured rates pass by the caches, and
# those of values that are read again. A reported size is no bound: a virtual machine reports the
# cache of its whole host, 480 MiB for 2 cores, where such stores win from 32 and 128 MiB on.
DEFAULT_PAST_BYTES = 8 * MIN_LAST_CACHE_BYTES
DEFAULT_REREAD_BYTES = 4 * DEFAULT_PAST_BYTES
NEVER_STREAM_BYTES = sys.maxsize  # a threshold that no kernel reaches
DEFAULT_CACHE_SIZES = (
    L1_BYTES,
    L2_BYTES,
    32 << 20,
)  # bytes by level, if the system does not report them
PROCESSOR = Path("/sys/devices/system/cpu/cpu0")
CACHE_FILES = ("type", "level", "size")


def past_bytes() -> int:
    """Return the bytes of traffic from which on a kernel uses non-temporal stores.

    Measured rates decide it, if there are any, and never the reported size of a shared cache.
    """
    return _past(DEFAULT_PAST_BYTES, rereads=False)


def reread_bytes() -> int:
    """Return the same of values that a later kernel of the program reads again."""
    return _past(DEFAULT_REREAD_BYTES, rereads=True)


def _past(default: int, rereads: bool) -> int:
    known = kept_ceilings(processors()) or kept_ceilings(1)
    if known is None:
        return default
    measured = known.streams_from(rereads)
    return NEVER_STREAM_BYTES if measured is None else max(measured, MIN_LAST_CACHE_BYTES)


@cache
def caches_of(folder: Path = PROCESSOR) -> tuple[int, ...]:
    """Return the bytes of the processor's data caches, nearest first; ``DEFAULT_CACHE_SIZES`` if
    unknown.

    Linux describes each cache in a subfolder of ``folder`` (Documentation/ABI, cacheinfo).
    """
    found: dict[int, int] = {}
    for each in folder.glob("cache/index*"):
        try:
            kind, level, size = ((each / name).read_text().strip() for name in CACHE_FILES)
            if kind != "Instruction":
                found[int(level)] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):  # another format of these files
            return DEFAULT_CACHE_SIZES
    return (
        tuple([found[level] for level in sorted(found)]) if len(found) > 1 else DEFAULT_CACHE_SIZES
    )
