"""``Executor``: runs programs, compiled to one computation or in segments."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError, FeedError
from ...op_graph.core.source_info import user_call
from ...op_graph.op_graph import Leaf, Op
from ...op_graph.regions.parameters import substitute_ops
from ..positional.values import axes_for, full_tensor, input_array
from . import evaluation
from .operators.sources import streams
from .program import Operator, Program, ProgramError, Var, default_main_program
from .scope import Scope, ScopeTensor, current_scope
from .storage import CPUPlace, Home, Place, Storage, home_of, stored
from .values import PositionalArray, ProgramValue, SelectedRows, parts, rebuilt

CALLS = "@RANDOM_CALLS@"  # the variable of a scope that counts runs with random draws
Array = np.ndarray[Any, Any]


@dataclass(eq=False)
class Lowered:
    """A program for a fetch list as geon tensors.

    ``feeds`` are the placeholders by name, ``kept`` the storages of persistable variables by name,
    with the tensors of the scope, and ``assigned`` the ids of their new values. ``calls`` is the
    placeholder for the number of the run, and ``counter`` the variable of the scope that has it, if
    there are random draws. ``call`` maps arrays of the placeholders to those fetched.
    """

    program: Program
    ops: list[Operator]
    values: dict[int, ProgramValue]
    fetched: list[int]
    feeds: dict[str, Leaf]
    kept: dict[str, tuple[ScopeTensor, Storage]]
    assigned: dict[str, int]
    home: Home
    calls: Leaf | None = None
    counter: Array | None = None
    call: Callable[..., list[Any]] = field(init=False)
    released: int = -1  # of the home when the variables were last seen to be there

    @property
    def placeholders(self) -> list[Leaf]:
        """The placeholders in the order in which a run is given their arrays."""
        return [*self.feeds.values(), *([] if self.calls is None else [self.calls])]

    def check_storage(self) -> bool:
        """Return True if the scope still keeps the variables where this program has them.

        The next check is needed only after the scope gives memory back.
        """
        if self.released == self.home.released:
            return True
        self.released = self.home.released
        return all(tensor.storage is storage for tensor, storage in self.kept.values())


class Executor:
    """Runs programs at a place: ``CPUPlace()``, ``CUDAPlace(0)``.

    A program is compiled once for its structure and fetch list. Persistable variables are kept in
    the scope, which has their values in variables of the place, and are updated in place. With
    ``memory_reuse=False`` each value has memory of its own, which only costs memory.
    """

    def __init__(self, place: Place | None = None, *, memory_reuse: bool = True) -> None:
        self.place = CPUPlace() if place is None else place
        if not isinstance(self.place, Place):
            raise ArgumentError(
                f"{user_call('Executor')}: {place!r} is no place; give CPUPlace() or CUDAPlace(0)"
            )
        self.memory_reuse = memory_reuse
        self._options = repr((self.place, memory_reuse))  # a key whose hash is computed once

    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Var | str] = (),
        scope: Scope | None = None,
        *,
        interpret: bool = False,
        show: Iterable[str] | bool = (),
    ) -> list[Any]:
        """Run a program and return the arrays of ``fetch_list``, variables or names.

        ``feed`` has the arrays of data by name. Operators that neither a fetched nor a persistable
        variable depends on are left out. With ``interpret`` each operator runs by itself, and the
        values of the variables in ``show``, or of all, are printed; a NaN raises
        ``NonFiniteError``, which names the operator. A fetched gradient of selected rows is a pair
        of rows and values. Raises ``FeedError`` for data that are missing or do not fit, and
        ``ProgramError`` for a variable without a value.
        """
        program = default_main_program() if program is None else program
        scope = current_scope() if scope is None else scope
        compiled = home_of(scope).compiled
        known = compiled.get(program)
        if known is None:
            known = compiled[program] = {}
        names = tuple([v if isinstance(v, str) else v.name for v in fetch_list])
        key = (program.changes, names, self._options, interpret)
        lowered = known.get(key)
        if lowered is None or not lowered.check_storage():
            lowered = self._lowered(program, names, scope)
            lowered.call = self._compiled(lowered, interpret)
            for old in [each for each in known if each[0] != program.changes]:
                del known[old]
            known[key] = lowered
        given = feed or {}
        try:
            arrays = [given[name] for name in lowered.feeds]
        except KeyError as error:
            raise FeedError(
                f"{user_call('run')}: the data {error} are needed and were not fed; give "
                f"feed={{{error}: array}}"
            ) from None
        if len(given) > len(arrays):
            _check_names(program, given)
        counter = lowered.counter
        if counter is not None:
            number = counter.item()
            counter.fill(number + 1)
            arrays.append(number)
        found: list[Any] = lowered.call(arrays, show) if interpret else lowered.call(arrays)
        return found

    def _compiled(self, lowered: Lowered, interpret: bool) -> Callable[..., list[Any]]:
        from .segments import SegmentedRun, place_of  # needed by few programs

        if interpret or any(place_of(op) for op in lowered.ops):
            return SegmentedRun(lowered, self.place, self.memory_reuse, interpret)
        fetched = [lowered.values[k] for k in lowered.fetched]
        results = [[full_tensor(part) for part in parts(value)] for value in fetched]
        is_plain = all(isinstance(value, PositionalArray) for value in fetched)
        effects = [
            geon.assign(storage.leaf, geon.cast_axes(full_tensor(value), storage.leaf.axes))  # type: ignore[arg-type]  # a tensor
            for name, k in lowered.assigned.items()
            for storage, value in [(lowered.kept[name][1], lowered.values[k])]
        ]
        computation = lowered.home.transformer(self.place).computation(
            [[each[0] for each in results] if is_plain else results, geon.doall(effects)],
            *lowered.placeholders,
            plan=self.memory_reuse,
        )
        if is_plain:
            return lambda arrays: list(computation(*arrays)[0])
        return lambda arrays: list(map(fetched_array, fetched, computation(*arrays)[0]))

    def _lowered(self, program: Program, names: Sequence[str], scope: Scope) -> Lowered:
        block = program.global_block()
        what = user_call("run")
        fetched = [block.value_of(name, what) for name in names]
        assigned = {
            name: k
            for name, k in block.names.items()
            if block.parameters.get(name) != k and block.var(name).persistable
        }
        ops = needed(block.ops, [*fetched, *assigned.values()])
        reads = {k for op in ops for k in op.reads} | set(fetched)
        home = home_of(_owner(scope, [*assigned, *block.parameters]))
        # The home, which outlives the program, keeps this.
        own: Program = weakref.proxy(program)
        found = Lowered(own, ops, {}, fetched, {}, {}, assigned, home)
        for name, k in block.parameters.items():
            spec = program.values[k].spec
            if k not in reads:
                continue
            if block.variables[name].is_data:
                leaf = geon.placeholder(axes_for(spec.shape), spec.dtype, name=name)
                found.feeds[name] = leaf
            else:
                leaf = self._kept(found, k, scope, is_read=True)
            found.values[k] = input_array(leaf)
        for name, k in assigned.items():
            if name not in found.kept:
                self._kept(found, k, scope, is_read=False)
        counters: list[Leaf] = []

        def stream(seed: int) -> geon.Random:
            made = geon.Random(seed)
            counters.append(made.counter)
            return made

        token = streams.set(stream)
        try:
            evaluation.evaluate(program, 0, found.values, ops)
        finally:
            streams.reset(token)
        if counters:
            found.calls = geon.placeholder([], "uint64", name="calls")
            found.counter = scope.var(CALLS).get_mutable(int)
            substitutes: dict[Op, Op] = dict.fromkeys(counters, found.calls)
            for k, value in found.values.items():
                tensors = substitute_ops([part.tensor for part in parts(value)], substitutes)
                found.values[k] = rebuilt(value, tensors)
        return found

    def _kept(self, found: Lowered, number: int, scope: Scope, *, is_read: bool) -> Leaf:
        """Return the variable that keeps a persistable one; it needs a value to be read."""
        value = found.program.values[number]
        variable = scope.find_var(value.name)
        if is_read and (variable is None or not variable.is_type("tensor")):
            raise ProgramError(
                f"{user_call('run')}: {value} has no value in the scope; run the start-up program "
                f"in it first, or set it: scope.var({value.name!r}).set(array)"
            )
        variable = scope.var(value.name) if variable is None else variable
        tensor = variable.get_mutable("tensor")
        storage = stored(tensor, found.home, self.place, value.name, value.spec)
        found.kept[value.name] = tensor, storage
        return storage.leaf


def needed(ops: Sequence[Operator], targets: Iterable[int]) -> list[Operator]:
    """Return the operators that the values ``targets`` depend on, in order."""
    wanted, found = set(targets), []
    for op in reversed(ops):
        if not wanted.isdisjoint(op.writes):
            found.append(op)
            wanted.update(op.reads)
    return found[::-1]


def fetched_array(value: ProgramValue, arrays: Sequence[Array]) -> Any:
    """Return the result of a fetched value for the arrays of its parts.

    It is a pair of rows and values for selected rows, and the written tensors of a tensor array.
    """
    if isinstance(value, PositionalArray):
        return arrays[0]
    if isinstance(value, SelectedRows):
        return arrays[1], arrays[0]
    return arrays[0][: int(arrays[1])]


def _owner(scope: Scope, names: Iterable[str]) -> Scope:
    """Return the outermost scope around that has one of the names; the scope itself if none."""
    found, around = scope, scope.parent
    while around is not None:
        if not {*names}.isdisjoint(around.local_names()):
            found = around
        around = around.parent
    return found


def _check_names(program: Program, feed: Mapping[str, Any]) -> None:
    """Raise ``FeedError`` for data that the program does not have."""
    block = program.global_block()
    data = [name for name, var in block.variables.items() if var.is_data]
    unknown = [name for name in feed if name not in data]
    if unknown:
        raise FeedError(
            f"{user_call('run')}: feed has {unknown[0]!r}, which is no data of the program; its "
            f"data are {', '.join(data) or 'none'}"
        )
