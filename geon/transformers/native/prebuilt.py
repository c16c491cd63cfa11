"""Objects that were compiled when geon was installed: see ``installing``.

Their names are the keys of the cache of objects, so they are found where compiler, flags, processor
and text are the same, and are as good as not there elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from .. import disk_cache

FOLDER = Path(__file__).with_name("prebuilt")


def find(name: str) -> Path | None:
    """The path of a file that was made then and is whole; ``None`` where there is none."""
    path = FOLDER / name
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return path if disk_cache.is_whole(name, content) else None
