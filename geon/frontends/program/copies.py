"""Programs made of others: clone, prune and merge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...op_graph.core.source_info import user_call
from .evaluation import EMPTY
from .executor import needed
from .operators.updates import SCHEDULES
from .program import Block, Ids, Operator, Program, ProgramError, Var
from .registry import GRAD_OP


def clone(program: Program, for_test: bool = False) -> Program:
    """Return a copy of a program.

    ``for_test`` leaves out gradient operators and what depends on them, such as optimisers, and
    sets the attribute ``is_test`` where operators have it.
    """
    if not for_test:
        made = merge(program)
        made.random_seed = program.random_seed
        return made
    trained: set[int] = set()
    kept = []
    for op in program.global_block().ops:
        is_training = op.type.endswith(GRAD_OP) or op.type in SCHEDULES
        if is_training or not trained.isdisjoint(op.reads):
            trained.update(op.writes)
        else:
            kept.append(op)
    return _subset(program, kept, for_test=True)


def prune(program: Program, targets: Sequence[Var | str]) -> Program:
    """Return the program of the operators that the targets depend on; others are left out."""
    what = user_call("prune")
    block = program.global_block()
    names = [target if isinstance(target, str) else target.name for target in targets]
    return _subset(program, needed(block.ops, [block.value_of(name, what) for name in names]))


def merge(*programs: Program) -> Program:
    """Return the program that runs others one after another.

    Each reads the persistable variables and the names of data as those before it left them.
    Raises ``ProgramError`` if a variable that a later program reads has another shape or dtype.
    """
    whole = Program()
    first = whole.global_block()
    for program in programs:
        copy, own = _Copy(program, whole), program.global_block()
        for name, k in own.parameters.items():
            if name in first.names:
                copy.values[k] = first.names[name]
                old, new = whole.values[copy.values[k]].spec, program.values[k].spec
                if old != new:
                    raise ProgramError(
                        f"{user_call('merge')}: {name!r} is {old} in one program and {new} in "
                        "another; rename one of them"
                    )
            else:
                first.parameters[name] = copy.value(k)
        copy.fill(own, first, own.ops, own.names)
        whole.sequences |= program.sequences
    return whole


def _subset(program: Program, ops: Sequence[Operator], for_test: bool = False) -> Program:
    """Return the program of some operators of the global block, with their blocks and values."""
    own, made = program.global_block(), Program()
    made.random_seed = program.random_seed
    read = {k for op in ops for k in op.reads}
    parameters = {name: k for name, k in own.parameters.items() if k in read}
    written = [k for op in ops for k in op.writes]
    names = {program.values[k].name: k for k in (*parameters.values(), *written)}
    copy, block = _Copy(program, made, for_test), made.global_block()
    block.parameters = copy.named(parameters)
    copy.fill(own, block, ops, names)
    block.variables = {name: var for name, var in block.variables.items() if name in names}
    made.sequences = {k: pair for k, pair in program.sequences.items() if pair[0] in names}
    return made


class _Copy:
    """A copy of operators of a program in another one; ``values`` maps the ids of values."""

    def __init__(self, source: Program, target: Program, for_test: bool = False) -> None:
        self.source, self.target, self.for_test = source, target, for_test
        self.values: dict[int, int] = {EMPTY: EMPTY}
        self.blocks = {0: 0}

    def value(self, k: int) -> int:
        """Return the id of the copy of a value."""
        if k not in self.values:
            old = self.source.values[k]
            self.values[k] = self.target.add_value(old.name, old.spec, old.writer)
        return self.values[k]

    def named(self, names: Mapping[str, int]) -> dict[str, int]:
        """Return names with the copies of their values."""
        return {name: self.value(k) for name, k in names.items()}

    def fill(
        self, old: Block, new: Block, ops: Iterable[Operator], names: Mapping[str, int]
    ) -> None:
        """Add operators, names and variables of a block to another one."""
        new.variables |= {name: replace(var, block=new) for name, var in old.variables.items()}
        new.ops += map(self._operator, ops)
        new.names |= self.named(names)
        new.results += map(self.value, old.results)

    def _operator(self, op: Operator) -> Operator:
        attributes = dict(op.attributes)
        for each in op.info.proto.attributes:
            if each.type == "block":
                attributes[each.name] = self._block(attributes[each.name])
        if self.for_test and "is_test" in attributes:
            attributes["is_test"] = True
        slots = self._slots(op.inputs), self._slots(op.outputs)
        return Operator(op.type, *slots, attributes, op.site)

    def _slots(self, slots: Mapping[str, Ids | None]) -> dict[str, Ids | None]:
        return {name: ids and tuple(map(self.value, ids)) for name, ids in slots.items()}

    def _block(self, index: int) -> int:
        """Return the index of the copy of an inner block."""
        if index not in self.blocks:
            old = self.source.blocks[index]
            new = Block(self.target, len(self.target.blocks), self.blocks[old.parent_index])
            self.target.blocks.append(new)
            self.blocks[index] = new.index
            new.parameters = self.named(old.parameters)
            self.fill(old, new, old.ops, old.names)
        return self.blocks[index]
