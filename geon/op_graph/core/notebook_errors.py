"""Tracebacks in notebooks: only the user's frames, from the cell on, and the message."""

from __future__ import annotations

import os
import traceback

from .source_info import ROOT, cell_of

INTERNAL = f"{os.sep}IPython{os.sep}"


def render_error(error: BaseException) -> list[str]:
    """Return the lines that IPython shows for an error, without frames of geon and IPython."""
    lines = ["Traceback (most recent call last):"]
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(ROOT) or INTERNAL in frame.filename:
            continue
        place = cell_of(frame.filename) or f'File "{frame.filename}"'
        lines += [f"  {place}, line {frame.lineno}, in {frame.name}", f"    {frame.line}"]
    return [*lines, *"".join(traceback.format_exception_only(error)).splitlines()]
