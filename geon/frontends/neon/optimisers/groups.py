"""``Groups``: a separate optimiser for each group of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ....errors import ArgumentError
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Leaf, Tensor
from ....op_graph.syntax.operators import is_function
from ....op_graph.values.tree import is_mapping
from .optimiser import Moves, Optimiser

if TYPE_CHECKING:
    from .clipping import Clip


@dataclass(frozen=True)
class Tag:
    """The parameters that have a tag; layers tag theirs by their own names, such as ``b``."""

    tag: str

    def __call__(self, w: Leaf) -> bool:
        """Return True if a parameter has the tag."""
        return self.tag in w.tags


@dataclass(frozen=True)
class Matrices:
    """The parameters with two axes."""

    def __call__(self, w: Leaf) -> bool:
        """Return True if a parameter has two axes."""
        return len(w.axes) == 2


class Groups(Optimiser):
    """An optimiser for the parameters that each key selects, and ``rest`` for the others.

    A key is a pattern of names, in which ``*`` matches any text, a ``Tag``, ``Matrices()``, or any
    predicate of a parameter; the first match counts. Parameters whose optimiser is None stay
    unchanged. ``clip`` applies to all gradients together, before that of each optimiser. Optimisers
    without a name are named by their number. Raises ``ArgumentError`` in a step for a pattern that
    matches no parameter, and if one of the optimisers delays or skips steps; such optimisers must
    wrap the groups instead.
    """

    def __init__(
        self,
        groups: Mapping[str | Callable[[Leaf], bool], Optimiser | None],
        rest: Optimiser | None,
        *,
        clip: Clip | None = None,
        name: str = "optimiser",
    ) -> None:
        super().__init__(0.0, clip=clip, name=name)
        if not is_mapping(groups):
            raise ArgumentError(
                f"{user_call('Groups')}: groups={groups!r} is no mapping; give one from what "
                "parameters are meant "
                'to their optimisers, such as {"*.b": neon.SGD(0.1)}'
            )
        self.keys = list(groups)
        self.optimisers = [*groups.values(), rest]
        for key, optimiser in [*groups.items(), ("rest", rest)]:
            if optimiser is not None and not isinstance(optimiser, Optimiser):
                raise ArgumentError(
                    f"{user_call('Groups')}: {optimiser!r} of {key!r} is no optimiser; give one, "
                    "such as "
                    "neon.Adam(0.001), or None for parameters that stay as they are"
                )
        for key in self.keys:
            if not isinstance(key, str) and not is_function(key):
                raise ArgumentError(
                    f"{user_call('Groups')}: {key!r} says of no parameter whether it is meant; "
                    "give a pattern of "
                    "names, neon.Tag, neon.Matrices() or a function"
                )
        for number, optimiser in enumerate(self.optimisers):
            if optimiser is not None and optimiser.name is None:
                optimiser.name = f"{name}.{number}"

    def optimiser_of(self, w: Leaf) -> Optimiser | None:
        """Return the optimiser that moves a weight, or None."""
        for key, optimiser in zip(self.keys, self.optimisers[:-1], strict=True):
            if fnmatchcase(w.name or "", key) if isinstance(key, str) else key(w):
                return optimiser
        return self.optimisers[-1]

    def chosen(self, weights: Sequence[Leaf]) -> list[Leaf]:
        """The weights that some optimiser moves."""
        names = [w.name or "" for w in weights]
        for key in self.keys:
            if isinstance(key, str) and not any(fnmatchcase(name, key) for name in names):
                raise ArgumentError(
                    f"{user_call('Groups')}: the pattern {key!r} fits none of the names of "
                    "parameters, which are "
                    f"{', '.join(map(repr, names))}"
                )
        return [w for w in weights if self.optimiser_of(w) is not None]

    def averages(self) -> dict[Leaf, Leaf]:
        """The weights of which its optimisers keep averages, and these."""
        found: dict[Leaf, Leaf] = {}
        for optimiser in self.optimisers:
            found |= {} if optimiser is None else optimiser.averages()
        return found

    def moves(self, weights: Sequence[Leaf], gradients: Sequence[Tensor]) -> Moves:
        """Return the new values of one step of each optimiser on its group."""
        pairs = zip(weights, self.clip(gradients) if self.clip else gradients, strict=True)
        own: dict[Optimiser, list[tuple[Leaf, Tensor]]] = {}
        for w, gradient in pairs:
            optimiser = self.optimiser_of(w)
            if optimiser is not None:
                own.setdefault(optimiser, []).append((w, gradient))
        moves = Moves()
        for optimiser, group in own.items():
            made = optimiser.moves([w for w, _ in group], [gradient for _, gradient in group])
            if made.when is not None:
                raise ArgumentError(
                    f"{user_call('Groups')}: {type(optimiser).__name__} does not move its group "
                    "in each step, and "
                    "so the groups would part; put it around Groups: "
                    f"neon.{type(optimiser).__name__}(neon.Groups(...))"
                )
            moves.changes |= made.changes
            moves.always |= made.always
        return moves
