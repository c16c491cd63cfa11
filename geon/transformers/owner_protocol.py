"""What a computation needs of the transformer that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..op_graph.op_graph import Leaf
from .compile import Compiler, Stages
from .runtime.calls import Call
from .runtime.memory import Memory
from .runtime.variable_slot import Slot


class Owner(Compiler, Protocol):
    """A transformer as its computations see it; ``Transformer`` says what each of these does."""

    memory: Memory
    coordinates: dict[Slot, Any]

    @property
    def threads(self) -> int:
        """How many threads a call may use."""

    def coordinates_of(self, variable: Leaf) -> Any:
        """The coordinates of the labelled data that a variable was set to."""

    def keep_coordinates(self, variable: Leaf, coordinates: Any) -> None:
        """Note the coordinates that a variable has from now on."""

    def make_call(self, stages: Stages) -> Any:
        """A callable from one value for each input to the tuple of results."""

    def link(
        self, functions: Any, stages: Stages, *, writes: bool = True, kind: type[Call] = Call
    ) -> Call:
        """A callable that feeds, binds lengths, checks guards and runs ``functions``."""

    def profile(
        self, computation: Any, args: Sequence[Any], keywords: Mapping[str, Any], repeats: int
    ) -> Any:
        """What ``profile`` of a computation gives."""

    def c_function(self, computation: Any) -> Any:
        """The C function of a computation."""
