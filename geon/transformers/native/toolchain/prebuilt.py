"""Objects that were compiled ahead of time, when geon was installed: see ``installing``.

Files have the same names as in the cache. So they are found only if the compiler, its flags, the
processor and the text are the same.
"""

from __future__ import annotations

from pathlib import Path

from ...cache import disk

FOLDER = Path(__file__).parents[1] / "prebuilt"


def find(name: str) -> Path | None:
    """Return the path of a prebuilt file if it exists and is intact, or None."""
    return None if load(name) is None else FOLDER / name


def load(name: str) -> bytes | None:
    """Return the content of a prebuilt file without its seal, or None."""
    try:
        sealed = (FOLDER / name).read_bytes()
    except OSError:
        return None
    return sealed[: -disk.SEAL_BYTES] if disk.is_whole(name, sealed) else None
