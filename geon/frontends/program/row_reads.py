"""Tables that only sparse embeddings of a block read: their gradients as selected rows.

The derivative of a block operator by a table that its block reads is a whole table. Here each
embedding of the block gets a term of 0 as a further input of the operator, whose gradient has the
rows of all executions of the block, and its indices become a further result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import geon

from ...op_graph.core.traversal import deep_order
from ...op_graph.random.streams import RANDOM_BITS
from ..positional.elementwise import elementwise
from ..positional.picking import numbers
from ..positional.programs import cast
from ..positional.reductions import reduce
from ..positional.regions import Sliced, scan
from ..positional.values import Size, array, as_array
from .evaluation import BlockFunction, Values, compute
from .operators.control import fitting, like, loop_of, tensors_of
from .operators.networks import lookup_gradient
from .program import Operator, Program
from .registry import OpInfo
from .values import ProgramValue, added, chosen, constant, parts


@dataclass(frozen=True, eq=False)
class RowReads:
    """The embeddings of a block whose tables nothing else reads.

    ``tables`` are the positions of their tables in the slot X, and ``first`` is the position of the
    terms in the slot ``slot`` of the inputs. A subclass says how the operator uses the terms.
    """

    block: BlockFunction
    ops: list[Operator]
    tables: list[int]
    first: int

    slot = "X"

    @property
    def end(self) -> int:
        """The position after the terms."""
        return self.first + len(self.ops)

    def extended(self, given: Values) -> Values:
        """Return the inputs of the operator with terms: zeros."""
        terms = self.zeros(given)
        return {**given, self.slot: [*given[self.slot], *terms]}

    def zeros(self, given: Values) -> list[ProgramValue]:
        """Return the terms, over all executions of the block."""
        return self.like_rows(())

    def like_rows(self, prefix: Sequence[Size], begin: int = 0) -> list[ProgramValue]:
        """Return zeros over ``prefix`` and the dimensions of the rows from ``begin`` on."""
        specs = [self.block.program.values[op.writes[0]].spec for op in self.ops]
        return [constant(0, (*prefix, *spec.shape[begin:]), spec.dtype) for spec in specs]

    def computed(
        self, forward: OpInfo, given: Values, attributes: Mapping[str, Any]
    ) -> tuple[Values, list[Any]]:
        """Return the outputs of the operator for extended inputs, and the indices."""
        raise NotImplementedError

    def ran(
        self, arguments: Sequence[ProgramValue], terms: Sequence[ProgramValue]
    ) -> tuple[list[ProgramValue], list[Any]]:
        """Return the results of the block with terms added to its embeddings, and the indices."""
        own = {op.writes[0]: term for op, term in zip(self.ops, terms, strict=True)}
        values = self.block.evaluated(arguments, own)
        indices: list[Any] = [values[_id(op, "Ids")] for op in self.ops]
        results = [values[k] for k in self.block.block.results]
        return results, [cast(each, "int64") for each in indices]

    def repeats_draws(self, found: Values) -> bool:
        """Return True if outputs draw by the seeds of operators alone, so as those of the forward.

        A stream of a user's own has other draws when the block is evaluated again.
        """
        values = [value for listed in found.values() for value in listed or ()]
        roots = [part.tensor for value in values for part in parts(value)]
        draws = [op for op in deep_order(roots) if op.primitive is RANDOM_BITS]
        return {op.attrs.seed for op in draws} <= seeds_of(self.block.program, self.block.index)

    def gradients(
        self, given: Values, found: Values, indices: Sequence[Any]
    ) -> dict[int, ProgramValue]:
        """Return the gradients of tables by position; take those of the terms out of ``found``."""
        terms = found[self.slot][self.first : self.end]
        found[self.slot] = found[self.slot][: self.first]
        tables: dict[int, list[ProgramValue]] = {}
        for op, k, term, ids in zip(self.ops, self.tables, terms, indices, strict=True):
            made = lookup_gradient(given["X"][k], ids, term, **op.attributes)
            tables.setdefault(k, []).append(made["W"])
        return {k: added(values) for k, values in tables.items()}


class StepReads(RowReads):
    """The embeddings of a recurrence: terms are step inputs, and indices results of steps."""

    slot = "Steps"

    def zeros(self, given: Values) -> list[ProgramValue]:
        """Return the terms, over all steps."""
        # With offsets the dimension of sequences is that of rows outside.
        return self.like_rows(given["Steps"][0].shape[:1], 1 if given["Offsets"] else 0)

    def computed(
        self, forward: OpInfo, given: Values, attributes: Mapping[str, Any]
    ) -> tuple[Values, list[Any]]:
        """Return the outputs of the recurrence for extended inputs, and the indices."""

        def step(arguments: Sequence[ProgramValue]) -> list[ProgramValue]:
            own = [*arguments[: self.first], *arguments[self.end :]]
            results, indices = self.ran(own, arguments[self.first : self.end])
            return [*results, *indices]

        found = compute(forward, given, {**attributes, "sub_block": step})
        at = len(found["Out"]) - len(self.ops)
        return {**found, "Out": found["Out"][:at]}, found["Out"][at:]


class BranchReads(RowReads):
    """The embeddings of a branch: terms are variables, and indices are results."""

    def computed(
        self, forward: OpInfo, given: Values, attributes: Mapping[str, Any]
    ) -> tuple[Values, list[Any]]:
        """Return the outputs of the branch for extended inputs, and the indices, 0 without it."""
        shapes = [self.block.program.values[_id(op, "Ids")].spec.shape for op in self.ops]
        unread = [constant(0, shape, "int64") for shape in shapes]

        def run(arguments: Sequence[ProgramValue]) -> list[ProgramValue]:
            terms = arguments[self.first : self.end]
            results, indices = self.ran(arguments[: self.first], terms)
            return [*results, *indices]

        carried = [*attributes["carried"], *range(self.end, self.end + len(unread))]
        extended = {**given, "X": [*given["X"], *unread]}
        found = compute(forward, extended, {**attributes, "sub_block": run, "carried": carried})
        at = len(found["Out"]) - len(self.ops)
        return {"Out": found["Out"][:at]}, found["Out"][at:]


@dataclass(frozen=True, eq=False)
class LoopReads(RowReads):
    """The embeddings of a loop of at most ``limit`` steps, of which the first ones run.

    As many steps of a scan as the loop took read the terms, and stack the indices.
    """

    limit: int

    def zeros(self, given: Values) -> list[ProgramValue]:
        """Return the terms, over all steps."""
        return self.like_rows((self.limit,))

    def computed(
        self, forward: OpInfo, given: Values, attributes: Mapping[str, Any]
    ) -> tuple[Values, list[Any]]:
        """Return the outputs of the loop for extended inputs, and the indices.

        Those of steps that did not run are the highest of the others, or 0.
        """
        whole, terms = given["X"][: self.first], given["X"][self.first :]
        carried = attributes["carried"]
        first, test, body = loop_of(whole, self.block, attributes["condition"], carried)
        begun = tensors_of(first)
        _, count = geon.while_loop(test, body, begun, self.limit, count=True)

        def step(old: list[Any], rows: list[Any], _: Any) -> tuple[list[Any], list[Any]]:
            held = dict(zip(carried, like(first, [each.tensor for each in old]), strict=True))
            results, indices = self.ran([held.get(k, v) for k, v in enumerate(whole)], rows)
            pairs = zip(fitting(results, first), old, strict=True)
            return [array(tensor, each.dims) for tensor, each in pairs], indices

        dims = [part.dims for value in first for part in parts(value)]
        carries = [array(tensor, each) for tensor, each in zip(begun, dims, strict=True)]
        last, indices = scan(step, carries, [Sliced(term) for term in terms], steps=count)
        ran = elementwise(geon.greater, array(count, ()), numbers(self.limit))
        filled = [chosen(ran, i, reduce(geon.max, i, range(len(i.shape)), False)) for i in indices]
        return {"Out": like(first, [each.tensor for each in map(as_array, last)])}, filled


def _id(op: Operator, slot: str) -> int:
    (number,) = op.inputs[slot] or ()
    return number


def row_reads(forward: OpInfo, given: Values, attributes: Mapping[str, Any]) -> RowReads | None:
    """Return the sparse embeddings of a block operator; None for others and without any.

    Loops without a limit, whose rows have no number, and tables that the block writes are left out.
    """
    if forward.type not in ("recurrent", "while", "conditional_block") or not given["X"]:
        return None
    function: BlockFunction = attributes["sub_block"]
    block, first, batch = function.block, 0, None
    limit = int(attributes.get("max_steps", 0))
    if limit < 0:
        return None
    if forward.type == "recurrent":
        first = len(given["Steps"]) + len(given["Boot"] or ())
        batch = given["Offsets"][0].shape[0] - 1 if given["Offsets"] else None
    names = [*block.parameters.items()][first:]
    places = {k: at for at, (name, k) in enumerate(names) if block.names[name] == k}
    uses = Counter([k for op in block.ops for k in op.reads] + block.results)
    lookups = [op for op in block.ops if op.type == "lookup_table" and op.attributes["is_sparse"]]
    own = Counter([_id(op, "W") for op in lookups])
    ops = []
    for op in lookups:
        table, shape = _id(op, "W"), function.program.values[op.writes[0]].spec.shape
        has_rows = batch is None or shape[0] == batch
        if table in places and own[table] == uses[table] and has_rows:
            ops.append(op)
    if not ops:
        return None
    tables = [places[_id(op, "W")] for op in ops]
    if forward.type == "while":
        return LoopReads(function, ops, tables, len(given["X"]), limit)
    reads = StepReads if forward.type == "recurrent" else BranchReads
    return reads(function, ops, tables, len(given[reads.slot]))


def seeds_of(program: Program, index: int) -> set[int]:
    """Return the seeds of the operators of a block, and of blocks inside of it."""
    found = set()
    for op in program.blocks[index].ops:
        found |= {op.attributes["seed"]} if "seed" in op.attributes else set()
        for each in op.info.proto.attributes:
            found |= seeds_of(program, op.attributes[each.name]) if each.type == "block" else set()
    return found
