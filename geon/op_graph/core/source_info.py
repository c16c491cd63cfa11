"""Source lines of ops: the first frame outside geon, and the build context that overrides it.

A site is (code object, instruction offset, remark). File and line are computed only when they are
asked for: finding a frame costs a tenth of a microsecond and finding its line ten times that.

Rules of rewrites and derivatives are plain expressions of geon's functions and operators. The
driver that runs a rule sets the site and the intern table of the ops that it builds in `current`,
which is local to a thread. Nothing else is passed through the state of a thread.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..op_graph import Tensor
    from .interning import OwnTable


Site = tuple[CodeType | str, int, str]

ROOT = os.path.abspath(os.path.join(__file__, "..", "..", "..")) + os.sep


class Building(threading.local):
    """The line of the ops that are built, None for the caller's; their table, None for the users'.

    Drivers set ``site`` for each op that they come to. ``step`` is the number of the step where
    that of a loop is built, which draws are part of.
    """

    site: Site | None = None
    own: OwnTable | None = None
    step: Tensor | None = None


current = Building()


@contextmanager
def building(own: OwnTable | None = None) -> Iterator[Building]:
    """The block of a driver: ops are in ``own``, if given, and carry the ``site`` that it sets."""
    site, table = current.site, current.own
    current.site = None
    if own is not None:
        current.own = own
    try:
        yield current
    finally:
        current.site, current.own = site, table


_getframe = sys._getframe


def user_site(depth: int = 1) -> Site:
    """The site of the caller ``depth`` frames up, or of the first frame outside geon above it."""
    override = current.site
    if override is not None:
        return override
    frame = _getframe(depth)
    code = frame.f_code
    while code.co_filename.startswith(ROOT):
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
        code = frame.f_code
    return (code, frame.f_lasti, "")


def site_beyond(module: ModuleType) -> Site:
    """The site of the first frame that is neither of geon nor of the package ``module``."""
    root = os.path.dirname(os.path.abspath(str(module.__file__))) + os.sep
    frame = _getframe(1)
    while frame.f_code.co_filename.startswith((ROOT, root)) and frame.f_back is not None:
        frame = frame.f_back
    return (frame.f_code, frame.f_lasti, "")


def called_within(module: ModuleType, folder: str) -> bool:
    """Whether a part of the package ``module`` calls geon: one of its files in ``folder``."""
    root = os.path.dirname(os.path.abspath(str(module.__file__))) + os.sep
    frame = _getframe(1)
    while frame.f_code.co_filename.startswith((ROOT, root)) and frame.f_back is not None:
        if frame.f_code.co_filename.startswith(root + folder + os.sep):
            return True
        frame = frame.f_back
    return False


def remarked(site: Site, remark: str) -> Site:
    """The same place with a remark, which says what made an op for it."""
    return (site[0], site[1], remark)


def resolve(site: Site) -> tuple[str, int]:
    """The file name and line number of a site."""
    code, offset, _ = site
    if isinstance(code, str):
        return code, offset
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


def cell_of(filename: str) -> str:
    """What IPython calls the cell that it keeps under this name, such as ``In[3]``; or nothing."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    format_name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = None if format_name is None else format_name(filename)
    return " ".join(found) if found else ""


def describe(site: Site) -> str:
    """``file:line`` of a site, with its remark where it has one."""
    filename, line = resolve(site)
    cell = cell_of(filename)
    if cell:
        return f"{cell}, line {line}" + (f" ({site[2]})" if site[2] else "")
    shown = os.path.relpath(filename) if filename.startswith(os.getcwd() + os.sep) else filename
    return f"{shown}:{line}" + (f" ({site[2]})" if site[2] else "")
