"""Control flow as operators with blocks: loops, branches, recurrences.

A block is a Python context in which layers add operators. The variables of outer blocks that it
writes are the carries of a loop and the results of a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...op_graph.core.source_info import user_call
from .creators import op
from .program import Block, Var, default_main_program
from .registry import ProgramError
from .values import Spec


@dataclass(eq=False)
class BlockGuard:
    """The context of a new inner block; ``close`` adds its operator when it is complete."""

    close: Callable[[Block], None]
    is_closed: bool = False
    inner: Block | None = None

    def __enter__(self) -> Block:
        self.inner = default_main_program().create_block()
        return self.inner

    def checked(self, what: str, place: str) -> Block:
        """Return the block; raise ``ProgramError`` unless layers add operators to it now."""
        if self.inner is None or default_main_program().current_block() is not self.inner:
            raise ProgramError(f"{user_call(what)}: it belongs into the block of {place}")
        return self.inner

    def __exit__(self, error: type | None, *details: object) -> None:
        assert self.inner is not None
        program = self.inner.program
        while program.current_block() is not self.inner.parent:  # a failure left more blocks open
            program.rollback()
        try:
            if error is None:
                self.close(self.inner)
                self.is_closed = True
        finally:
            if not self.is_closed:
                del program.blocks[self.inner.index :]  # it and those inside of it


def _append(inner: Block, type: str, inputs: Mapping[str, Any], **attributes: Any) -> None:
    """Add the operator that has a complete block: it writes what the block writes."""
    names, written = list(inner.parameters), inner.written
    inner.results = [inner.names[name] for name in written]
    carried = [names.index(name) for name in written]
    default_main_program().current_block().append_op(
        type,
        {**inputs, "X": names},
        {"Out": written},
        {"sub_block": inner.index, "carried": carried, **attributes},
    )


@dataclass(eq=False)
class While:
    """A loop that runs its block while ``cond``, a variable of one bool, is true.

    The block writes the condition again. The carries are the outer variables that it writes; each
    keeps its shape. Give ``max_steps`` if you know a bound: up to 512 the gradient computes no step
    again. With a bound the gradient of a sparse embedding has the rows of ``max_steps`` steps, and
    the gradient keeps what each of them reads.
    """

    cond: Var
    max_steps: int | None = None

    def block(self) -> BlockGuard:
        """Return the context of the body of the loop."""
        return BlockGuard(self._close)

    def _close(self, inner: Block) -> None:
        name = self.cond.name
        if name not in inner.written:
            raise ProgramError(
                f"{user_call('While')}: the block does not write the condition {name!r}, so the "
                f"loop would not end; write it again, as with layers.less_than(i, n, Out={name!r})"
            )
        condition = inner.written.index(name)
        limit = -1 if self.max_steps is None else self.max_steps
        _append(inner, "while", {}, condition=condition, max_steps=limit)


@dataclass(eq=False)
class ConditionalBlock:
    """A block that runs if ``cond``, a variable of one bool, is true.

    The outer variables that it writes have values before it, which they keep otherwise.
    """

    cond: Var

    def block(self) -> BlockGuard:
        """Return the context of what runs if the condition is true."""
        return BlockGuard(lambda inner: _append(inner, "conditional_block", {"Cond": self.cond}))


class Switch:
    """Blocks of ``case(cond)`` and ``default()``, of which the first runs whose condition is true.

    ``with Switch() as switch`` groups them.
    """

    _rest: Var | None = None  # true if no condition was true so far

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *details: object) -> None:
        """End the branches."""

    def case(self, cond: Var) -> BlockGuard:
        """Return the context of what runs if the condition is true, and those before were false."""
        before, other = self._rest, op.logical_not(cond)
        self._rest = other if before is None else op.logical_and(before, other)
        return ConditionalBlock(cond if before is None else op.logical_and(before, cond)).block()

    def default(self) -> BlockGuard:
        """Return the context of what runs if all conditions were false."""
        if self._rest is None:
            raise ProgramError(f"{user_call('default')}: there is no case before it; add one first")
        return ConditionalBlock(self._rest).block()


class IfElse:
    """Two branches, between which ``cond`` chooses for each row of a batch.

    ``cond`` has the shape (N) or (N, 1). Both branches run on all rows; a branch treats each row by
    itself, and calling the object returns the merged outputs.
    """

    def __init__(self, cond: Var) -> None:
        self.cond, self._blocks = cond, dict[str, Block]()
        self._guard = BlockGuard(lambda inner: None)
        self._rows: dict[str, list[str]] = {"true": [], "false": []}

    def true_block(self) -> BlockGuard:
        """Return the context of the branch of rows for which the condition is true."""
        self._guard = BlockGuard(lambda inner: self._blocks.update(true=inner))
        return self._guard

    def false_block(self) -> BlockGuard:
        """Return the context of the branch of the other rows."""
        self._guard = BlockGuard(lambda inner: self._blocks.update(false=inner))
        return self._guard

    def input(self, x: Var) -> Var:
        """Return the rows of a variable that the branch is for."""
        what = user_call("input")
        block = self._guard.checked("input", "a branch")
        if not x.shape or x.shape[0] != self.cond.shape[0]:
            raise ProgramError(
                f"{what}: {x} has other rows than the condition {self.cond}; variables that are "
                "the same for all rows are used without input()"
            )
        block.value_of(x.name, what)
        self._rows["false" if "true" in self._blocks else "true"].append(x.name)
        return x

    def output(self, *outs: Var) -> None:
        """State the results of the branch, by rows; both branches have as many."""
        what = user_call("output")
        block = self._guard.checked("output", "a branch")
        block.results += [block.value_of(each.name, what) for each in outs]

    def __call__(self) -> list[Var]:
        """Add the operator, and return its outputs."""
        what = user_call("IfElse")
        counts = [len(block.results) for block in self._blocks.values()]
        if len(counts) != 2 or counts[0] != counts[1] or not counts[0]:
            raise ProgramError(
                f"{what}: it needs both branches with equally many outputs, and has "
                f"{' and '.join(map(str, counts)) or 'none'}; call output() in each"
            )
        given: dict[str, Any] = {}
        for branch, slot in (("true", "X"), ("false", "Y")):
            block = self._blocks[branch]
            _refuse_writes(block, what, "return it by output()")
            given[slot] = names = list(block.parameters)
            given[f"{branch}_rows"] = [names.index(name) for name in self._rows[branch]]
            given[f"{branch}_block"] = block.index
        return list(op.if_else(self.cond, **given))


def _refuse_writes(block: Block, what: str, cure: str) -> None:
    if block.written:
        raise ProgramError(f"{what}: the block writes {block.written[0]!r} of an outer one; {cure}")


@dataclass(eq=False)
class StaticRNN:
    """A recurrence over the first dimension of its step inputs, which all have the same length.

    In the block of ``step()`` call ``step_input``, ``memory``, ``update_memory`` and ``output``;
    calling the object afterwards returns the outputs of all steps, stacked. ``last`` has the
    memories after the last step.
    """

    is_reverse: bool = False
    last: list[Var] = field(default_factory=list, init=False)
    # By the name of the variable inside: the whole of a step input, and the first of a memory.
    _steps: dict[str, Var] = field(default_factory=dict, init=False)
    _memories: dict[str, Var] = field(default_factory=dict, init=False)
    _updates: dict[str, Var] = field(default_factory=dict, init=False)
    _outputs: list[Var] = field(default_factory=list, init=False)
    _guard: BlockGuard = field(default=BlockGuard(lambda inner: None), init=False)

    def step(self) -> BlockGuard:
        """Return the context of a step."""
        self._guard = BlockGuard(self._close)
        return self._guard

    def _close(self, inner: Block) -> None:
        what = user_call(type(self).__name__)
        missing = [name for name in self._memories if name not in self._updates]
        if missing or not self._steps:
            cure = f"call update_memory for {missing[0]!r}" if missing else "call step_input"
            raise ProgramError(f"{what}: the step is not complete; {cure}")
        _refuse_writes(inner, what, "make it a memory")
        updates = [self._updates[name] for name in self._memories]
        inner.results = [inner.value_of(v.name, what) for v in (*updates, *self._outputs)]
        first = [*self._steps, *self._memories]
        captured = [name for name in inner.parameters if name not in first]
        inner.parameters = {name: inner.parameters[name] for name in (*first, *captured)}
        self._results, self.last = op.recurrent(
            [*self._steps.values()], [*self._memories.values()], captured, *self._sequences(),
            sub_block=inner.index, is_reverse=self.is_reverse,
        )  # fmt: skip

    def _sequences(self) -> tuple[Var, ...]:
        """Return the offsets and step numbers of the sequences whose rows are the steps."""
        return ()

    def step_input(self, x: Var) -> Var:
        """Return the part of a variable at the step."""
        return self._parameter(x, x.spec.shape[1:], self._steps)

    def memory(
        self, init: Var | None = None, shape: Sequence[int] | None = None, init_value: float = 0.0
    ) -> Var:
        """Return the memory of the step before, at first ``init``.

        Without ``init`` each row of the batch of the first step input begins as ``init_value`` in
        the ``shape`` of a row.
        """
        if init is None:
            what = user_call("memory")
            if shape is None or not self._steps:
                raise ProgramError(f"{what}: give init=, or shape= of a row after a step_input")
            like, position = self._batch()
            attributes = {"shape": [-1, *shape], "value": init_value, "input_dim_idx": position}
            init = self._before("fill_constant_batch_size_like", {"Input": like}, attributes)
        return self._parameter(init, init.spec.shape, self._memories)

    def _batch(self) -> tuple[Any, int]:
        """Return a variable and its dimension that has the length of a batch."""
        return next(iter(self._steps.values())), 1

    def _before(self, type: str, inputs: Any, attributes: Any = None) -> Var:
        """Add an operator before the recurrence; return its output."""
        outer = self._guard.checked("memory", "a step").parent
        assert outer is not None
        name = outer.program.unique_name(type)
        outer.append_op(type, inputs, {"Out": name}, attributes)
        return outer.var(name)

    def _parameter(self, outer: Var, shape: Sequence[Any], table: dict[str, Var]) -> Var:
        """Declare the variable of a step that stands for a part of ``outer``."""
        what = "step_input" if table is self._steps else "memory"
        block = self._guard.checked(what, "a step")
        name = block.program.unique_name(f"{outer.name}.step")
        made: Var = block.create_var(name)
        spec = Spec(tuple(shape), outer.dtype)
        number = block.program.add_value(name, spec, f"the part of {outer.name} at a step")
        block.names[name] = block.parameters[name] = number
        table[name] = outer
        return made

    def update_memory(self, memory: Var, value: Var) -> None:
        """State the memory of the next step."""
        if memory.name not in self._memories or not memory.spec.fits(value.spec):
            raise ProgramError(
                f"{user_call('update_memory')}: {memory} is updated by {value}; it needs a memory "
                "of this recurrence, and a value of its shape and dtype"
            )
        self._updates[memory.name] = value

    def output(self, *outs: Var) -> None:
        """State results of a step, which the recurrence stacks along its steps."""
        self._guard.checked("output", "a step")
        self._outputs += outs

    step_output = output

    def __call__(self) -> Any:
        """Return the stacked outputs: one variable, or a list."""
        return self._results[0] if len(self._results) == 1 else self._results


class DynamicRNN(StaticRNN):
    """A recurrence over the rows of sequences of different lengths; see ``StaticRNN``.

    Step inputs are rows of the sequences of one batch, such as data with ``lod_level=1``; so are
    its results. A sequence keeps its memories after its last row. ``last`` has them, one row for
    each sequence.
    """

    block = StaticRNN.step

    def step_input(self, x: Var) -> Var:
        """Return one row for each sequence of a variable."""
        offsets, _ = x.block.program.sequence_of(x, user_call("step_input"))
        shape = (offsets.spec.shape[0] - 1, *x.spec.shape[1:])
        return self._parameter(x, shape, self._steps)

    def static_input(self, x: Var) -> Var:
        """Return a variable that has the same value in each step."""
        return x

    def _batch(self) -> tuple[Any, int]:
        return self._before("sequence_lengths", {"Offsets": self._sequences()[0]}), 0

    def _sequences(self) -> tuple[Var, ...]:
        whole = next(iter(self._steps.values()))
        return whole.block.program.sequence_of(whole, "")
