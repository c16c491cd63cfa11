"""Tables that only sparse embeddings of a block read: their gradients as selected rows.

The derivative of a block operator by a table that its block reads is a whole table. Here each
embedding of the block gets a term of 0 as a further input of the operator, whose gradient has the
rows of all executions of the block, and its indices become a further result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import geon

from ...op_graph.core.traversal import deep_order
from ...op_graph.random.streams import RANDOM_BITS
from ..positional.elementwise import elementwise
from ..positional.picking import numbers
from ..positional.programs import cast
from ..positional.reductions import reduce
from ..positional.regions import Sliced, scan
from ..positional.values import array, as_array
from .evaluation import EMPTY, BlockFunction, Values, compute
from .operators.control import fitting, like, loop_of, tensors_of
from .operators.networks import lookup_gradient
from .program import Block, Operator, Program
from .registry import OpInfo
from .values import ProgramValue, Spec, added, chosen, constant, parts


@dataclass(frozen=True, eq=False)
class Read:
    """An embedding of a block: its operator, and the specifications of its rows and indices.

    ``table`` is the id of the table in the block.
    """

    op: Operator
    table: int
    rows: Spec
    indices: Spec


@dataclass(frozen=True, eq=False)
class RowReads:
    """The embeddings of a block, and of blocks inside of it, whose tables nothing else reads.

    ``inner`` has the operators of the block that read rows, in order: embeddings with None, and
    block operators with their own reads. ``tables`` are the slots and positions of the tables, and
    ``first`` is the position of the terms in the slot ``slot`` of the inputs. A subclass says how
    the operator uses the terms.
    """

    block: BlockFunction
    inner: dict[Operator, Any]
    reads: list[Read]
    tables: list[tuple[str, int]]
    slot: str
    first: int

    @property
    def end(self) -> int:
        """The position after the terms."""
        return self.first + len(self.reads)

    def repeated(self, spec: Spec, given: Values) -> Spec:
        """Return the specification of what each execution has, of all executions together."""
        return spec

    def extended(self, given: Values) -> Values:
        """Return the inputs of the operator with terms: zeros."""
        specs = [self.repeated(each.rows, given) for each in self.reads]
        return self.with_terms(given, [constant(0, each.shape, each.dtype) for each in specs])

    def with_terms(self, given: Values, terms: Iterable[ProgramValue]) -> Values:
        """Return the inputs of the operator with terms."""
        return {**given, self.slot: [*given[self.slot], *terms]}

    def computed(
        self, forward: OpInfo, given: Values, attributes: Mapping[str, Any]
    ) -> tuple[Values, list[Any]]:
        """Return the outputs of the operator for inputs with terms, and the indices."""
        raise NotImplementedError

    def ran(
        self, arguments: Sequence[ProgramValue], terms: Sequence[ProgramValue]
    ) -> tuple[list[ProgramValue], list[Any]]:
        """Return the results of the block with terms added to its embeddings, and the indices."""
        rest, indices = iter(terms), list[Any]()

        def function(op: Operator, inner: Any) -> Callable[..., Values]:
            def row(given: Values, attributes: Mapping[str, Any]) -> Values:
                indices.append(cast(given["Ids"][0], "int64"))
                (found,) = compute(op.info, given, attributes)["Out"]
                return {"Out": [added([found, next(rest)])]}

            def block(given: Values, attributes: Mapping[str, Any]) -> Values:
                whole = inner.with_terms(given, islice(rest, len(inner.reads)))
                found, own = inner.computed(op.info, whole, attributes)
                indices.extend(own)
                return found

            return row if inner is None else block

        functions = {op: function(op, inner) for op, inner in self.inner.items()}
        return self.block.results(arguments, functions), indices

    def repeats_draws(self, found: Values) -> bool:
        """Return True if outputs draw by the seeds of operators alone, so as those of the forward.

        A stream of a user's own has other draws when the block is evaluated again.
        """
        values = [value for listed in found.values() for value in listed or ()]
        roots = [part.tensor for value in values for part in parts(value)]
        draws = [op for op in deep_order(roots) if op.primitive is RANDOM_BITS]
        return {op.attrs.seed for op in draws} <= seeds_of(self.block.program, self.block.index)

    def take_terms(self, gradients: Values) -> list[Any]:
        """Take the gradients of the terms out of those of the inputs; return them."""
        found = gradients[self.slot]
        gradients[self.slot] = found[: self.first]
        return list(found[self.first : self.end])


class StepReads(RowReads):
    """The embeddings of a recurrence: terms are step inputs, and indices results of steps."""

    def repeated(self, spec: Spec, given: Values) -> Spec:
        """Return the specification of what each step has, of all steps together."""
        # With offsets the dimension of sequences is that of rows outside.
        own = spec.shape[1 if given["Offsets"] else 0 :]
        return replace(spec, shape=(*given["Steps"][0].shape[:1], *own))

    def computed(
        self, forward: OpInfo, given: Values, attributes: Mapping[str, Any]
    ) -> tuple[Values, list[Any]]:
        """Return the outputs of the recurrence for extended inputs, and the indices."""

        def step(arguments: Sequence[ProgramValue]) -> list[ProgramValue]:
            own = [*arguments[: self.first], *arguments[self.end :]]
            results, indices = self.ran(own, arguments[self.first : self.end])
            return [*results, *indices]

        found = compute(forward, given, {**attributes, "sub_block": step})
        at = len(found["Out"]) - len(self.reads)
        return {**found, "Out": found["Out"][:at]}, found["Out"][at:]


class BranchReads(RowReads):
    """The embeddings of a branch: terms are variables, and indices are results."""

    def computed(
        self, forward: OpInfo, given: Values, attributes: Mapping[str, Any]
    ) -> tuple[Values, list[Any]]:
        """Return the outputs of the branch for extended inputs, and the indices, 0 without it."""
        unread = [constant(0, each.indices.shape, "int64") for each in self.reads]

        def run(arguments: Sequence[ProgramValue]) -> list[ProgramValue]:
            terms = arguments[self.first : self.end]
            results, indices = self.ran(arguments[: self.first], terms)
            return [*results, *indices]

        carried = [*attributes["carried"], *range(self.end, self.end + len(unread))]
        extended = {**given, "X": [*given["X"], *unread]}
        found = compute(forward, extended, {**attributes, "sub_block": run, "carried": carried})
        at = len(found["Out"]) - len(self.reads)
        return {"Out": found["Out"][:at]}, found["Out"][at:]


@dataclass(frozen=True, eq=False)
class LoopReads(RowReads):
    """The embeddings of a loop of at most ``limit`` steps, of which the first ones run.

    As many steps of a scan as the loop took read the terms, and stack the indices.
    """

    limit: int

    def repeated(self, spec: Spec, given: Values) -> Spec:
        """Return the specification of what each step has, of all steps together."""
        return replace(spec, shape=(self.limit, *spec.shape))

    def computed(
        self, forward: OpInfo, given: Values, attributes: Mapping[str, Any]
    ) -> tuple[Values, list[Any]]:
        """Return the outputs of the loop for extended inputs, and the indices.

        Those of steps that did not run are the highest of the others, or 0.
        """
        whole, terms = given["X"][: self.first], given["X"][self.first :]
        carried = attributes["carried"]
        first, test, body = loop_of(whole, self.block, attributes["condition"], carried)
        initial = tensors_of(first)
        _, count = geon.while_loop(test, body, initial, self.limit, count=True)

        def step(old: list[Any], rows: list[Any], _: Any) -> tuple[list[Any], list[Any]]:
            held = dict(zip(carried, like(first, [each.tensor for each in old]), strict=True))
            results, indices = self.ran([held.get(k, v) for k, v in enumerate(whole)], rows)
            pairs = zip(fitting(results, first), old, strict=True)
            return [array(tensor, each.dims) for tensor, each in pairs], indices

        dims = [part.dims for value in first for part in parts(value)]
        carries = [array(tensor, each) for tensor, each in zip(initial, dims, strict=True)]
        last, indices = scan(step, carries, [Sliced(term) for term in terms], steps=count)
        ran = elementwise(geon.greater, array(count, ()), numbers(self.limit))
        filled = [chosen(ran, i, reduce(geon.max, i, range(len(i.shape)), False)) for i in indices]
        return {"Out": like(first, [each.tensor for each in map(as_array, last)])}, filled


@dataclass(frozen=True, eq=False)
class EitherReads:
    """The embeddings of two branches, both of which run on all rows; see ``RowReads``.

    ``branches`` maps the attribute of each block to its embeddings.
    """

    branches: dict[str, RowReads]

    @property
    def reads(self) -> list[Read]:
        """The embeddings of both."""
        return [each for branch in self.branches.values() for each in branch.reads]

    @property
    def tables(self) -> list[tuple[str, int]]:
        """The slots and positions of their tables."""
        return [each for branch in self.branches.values() for each in branch.tables]

    def repeated(self, spec: Spec, given: Values) -> Spec:
        """Return the specification itself: there is one execution."""
        return spec

    def extended(self, given: Values) -> Values:
        """Return the inputs of the operator with terms: zeros."""
        for branch in self.branches.values():
            given = branch.extended(given)
        return given

    def with_terms(self, given: Values, terms: Iterable[ProgramValue]) -> Values:
        """Return the inputs of the operator with terms."""
        rest = iter(terms)
        for branch in self.branches.values():
            given = branch.with_terms(given, islice(rest, len(branch.reads)))
        return given

    def computed(
        self, forward: OpInfo, given: Values, attributes: Mapping[str, Any]
    ) -> tuple[Values, list[Any]]:
        """Return the outputs of the operator for inputs with terms, and the indices."""
        indices: dict[str, list[Any]] = {}

        def function(name: str, branch: RowReads) -> Callable[..., list[ProgramValue]]:
            def run(arguments: Sequence[ProgramValue]) -> list[ProgramValue]:
                own, terms = arguments[: branch.first], arguments[branch.first :]
                results, indices[name] = branch.ran(own, terms)
                return results

            return run

        blocks = {name: function(name, branch) for name, branch in self.branches.items()}
        found = compute(forward, given, {**attributes, **blocks})
        return found, [each for name in self.branches for each in indices[name]]

    def repeats_draws(self, found: Values) -> bool:
        """Return True if outputs draw by the seeds of operators alone."""
        return all(branch.repeats_draws(found) for branch in self.branches.values())

    def take_terms(self, gradients: Values) -> list[Any]:
        """Take the gradients of the terms out of those of the inputs; return them."""
        return [v for branch in self.branches.values() for v in branch.take_terms(gradients)]


AnyReads = RowReads | EitherReads


def table_gradients(
    reads: AnyReads, given: Values, gradients: Values, indices: Sequence[Any]
) -> None:
    """Replace the gradients of the terms, among those of the inputs, by those of the tables."""
    tables: dict[tuple[str, int], list[ProgramValue]] = {}
    for each, place, term, ids in zip(
        reads.reads, reads.tables, reads.take_terms(gradients), indices, strict=True
    ):
        slot, k = place
        made = lookup_gradient(given[slot][k], ids, term, **each.op.attributes)
        tables.setdefault(place, []).append(made["W"])
    for (slot, k), values in tables.items():
        gradients.setdefault(slot, [None] * len(given[slot]))[k] = added(values)


def row_reads(forward: OpInfo, given: Values, attributes: Mapping[str, Any]) -> AnyReads | None:
    """Return the sparse embeddings of a block operator; None for others and without any.

    Loops without a limit, whose rows have no number, and tables that the block writes are left out.
    """
    limit = int(attributes.get("max_steps", 0))
    if limit < 0:
        return None
    if forward.type == "if_else":
        branches = {}
        for slot, branch in (("X", "true"), ("Y", "false")):
            function = attributes[f"{branch}_block"]
            places = _places(function.block, slot, skipped=attributes[f"{branch}_rows"])
            found = _of_block(function, places)
            if found is not None:
                branches[f"{branch}_block"] = RowReads(function, *found, slot, len(given[slot]))
        return EitherReads(branches) if branches else None
    if forward.type not in ("recurrent", "while", "conditional_block"):
        return None
    function, first, batch = attributes["sub_block"], 0, None
    if forward.type == "recurrent":
        first = len(given["Steps"]) + len(given["Boot"] or ())
        batch = given["Offsets"][0].shape[0] - 1 if given["Offsets"] else None
    found = _of_block(function, _places(function.block, "X", first), batch)
    if found is None:
        return None
    if forward.type == "while":
        return LoopReads(function, *found, "X", len(given["X"]), limit)
    cls, slot = (StepReads, "Steps") if forward.type == "recurrent" else (BranchReads, "X")
    return cls(function, *found, slot, len(given[slot]))


Place = tuple[str, int]  # a slot, and a position in it


def _places(
    block: Block, slot: str, first: int = 0, skipped: Sequence[int] = ()
) -> dict[int, Place]:
    """Return the places, by id, of parameters from ``first`` on that the block does not write."""
    names = [*block.parameters.items()][first:]
    return {
        k: (slot, at)
        for at, (name, k) in enumerate(names)
        if block.names[name] == k and at not in skipped
    }


def _of_block(
    function: BlockFunction, places: Mapping[int, Place], batch: Any = None
) -> tuple[dict[Operator, Any], list[Read], list[Place]] | None:
    """Return the operators of a block that read rows, their reads, and the places of the tables.

    ``places`` are those of what may be a table; with ``batch`` rows have this first length.
    """
    block = function.block
    uses = Counter([k for op in block.ops for k in op.reads] + block.results)
    found = {op: _reads_of(function.program, op) for op in block.ops}
    while True:  # a table is left out if an operator that is left out reads it
        own = Counter(
            [k for op, (inner, reads) in found.items() for k in _covered(op, inner, reads)]
        )
        kept = {
            op: (inner, reads)
            for op, (inner, reads) in found.items()
            if reads and all(
                each.table in places and own[each.table] == uses[each.table]
                and (batch is None or each.rows.shape[0] == batch)
                for each in reads
            )
        }  # fmt: skip
        if len(kept) == len(found):
            break
        found = kept
    reads = [each for _, listed in found.values() for each in listed]
    inner = {op: own for op, (own, _) in found.items()}
    return (inner, reads, [places[each.table] for each in reads]) if reads else None


def _covered(op: Operator, inner: AnyReads | None, reads: Sequence[Read]) -> list[int]:
    """Return the tables of an operator's reads, one for each of its inputs that is a table."""
    if inner is None:
        return [each.table for each in reads]
    return [(op.inputs[slot] or ())[k] for slot, k in {*inner.tables}]


def _reads_of(program: Program, op: Operator) -> tuple[AnyReads | None, list[Read]]:
    """Return the reads of rows of an operator of a block, with those of its own blocks."""
    if op.type == "lookup_table" and op.attributes["is_sparse"]:
        table, ids = op.reads
        specs = [program.values[k].spec for k in (*op.writes, ids)]
        return None, [Read(op, table, *specs)]
    blocks = {
        each.name: BlockFunction(program, op.attributes[each.name])
        for each in op.info.proto.attributes
        if each.type == "block"
    }
    if not blocks:
        return None, []
    given: Values = {
        slot: None if ids is None else [None if k == EMPTY else program.abstract(k) for k in ids]
        for slot, ids in op.inputs.items()
    }
    inner = row_reads(op.info, given, {**op.attributes, **blocks})
    if inner is None:
        return None, []
    return inner, [
        Read(each.op, (op.inputs[slot] or ())[k], *[
            inner.repeated(spec, given) for spec in (each.rows, each.indices)
        ])
        for each, (slot, k) in zip(inner.reads, inner.tables, strict=True)
    ]  # fmt: skip


def seeds_of(program: Program, index: int) -> set[int]:
    """Return the seeds of the operators of a block, and of blocks inside of it."""
    found = set()
    for op in program.blocks[index].ops:
        found |= {op.attributes["seed"]} if "seed" in op.attributes else set()
        for each in op.info.proto.attributes:
            found |= seeds_of(program, op.attributes[each.name]) if each.type == "block" else set()
    return found
