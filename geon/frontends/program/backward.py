"""Backward: gradient operators added to a program, with sums for values used several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DerivativeError
from ...op_graph.core.source_info import describe, user_call
from ...op_graph.values.dtypes import is_continuous, named_dtype
from .evaluation import EMPTY
from .program import Block, Operator, Parameter, Var
from .registry import GRAD, GRAD_OP


def append_backward(
    loss: Var,
    parameter_list: Sequence[Parameter | str] | None = None,
    no_grad_set: Iterable[Var | str] = (),
) -> list[tuple[Parameter, Var]]:
    """Add the gradient operators of ``loss``; return pairs of a parameter and its gradient.

    ``loss`` has one element. The parameters are all trainable ones by default, of which those that
    the loss does not depend on are left out; one of ``parameter_list`` that it does not depend on
    raises ``DerivativeError``. No gradient passes through variables of ``no_grad_set`` and through
    those with ``stop_gradient``. The gradient of ``w`` is ``w@GRAD``, that of its value at entry.
    """
    block = loss.block
    what = user_call("append_backward")
    if np.prod(loss.shape, dtype=int) != 1:
        raise DerivativeError(
            f"{what}: the loss {loss} has more than one element; give its mean or sum"
        )
    trainable = [p for p in block.program.all_parameters() if p.trainable]
    asked = trainable if parameter_list is None else [_parameter(block, p) for p in parameter_list]
    at_entry = block.program.global_block().parameters
    sources = {at_entry[p.name]: p for p in asked if p.name in at_entry}
    found = _Backward(block, no_grad_set).run({block.names[loss.name]: None}, sources)
    missing = [p for p in asked if at_entry.get(p.name) not in found]
    if missing and parameter_list is not None:
        raise DerivativeError(
            f"{what}: the loss {loss} does not depend on {missing[0].name!r} through operators "
            "that have gradients; leave it out, or take it out of no_grad_set"
        )
    return [(p, found[k]) for k, p in sources.items() if k in found]


def calc_gradient(
    targets: Var | Sequence[Var],
    inputs: Var | Sequence[Var],
    target_gradients: Var | Sequence[Var | None] | None = None,
    no_grad_set: Iterable[Var | str] = (),
) -> list[Var | None]:
    """Add operators for the gradients of ``targets`` by ``inputs``; None for an unreached input.

    ``target_gradients`` are the cotangents of the targets, ones by default. The gradients can be
    targets again, for derivatives of second order.
    """
    listed, given = _listed(targets), _listed(inputs)
    seeds = [None] * len(listed) if target_gradients is None else _listed(target_gradients)
    block = listed[0].block
    what = user_call("calc_gradient")
    starts: dict[int, int | None] = {
        block.value_of(t.name, what): None if seed is None else block.value_of(seed.name, what)
        for t, seed in zip(listed, seeds, strict=True)
    }
    for target, seed in zip(listed, seeds, strict=True):
        if seed is not None and (seed.shape, seed.dtype) != (target.shape, target.dtype):
            raise DerivativeError(
                f"{what}: the gradient {seed} of the target {target} has another shape or dtype"
            )
    wanted = [block.value_of(x.name, what) for x in given]
    found = _Backward(block, no_grad_set).run(starts, wanted)
    return [found.get(k) for k in wanted]


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _parameter(block: Block, given: Parameter | str) -> Parameter:
    var = given if isinstance(given, Var) else block.var(given)
    if not isinstance(var, Parameter):
        raise DerivativeError(
            f"{user_call('append_backward')}: {var.name!r} (declared at {describe(var.site)}) is "
            "no parameter; use calc_gradient for other variables"
        )
    return var


class _Backward:
    """The reverse walk over the operators of a block; ids are those of values."""

    def __init__(self, block: Block, no_grad: Iterable[Var | str]) -> None:
        self.block = block
        names = {each if isinstance(each, str) else each.name for each in no_grad}
        self.blocked = {
            k for k, value in enumerate(block.program.values)
            if value.name in names or self._is_stopped(value.name)
        }  # fmt: skip
        self.given: dict[int, list[int]] = {}  # gradients of a value, one for each use
        self.final: dict[int, int] = {}  # the gradient of a value
        self.named: Counter[int] = Counter()  # uses of a value that have names
        self.uses: Counter[int] = Counter()
        self.needing: set[int] = set()

    def _is_stopped(self, name: str) -> bool:
        var = self.block.find_var(name)
        return var is not None and var.stop_gradient

    def run(self, starts: Mapping[int, int | None], sources: Iterable[int]) -> dict[int, Var]:
        """Return the gradients of the sources that the starts depend on."""
        wanted = set(sources)
        ops = list(self.block.ops)
        self.needing = self._needing(ops, wanted)
        path = self._path(ops, set(starts))
        self.uses = Counter(k for op in path for k in op.reads if k in self.needing)
        self.uses.update(list(starts))
        for k, seed in starts.items():
            if k in self.needing:
                seed = (
                    self._one(k, "fill_any_like", {"X": (k,)}, {"value": 1.0})
                    if seed is None
                    else seed
                )
                self.given.setdefault(k, []).append(seed)
        for op in reversed(path):
            self._differentiate(op)
        values, found = self.block.program.values, {}
        for k in wanted:
            gradient = self._gradient(k)
            if gradient is not None:
                found[k] = self.block.var(values[gradient].name)
        return found

    def _needing(self, ops: Sequence[Operator], sources: set[int]) -> set[int]:
        """Return the values that depend on a source through operators with gradients."""
        found = set(sources)
        for op in ops:
            if not found.isdisjoint(op.reads) and op.info.differentiable:
                found |= {k for k in op.writes if self._passes(k)}
        return found

    def _passes(self, number: int) -> bool:
        dtype = named_dtype(self.block.program.values[number].spec.dtype)
        return number not in self.blocked and is_continuous(dtype)

    def _path(self, ops: Sequence[Operator], targets: set[int]) -> list[Operator]:
        """Return the operators between the sources and the targets, in order."""
        reached, path = set(targets), []
        for op in reversed(ops):
            reads, writes = set(op.reads), reached.intersection(op.writes)
            if self.needing & writes and self.needing & reads and op.info.differentiable:
                path.append(op)
                reached |= reads
        return path[::-1]

    def _differentiate(self, op: Operator) -> None:
        """Add the gradient operator of ``op``, if one of its outputs has a gradient."""
        proto, takes = op.info.proto, op.info.takes
        seeds = {
            slot.name + GRAD_OP: [self._gradient(k) for k in op.outputs[slot.name] or ()]
            for slot in proto.outputs
        }
        if not any(k is not None for listed in seeds.values() for k in listed):
            return
        lacking = {name.removesuffix(GRAD_OP) for name, ids in seeds.items() if None in ids}
        kept = {slot.name for slot in proto.outputs if not slot.not_in_gradient}
        inputs: dict[str, Any] = {
            name: ids
            for name, ids in {**op.inputs, **op.outputs}.items()
            if name in lacking or ((name in takes or not takes) and name in {*op.inputs, *kept})
        }
        inputs |= {n: ids for n, ids in seeds.items() if any(k is not None for k in ids)}
        outputs = {}
        for slot in proto.inputs:
            ids = op.inputs[slot.name] or ()
            names = [self._name(k) if k in self.needing else None for k in ids]
            if any(names):
                outputs[slot.name + GRAD_OP] = names
        made = self.block.append_op(op.type + GRAD_OP, inputs, outputs, op.attributes)
        for slot in proto.inputs:
            found = made.outputs[slot.name + GRAD_OP]
            for k, gradient in zip(op.inputs[slot.name] or (), found or (), strict=bool(found)):
                if gradient != EMPTY:
                    self.given.setdefault(k, []).append(gradient)

    def _gradient(self, number: int) -> int | None:
        """Return the gradient of a value, after all its uses: the sum of theirs, or None."""
        if number not in self.given:
            return None
        if number not in self.final:
            found = self.given[number]
            if self.uses[number] > 1:
                found = [self._one(number, "sum", {"X": tuple(found)}, {})]
            self.final[number] = found[0]
        return self.final[number]

    def _one(self, number: int, type: str, inputs: Any, attributes: dict[str, Any]) -> int:
        """Add an operator whose output Out is a gradient of a value; return its id."""
        name = self._free(f"{self.block.program.values[number].name}{GRAD}")
        made = self.block.append_op(type, inputs, {"Out": name}, attributes)
        return made.writes[0]

    def _name(self, number: int) -> str:
        """Return the name of the gradient of a use of a value."""
        name = f"{self.block.program.values[number].name}{GRAD}"
        if self.uses[number] > 1:
            self.named[number] += 1
            name += f"@RENAME@{self.named[number] - 1}"
        return self._free(name)

    def _free(self, name: str) -> str:
        taken = self.block.find_var(name) is not None
        return self.block.program.unique_name(name) if taken else name
