"""Source lines of ops: the first frame outside geon, and the build context that overrides it.

A site is (code object, instruction offset, remark). File and line are computed only on demand:
finding a frame takes 0.1 microseconds, finding its line ten times as long.

Rewrite and derivative rules are plain expressions of geon's functions and operators. The driver
that runs a rule sets the site and the intern table of the new ops in `current`, which is local to a
thread. Nothing else is passed through thread state.
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
    """The context in which ops are built.

    ``site`` is the source line of new ops; None means the caller's line. Drivers set it for each op
    that they visit. ``own`` is their intern table; None means that of the users. ``step`` is the
    step number while a loop step is built; random draws depend on it.
    """

    site: Site | None = None
    own: OwnTable | None = None
    step: Tensor | None = None


current = Building()


@contextmanager
def building(own: OwnTable | None = None) -> Iterator[Building]:
    """Context of a driver: new ops are in ``own``, if given, with the ``site`` that it sets."""
    site, table = current.site, current.own
    current.site = None
    if own is not None:
        current.own = own
    try:
        yield current
    finally:
        current.site, current.own = site, table


_getframe = sys._getframe


def is_generated(code: CodeType) -> bool:
    """Return True for the ``__init__`` that ``dataclasses`` writes: its file is ``<string>``."""
    return code.co_filename == "<string>" and code.co_name == "__init__"


def user_site(depth: int = 1) -> Site:
    """Return the site of the caller ``depth`` frames up, or of the first frame outside geon."""
    override = current.site
    if override is not None:
        return override
    frame = _getframe(depth)
    code = frame.f_code
    while code.co_filename.startswith(ROOT) or is_generated(code):
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
        code = frame.f_code
    return (code, frame.f_lasti, "")


def site_beyond(module: ModuleType) -> Site:
    """Return the site of the first frame outside geon and the package ``module``."""
    root = os.path.dirname(os.path.abspath(str(module.__file__))) + os.sep
    frame = _getframe(1)
    while frame.f_code.co_filename.startswith((ROOT, root)) and frame.f_back is not None:
        frame = frame.f_back
    return (frame.f_code, frame.f_lasti, "")


def called_within(module: ModuleType, folder: str) -> bool:
    """Return True if a file in ``folder`` of the package ``module`` is among the callers.

    Only the frames of geon and of the package above this call are considered.
    """
    root = os.path.dirname(os.path.abspath(str(module.__file__))) + os.sep
    frame = _getframe(1)
    while frame.f_code.co_filename.startswith((ROOT, root)) and frame.f_back is not None:
        if frame.f_code.co_filename.startswith(root + folder + os.sep):
            return True
        frame = frame.f_back
    return False


def with_remark(site: Site, remark: str) -> Site:
    """Return the site with a remark that says what built an op for it."""
    return (site[0], site[1], remark)


def resolve(site: Site) -> tuple[str, int]:
    """Return the file name and line number of a site."""
    code, offset, _ = site
    if isinstance(code, str):
        return code, offset
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


def cell_of(filename: str) -> str:
    """Return IPython's name of the cell stored under this file name, such as ``In[3]``; else ""."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    format_name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    formatted = None if format_name is None else format_name(filename)
    return " ".join(formatted) if formatted else ""


def describe(site: Site) -> str:
    """Return ``file:line`` of a site, with its remark if it has one."""
    filename, line = resolve(site)
    cell = cell_of(filename)
    if cell:
        return f"{cell}, line {line}" + (f" ({site[2]})" if site[2] else "")
    shown = os.path.relpath(filename) if filename.startswith(os.getcwd() + os.sep) else filename
    return f"{shown}:{line}" + (f" ({site[2]})" if site[2] else "")


def user_call(what: object) -> str:
    """Return ``what`` and the line of the user's call, with which messages begin."""
    return f"{what} at {describe(user_site())}"
