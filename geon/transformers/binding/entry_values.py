"""Values that a call reads before it computes, for traces and dumps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime.complex_arrays import as_numbers
from .complex_calls import program_values

if TYPE_CHECKING:
    from ...op_graph.op_graph import Leaf
    from ..compile import CompileStages
    from ..owner_protocol import Owner

Array = np.ndarray[Any, Any]


def at_entry(
    owner: Owner, stages: CompileStages, values: Sequence[Any]
) -> tuple[dict[Leaf, Array], dict[str, int]]:
    """Return copies of what a call with these inputs reads, by leaf, and the open lengths.

    Feeds, lengths and guards are checked as for a call, and variables are initialized.
    """
    linking, memory = stages.linking, owner.memory

    def sizes(lengths: dict[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
        return [], [], 0

    def bind(arena: Any, offsets: Any, variables: Any, constants: Any, lengths: Any) -> Any:
        stored = dict(zip(linking.variables, variables, strict=True))
        return {leaf: stored[leaf] for leaf in linking.read}, lengths

    def run(bound: Any, *inputs: Array) -> tuple[dict[Leaf, Array], dict[str, int]]:
        stored, lengths = bound
        found = {leaf: np.array(a) for leaf, a in zip(linking.inputs, inputs, strict=True)}
        found.update((leaf, memory.copy_out(value)) for leaf, value in stored.items())
        memory.synchronise()
        return found, lengths

    call = owner.link((bind, run, sizes), stages, writes=False)
    found, lengths = call(*program_values(stages, values))
    leaves = {leaf: stages.stands_for(leaf) for leaf in found}
    read = {z: found[leaf] if z is leaf else as_numbers(found[leaf]) for leaf, z in leaves.items()}
    return read, lengths
