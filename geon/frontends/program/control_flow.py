"""Control flow as operators with blocks: loops, branches, recurrences, arrays of tensors.

A block is a Python context in which layers add operators. The variables of outer blocks that it
writes are the carries of a loop and the results of a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...op_graph.core.source_info import user_call
from .creators import op
from .program import Block, ProgramError, Var, default_main_program


def _close(inner: Block, type: str, inputs: Mapping[str, Any], **attributes: Any) -> None:
    """Add the operator of a complete block around it: it writes what the block writes."""
    names = list(inner.parameters)
    carried = [names.index(name) for name in inner.written]
    inner.results = [inner.names[name] for name in inner.written]
    assert inner.parent is not None
    inner.parent.append_op(
        type,
        {**inputs, "X": names},
        {"Out": inner.written},
        {"sub_block": inner.index, "carried": carried, **attributes},
    )


class While:
    """A loop that runs its block while ``cond``, a variable of one bool, is true.

    The block writes the condition again. The carries are the outer variables that it writes; each
    keeps its shape. Give ``max_steps`` if you know a bound: up to 512 the gradient computes no step
    again.
    """

    def __init__(self, cond: Var, max_steps: int | None = None) -> None:
        self.cond, self.max_steps = cond, max_steps

    @contextmanager
    def block(self) -> Iterator[Block]:
        """Context of the body of the loop."""
        what = user_call("While")
        with default_main_program().inner_block() as inner:
            yield inner
        name = self.cond.name
        if name not in inner.written:
            raise ProgramError(
                f"{what}: the block does not write the condition {name!r}, so the loop would not "
                f"end; write it again in the block, as with layers.less_than(i, n, Out={name!r})"
            )
        condition = inner.written.index(name)
        _close(inner, "while", {}, condition=condition, max_steps=self.max_steps)


class ConditionalBlock:
    """A block that runs if ``cond``, a variable of one bool, is true.

    The outer variables that it writes have values before it, which they keep otherwise.
    """

    def __init__(self, cond: Var) -> None:
        self.cond = cond

    @contextmanager
    def block(self) -> Iterator[Block]:
        """Context of what runs if the condition is true."""
        with default_main_program().inner_block() as inner:
            yield inner
        _close(inner, "conditional_block", {"Cond": self.cond})


class Switch:
    """Blocks of which the first runs whose condition is true::

    with Switch() as switch:
        with switch.case(step < 100):
            layers.assign(slow, Out=rate)
        with switch.default():
            layers.assign(fast, Out=rate)
    """

    def __init__(self) -> None:
        self._none: Var | None = None  # true if no condition was true so far

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *details: object) -> None:
        """End the branches."""

    @contextmanager
    def case(self, cond: Var) -> Iterator[Block]:
        """Context of what runs if the condition is true, and those before were false."""
        first = self._none
        chosen = cond if first is None else op.logical_and(first, cond)
        other = op.logical_not(cond)
        self._none = other if first is None else op.logical_and(first, other)
        with ConditionalBlock(chosen).block() as inner:
            yield inner

    @contextmanager
    def default(self) -> Iterator[Block]:
        """Context of what runs if all conditions were false."""
        if self._none is None:
            raise ProgramError(f"{user_call('default')}: there is no case before it; add one first")
        with ConditionalBlock(self._none).block() as inner:
            yield inner


class IfElse:
    """Two branches, between which ``cond`` chooses for each row of a batch.

    ``cond`` has the shape (N) or (N, 1). Both branches run on all rows; a branch treats each row by
    itself, and calling the object returns the merged outputs.
    """

    def __init__(self, cond: Var) -> None:
        self.cond = cond
        self._blocks: dict[bool, Block] = {}
        self._rows: dict[bool, list[str]] = {True: [], False: []}
        self._branch: bool | None = None

    @contextmanager
    def _run(self, branch: bool) -> Iterator[Block]:
        with default_main_program().inner_block() as inner:
            self._branch = branch
            yield inner
        self._branch, self._blocks[branch] = None, inner

    def true_block(self) -> Any:
        """Return the context of the branch of rows for which the condition is true."""
        return self._run(True)

    def false_block(self) -> Any:
        """Return the context of the branch of the other rows."""
        return self._run(False)

    def input(self, x: Var) -> Var:
        """Return the rows of a variable that the branch is for."""
        what = user_call("input")
        block = self._inside(what)
        if not x.shape or x.shape[0] != self.cond.shape[0]:
            raise ProgramError(
                f"{what}: {x} has other rows than the condition {self.cond}; variables that are "
                "the same for all rows are used without input()"
            )
        block.value_of(x.name, what)
        self._rows[bool(self._branch)].append(x.name)
        return x

    def output(self, *outs: Var) -> None:
        """State the results of the branch, by rows; both branches have as many."""
        what = user_call("output")
        block = self._inside(what)
        block.results += [block.value_of(each.name, what) for each in outs]

    def _inside(self, what: str) -> Block:
        if self._branch is None:
            raise ProgramError(f"{what}: it belongs into true_block() or false_block()")
        return default_main_program().current_block()

    def __call__(self) -> list[Var]:
        """Add the operator, and return its outputs."""
        what = user_call("IfElse")
        counts = [len(block.results) for block in self._blocks.values()]
        if len(counts) != 2 or counts[0] != counts[1] or not counts[0]:
            raise ProgramError(
                f"{what}: it needs both branches with equally many outputs, and has "
                f"{' and '.join(map(str, counts)) or 'none'}; call output() in each"
            )
        given = {}
        for branch, block in self._blocks.items():
            if block.written:
                raise ProgramError(
                    f"{what}: a branch writes {block.written[0]!r} of an outer block; return it "
                    "by output()"
                )
            given[branch] = list(block.parameters)
        rows = {b: [given[b].index(name) for name in self._rows[b]] for b in given}
        return list(
            op.if_else(
                self.cond, given[True], given[False],
                true_block=self._blocks[True].index, false_block=self._blocks[False].index,
                true_rows=rows[True], false_rows=rows[False],
            )
        )  # fmt: skip


class StaticRNN:
    """A recurrence over the first dimension of its step inputs, which all have the same length::

    rnn = StaticRNN()
    with rnn.step():
        x_t = rnn.step_input(x)              # x is (T, N, D)
        old = rnn.memory(init=h0)            # (N, H)
        new = layers.tanh(layers.elementwise_add(layers.mul(x_t, w), layers.mul(old, u)))
        rnn.update_memory(old, new)
        rnn.output(new)
    hidden = rnn()                           # (T, N, H)
    """

    def __init__(self, is_reverse: bool = False) -> None:
        self.is_reverse = is_reverse
        self._steps: dict[str, Var] = {}  # by the name of the inner variable: the whole
        self._memories: dict[str, Var] = {}  # by the name of the inner variable: the first value
        self._updates: dict[str, Var] = {}
        self._outputs: list[Var] = []
        self._block: Block | None = None
        self._results: list[Var] = []
        self.last: list[Var] = []  # the memories after the last step

    @contextmanager
    def step(self) -> Iterator[Block]:
        """Context of a step."""
        with default_main_program().inner_block() as inner:
            self._block = inner
            yield inner
            self._finish(inner)
        captured = list(inner.parameters)[len(self._steps) + len(self._memories) :]
        self._results, self.last = op.recurrent(
            [*self._steps.values()], [*self._memories.values()], captured,
            **self._lengths(), sub_block=inner.index, is_reverse=self.is_reverse,
        )  # fmt: skip

    def _finish(self, inner: Block) -> None:
        what = user_call(type(self).__name__)
        missing = [name for name in self._memories if name not in self._updates]
        if missing or not self._steps:
            cure = f"call update_memory for {missing[0]!r}" if missing else "call step_input"
            raise ProgramError(f"{what}: the step is not complete; {cure}")
        if inner.written:
            raise ProgramError(
                f"{what}: the step writes {inner.written[0]!r} of an outer block; make it a memory"
            )
        first = [*self._steps, *self._memories]
        names = [*first, *[name for name in inner.parameters if name not in first]]
        inner.parameters = {name: inner.parameters[name] for name in names}
        results = [*[self._updates[name] for name in self._memories], *self._outputs]
        inner.results = [inner.value_of(each.name, what) for each in results]

    def _lengths(self) -> dict[str, Any]:
        return {}

    def step_input(self, x: Var) -> Var:
        """Return the part of a variable at the step."""
        made = self._parameter(x, x.spec.shape[1:], "step_input")
        self._steps[made.name] = x
        return made

    def memory(
        self,
        init: Var | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Var | None = None,
        init_value: float = 0.0,
    ) -> Var:
        """Return the memory of the step before, at first ``init``.

        Without ``init`` each row of the batch begins as ``init_value`` in the ``shape`` of a row;
        ``batch_ref`` is a step input, by default the first.
        """
        what = user_call("memory")
        if init is None:
            if shape is None or not self._steps:
                raise ProgramError(f"{what}: give init=, or shape= of a row after a step_input")
            whole = self._steps[batch_ref.name if batch_ref else next(iter(self._steps))]
            init = self._boot(whole, list(shape), init_value)
        made = self._parameter(init, init.spec.shape, "memory")
        self._memories[made.name] = init
        return made

    def _boot(self, whole: Var, shape: list[int], value: float) -> Var:
        return self._outside(Input=whole, shape=[-1, *shape], value=value, input_dim_idx=1)

    def _outside(self, **given: Any) -> Var:
        """Return a constant made before the recurrence, with the length of a batch."""
        block = self._inside("memory")
        assert block.parent is not None
        attributes = {key: value for key, value in given.items() if key != "Input"}
        name = block.program.unique_name("memory")
        block.parent.append_op(
            "fill_constant_batch_size_like",
            {"Input": given["Input"]},
            {"Out": name},
            {**attributes, "output_dim_idx": 0},
        )
        return block.parent.var(name)

    def _parameter(self, outer: Var, shape: Sequence[Any], what: str) -> Var:
        block = self._inside(what)
        name = block.program.unique_name(f"{outer.name}.{what}")
        made: Var = block.create_var(name)
        spec = type(outer.spec)(tuple(shape), outer.dtype)
        writer = f"{what} of {outer.name}"
        block.names[name] = block.parameters[name] = block.program.add_value(name, spec, writer)
        return made

    def _inside(self, what: str) -> Block:
        current = default_main_program().current_block()
        if self._block is None or current is not self._block:
            raise ProgramError(f"{user_call(what)}: it belongs into the block of a step")
        return current

    def update_memory(self, memory: Var, value: Var) -> None:
        """State the memory of the next step."""
        self._inside("update_memory")
        if memory.name not in self._memories:
            raise ProgramError(
                f"{user_call('update_memory')}: {memory.name!r} is no memory of the recurrence; "
                f"it has {', '.join(self._memories) or 'none'}"
            )
        if memory.spec != value.spec:
            raise ProgramError(
                f"{user_call('update_memory')}: memory {memory} is updated by {value}; both need "
                "one shape and dtype"
            )
        self._updates[memory.name] = value

    def output(self, *outs: Var) -> None:
        """State results of a step, which the recurrence stacks along its steps."""
        self._inside("output")
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
        made = self._parameter(x, (offsets.spec.shape[0] - 1, *x.spec.shape[1:]), "step_input")
        self._steps[made.name] = x
        return made

    def static_input(self, x: Var) -> Var:
        """Return a variable that has the same value in each step."""
        return x

    def _boot(self, whole: Var, shape: list[int], value: float) -> Var:
        offsets, _ = whole.block.program.sequence_of(whole, "")
        block = self._inside("memory")
        assert block.parent is not None
        name = block.program.unique_name("lengths")
        block.parent.append_op("sequence_lengths", {"Offsets": offsets}, {"Out": name})
        return self._outside(
            Input=block.parent.var(name), shape=[-1, *shape], value=value, input_dim_idx=0
        )

    def _lengths(self) -> dict[str, Any]:
        whole = next(iter(self._steps.values()))
        offsets, positions = whole.block.program.sequence_of(whole, "")
        return {"Offsets": offsets, "Positions": positions}
