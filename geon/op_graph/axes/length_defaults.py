"""Default lengths of open names, set by ``axis.length``, or by ``geon.lengths`` for a block.

They are read when a computation first binds its lengths, and are not part of any graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import AxisError
from ..core.argument_hints import public
from ..core.source_info import Site, describe, user_site

if TYPE_CHECKING:
    from .axes import Axis


class Default(NamedTuple):
    """A default length, what set it, and the line where it was set."""

    length: int
    how: str
    site: Site


_set: dict[str, Default] = {}
_scope: ContextVar[Mapping[str, Default] | None] = ContextVar("geon.lengths", default=None)


def _known() -> Mapping[str, Default]:
    scope = _scope.get()
    return _set if scope is None else {**_set, **scope}


def default_lengths() -> dict[str, int]:
    """Return the current default lengths by open name."""
    return {name: default.length for name, default in _known().items()}


def default_origin(name: str) -> str:
    """Return what set the default length of an open name, and at which line, for messages."""
    default = _known().get(name)
    if default is None:
        return f"the length that {name} had then"
    return f"the default that {default.how} set at {describe(default.site)}"


def set_default(name: str, length: Any) -> None:
    """Set the default length of an open name; None removes it."""
    if length is None:
        _set.pop(name, None)
    else:
        _set[name] = Default(_checked(name, length), "axis.length", user_site(2))


@public
def lengths(given: Mapping[Axis | str, int]) -> AbstractContextManager[None]:
    """Set default lengths of open axes for a block: ``with geon.lengths({N: 4}): ...``.

    Keys are open axes or their names. Blocks may be nested, and other threads do not see them. A
    computation takes the defaults of its first call, and keeps them. Raises ``AxisError`` for an
    axis that is not open and for an invalid length.
    """
    site = user_site(2)
    if not isinstance(given, Mapping):
        raise AxisError(
            f"lengths at {describe(site)}: {given!r} is no dict from open axes to integers; write "
            "geon.lengths({N: size})"
        )
    own: dict[str, Default] = {}
    for axis, length in given.items():
        name = axis if isinstance(axis, str) else getattr(axis, "open_name", None)
        if name is None:
            raise AxisError(
                f"lengths at {describe(site)}: {axis!r} is not an open axis, whose length can be "
                "given; its length is part of it: make another axis"
            )
        own[name] = Default(_checked(name, length), "geon.lengths", site)
    return _within(own)


@contextmanager
def _within(own: Mapping[str, Default]) -> Iterator[None]:
    token = _scope.set({**(_scope.get() or {}), **own})
    try:
        yield
    finally:
        _scope.reset(token)


def _checked(name: str, length: Any) -> int:
    try:
        size = -1 if isinstance(length, bool) else index(length)
    except TypeError:
        size = -1
    if size < 0:
        raise AxisError(
            f"the length of axis {name!r} must be an integer of at least 0, not {length!r}, at "
            f"{describe(user_site())}; None takes a default back"
        )
    return size
