"""``Unread``: tensors collected for the user, with a warning if they were never requested."""

from __future__ import annotations

from collections.abc import Iterable

from ....op_graph.building.unused_effects import watch_owner
from ....op_graph.op_graph import Tensor

MAX_SHOWN_OPS = 4  # max. ops that a warning names


class Unread:
    """Tensors that an object collected and its user has not requested yet.

    ``what`` is the name of the property that returns them, and ``cure`` says what to write.
    """

    def __init__(self, what: str, cure: str) -> None:
        self.what, self.cure = what, cure
        self.tensors: dict[Tensor, None] = {}

    def add(self, tensor: Tensor) -> None:
        """Record a tensor."""
        self.tensors[tensor] = None

    def clear(self) -> None:
        """Forget all tensors: the user has requested them."""
        self.tensors.clear()

    def warning(self, owner: str) -> str:
        """Return the warning about unread tensors; "" if there are none."""
        if not self.tensors:
            return ""
        shown = [str(tensor) for tensor in self.tensors]
        more = [f"{len(shown) - MAX_SHOWN_OPS} more"] if len(shown) > MAX_SHOWN_OPS else []
        return (
            f"the {self.what} of {owner} are gone, and no computation was given them: "
            f"{', '.join([*shown[:MAX_SHOWN_OPS], *more])}; {self.cure}"
        )


def watch_unread(owner: object, parts: Iterable[Unread]) -> None:
    """Warn when ``owner`` is garbage-collected while one of its parts has unread tensors."""
    listed, kind = list(parts), type(owner).__name__

    def message(place: str) -> str:
        found = [part.warning(f"the neon.{kind} made at {place}") for part in listed]
        return "\n".join(filter(None, found))

    watch_owner(owner, message)
