"""``Unread``: what layers gather for their user, who is warned where it was never asked for."""

from __future__ import annotations

from collections.abc import Iterable

from ....op_graph.building.unused_effects import watch_owner
from ....op_graph.op_graph import Tensor

SHOWN = 4  # ops that a warning names


class Unread:
    """Tensors that an object gathered and its user has not asked for yet.

    ``what`` names the property that the user reads, and ``cure`` says what to write.
    """

    def __init__(self, what: str, cure: str) -> None:
        self.what, self.cure = what, cure
        self.tensors: dict[Tensor, None] = {}

    def add(self, tensor: Tensor) -> None:
        """Note one more."""
        self.tensors[tensor] = None

    def clear(self) -> None:
        """Note that the user asked for all so far."""
        self.tensors.clear()

    def warning(self, owner: str) -> str:
        """The warning about what is left; "" where nothing is."""
        if not self.tensors:
            return ""
        shown = [str(tensor) for tensor in self.tensors]
        more = [f"{len(shown) - SHOWN} more"] if len(shown) > SHOWN else []
        return (
            f"the {self.what} of {owner} are gone, and no computation was given them: "
            f"{', '.join([*shown[:SHOWN], *more])}; {self.cure}"
        )


def watch_unread(owner: object, parts: Iterable[Unread]) -> None:
    """Warn when ``owner`` becomes garbage while one of its parts has unread tensors."""
    listed, kind = list(parts), type(owner).__name__

    def message(place: str) -> str:
        found = [part.warning(f"the neon.{kind} made at {place}") for part in listed]
        return "\n".join(filter(None, found))

    watch_owner(owner, message)
