"""What was made when geon was installed: see ``installing``.

The names of files are those that they have in the cache, so they are found where compiler, flags,
processor and text are the same, and are as good as not there elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from ...cache import disk

FOLDER = Path(__file__).parents[1] / "prebuilt"


def find(name: str) -> Path | None:
    """The path of a file that was made then and is whole; ``None`` where there is none."""
    return None if load(name) is None else FOLDER / name


def load(name: str) -> bytes | None:
    """The content of such a file, without its seal."""
    try:
        sealed = (FOLDER / name).read_bytes()
    except OSError:
        return None
    return sealed[: -disk.SEAL_BYTES] if disk.is_whole(name, sealed) else None
