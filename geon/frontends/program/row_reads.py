"""Tables that only sparse embeddings of a recurrence read: their gradients as selected rows.

The derivative of a loop by a table that its body reads is a whole table. Here each embedding gets a
term of 0 as a further step input instead, whose gradient has the rows of all steps, and its indices
become a further result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .evaluation import BlockFunction, Values
from .operators.networks import lookup_gradient
from .program import Operator, Program
from .registry import OpInfo
from .values import ProgramValue, added, constant


@dataclass(frozen=True, eq=False)
class RowReads:
    """The embeddings of a recurrence whose tables nothing else reads.

    ``tables`` are the positions of their tables in the slot X.
    """

    block: BlockFunction
    ops: list[Operator]
    tables: list[int]
    steps: int

    def extended(self, given: Values, attributes: Mapping[str, Any]) -> tuple[Values, Any]:
        """Return the inputs and attributes of the recurrence with terms and indices."""
        whole = given["Steps"][0].shape[0]
        inner = [self.block.program.values[op.writes[0]].spec for op in self.ops]
        rows = 1 if given["Offsets"] else 0  # the dimension of sequences is that of rows outside
        terms = [constant(0, (whole, *spec.shape[rows:]), spec.dtype) for spec in inner]
        return (
            {**given, "Steps": [*given["Steps"], *terms]},
            {**attributes, "sub_block": self._step},
        )

    def _step(self, arguments: Sequence[ProgramValue]) -> list[ProgramValue]:
        end = self.steps + len(self.ops)
        terms = {
            op.writes[0]: term
            for op, term in zip(self.ops, arguments[self.steps : end], strict=True)
        }
        values = self.block.evaluated([*arguments[: self.steps], *arguments[end:]], terms)
        indices = [values[self._id(op, "Ids")] for op in self.ops]
        return [*[values[k] for k in self.block.block.results], *indices]

    @staticmethod
    def _id(op: Operator, slot: str) -> int:
        (number,) = op.inputs[slot] or ()
        return number

    def gradients(
        self, given: Values, terms: Sequence[Any], indices: Sequence[Any]
    ) -> dict[int, ProgramValue]:
        """Return the gradients of tables by position, from those of the terms and the indices."""
        found: dict[int, list[ProgramValue]] = {}
        for op, k, term, ids in zip(self.ops, self.tables, terms, indices, strict=True):
            made = lookup_gradient(given["X"][k], ids, term, **op.attributes)
            found.setdefault(k, []).append(made["W"])
        return {k: added(values) for k, values in found.items()}


def row_reads(forward: OpInfo, given: Values, attributes: Mapping[str, Any]) -> RowReads | None:
    """Return the sparse embeddings of a recurrence; None for other operators and without any.

    Blocks with random draws are left out: their results are those of the forward operator.
    """
    if forward.type != "recurrent" or not given["X"]:
        return None
    function: BlockFunction = attributes["sub_block"]
    block, steps = function.block, len(given["Steps"])
    first = steps + len(given["Boot"])
    places = {k: at for at, k in enumerate([*block.parameters.values()][first:])}
    uses = Counter([k for op in block.ops for k in op.reads] + block.results)
    lookups = [op for op in block.ops if op.type == "lookup_table" and op.attributes["is_sparse"]]
    own = Counter([RowReads._id(op, "W") for op in lookups])
    batch = given["Offsets"][0].shape[0] - 1 if given["Offsets"] else None
    ops = []
    for op in lookups:
        table, shape = RowReads._id(op, "W"), function.program.values[op.writes[0]].spec.shape
        has_rows = batch is None or shape[0] == batch
        if table in places and own[table] == uses[table] and has_rows:
            ops.append(op)
    if not ops or has_draws(function.program, function.index):
        return None
    return RowReads(function, ops, [places[RowReads._id(op, "W")] for op in ops], steps)


def has_draws(program: Program, index: int) -> bool:
    """Return True if an operator of a block, or of one inside of it, draws random numbers."""
    for op in program.blocks[index].ops:
        inner = [a.name for a in op.info.proto.attributes if a.type == "block"]
        if "seed" in op.attributes or any(has_draws(program, op.attributes[n]) for n in inner):
            return True
    return False
