"""Where in the user's program an op was made: the first frame outside geon.

A site is (code object, instruction offset, remark); file and line are worked out only when somebody
asks, because finding a frame costs a tenth of a microsecond and finding its line ten times that.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, ModuleType

from .building import current

Site = tuple[CodeType | str, int, str]

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


_getframe = sys._getframe


def user_site(depth: int = 1) -> Site:
    """The site of the caller ``depth`` frames up, or of the first frame outside geon above it."""
    override = current.site
    if override is not None:
        return override
    frame = _getframe(depth)
    code = frame.f_code
    while code.co_filename.startswith(_ROOT):
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
    while frame.f_code.co_filename.startswith((_ROOT, root)) and frame.f_back is not None:
        frame = frame.f_back
    return (frame.f_code, frame.f_lasti, "")


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


def describe(site: Site) -> str:
    """``file:line`` of a site, with its remark where it has one."""
    filename, line = resolve(site)
    shown = os.path.relpath(filename) if filename.startswith(os.getcwd() + os.sep) else filename
    return f"{shown}:{line}" + (f" ({site[2]})" if site[2] else "")
