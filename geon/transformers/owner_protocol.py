"""Interface of a transformer that its computations use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..op_graph.op_graph import Leaf
from .compile import Compiler, CompileStages
from .runtime.calls import CompiledCall
from .runtime.memory import Memory
from .runtime.variable_slot import Slot


class Owner(Compiler, Protocol):
    """A transformer as its computations see it; see ``Transformer`` for each method."""

    memory: Memory
    coordinates: dict[Slot, Any]

    @property
    def threads(self) -> int:
        """Return the number of threads that a call may use."""

    def coordinates_of(self, variable: Leaf) -> Any:
        """Return the coordinates of the labelled data that a variable was set to."""

    def keep_coordinates(self, variable: Leaf, coordinates: Any) -> None:
        """Set the coordinates of a variable."""

    def make_call(self, stages: CompileStages) -> Any:
        """Return a callable from one value for each input to the tuple of results."""

    def link(
        self,
        functions: Any,
        stages: CompileStages,
        *,
        writes: bool = True,
        kind: type[CompiledCall] = CompiledCall,
    ) -> CompiledCall:
        """Return a callable that feeds inputs, binds lengths and runs ``functions``."""

    def profile(
        self, computation: Any, args: Sequence[Any], keywords: Mapping[str, Any], repeats: int
    ) -> Any:
        """Return the profile of a computation."""

    def c_function(self, computation: Any) -> Any:
        """Return the C function of a computation."""

    def written_program(
        self, computation: Any, name: str, threads: int, march: str, values: str | None
    ) -> Any:
        """Return the C files of a computation."""
