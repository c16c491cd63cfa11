"""``Groups``: an optimiser for each group of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ....op_graph.effects import doall
from ....op_graph.op_graph import Leaf, Tensor, VoidOp
from .optimiser import Optimiser

if TYPE_CHECKING:
    from .clipping import Clip


@dataclass(frozen=True)
class Tag:
    """The parameters that carry a tag; layers tag theirs by their place, such as ``b``."""

    tag: str


class Groups(Optimiser):
    """An optimiser for the parameters that each key means, and ``rest`` for the others.

    A key is a pattern of names, in which ``*`` is any text, or a ``Tag``; the first that fits
    counts. Parameters whose optimiser is None stay as they are. ``clip`` is for all slopes
    together, before that of each optimiser. Optimisers without a name are named by their number.
    """

    def __init__(
        self,
        groups: Mapping[str | Tag, Optimiser | None],
        rest: Optimiser | None,
        *,
        clip: Clip | None = None,
        name: str = "optimiser",
    ) -> None:
        super().__init__(0.0, clip=clip, name=name)
        self.keys = list(groups)
        self.optimisers = [*groups.values(), rest]
        for number, optimiser in enumerate(self.optimisers):
            if optimiser is not None and optimiser.name is None:
                optimiser.name = f"{name}.{number}"

    def optimiser_of(self, w: Leaf) -> Optimiser | None:
        """The optimiser that moves a weight, if any does."""
        for key, optimiser in zip(self.keys, self.optimisers[:-1], strict=True):
            if key.tag in w.tags if isinstance(key, Tag) else fnmatchcase(w.name or "", key):
                return optimiser
        return self.optimisers[-1]

    def chosen(self, weights: Sequence[Leaf]) -> list[Leaf]:
        """The weights that some optimiser moves."""
        return [w for w in weights if self.optimiser_of(w) is not None]

    def update(self, weights: Sequence[Leaf], slopes: Sequence[Tensor]) -> VoidOp:
        """The effect of one step of each optimiser for its own."""
        pairs = zip(weights, self.clip(slopes) if self.clip else slopes, strict=True)
        own: dict[Optimiser, list[tuple[Leaf, Tensor]]] = {}
        for w, slope in pairs:
            optimiser = self.optimiser_of(w)
            if optimiser is not None:
                own.setdefault(optimiser, []).append((w, slope))
        return doall([o.update([w for w, _ in g], [s for _, s in g]) for o, g in own.items()])
