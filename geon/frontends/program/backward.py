"""Backward: gradient operators added to a program, with sums for values used several times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
    block, what = loss.block, user_call("append_backward")
    if math.prod(loss.shape) != 1:
        raise DerivativeError(
            f"{what}: the loss {loss} has more than one element; give its mean or sum"
        )
    chosen = [p for p in block.program.all_parameters() if p.trainable]
    if parameter_list is not None:
        chosen = [block.var(p) if isinstance(p, str) else p for p in parameter_list]  # type: ignore[misc]  # checked below
    wrong = [v for v in chosen if not isinstance(v, Parameter)]
    if wrong:
        raise DerivativeError(
            f"{what}: {wrong[0].name!r} (declared at {describe(wrong[0].site)}) is no parameter; "
            "use calc_gradient for other variables"
        )
    at_entry = block.program.global_block().parameters
    sources = {at_entry[p.name]: p for p in chosen if p.name in at_entry}
    found = _Backward(block, no_grad_set).run({block.names[loss.name]: None}, sources)
    missing = [p for p in chosen if at_entry.get(p.name) not in found]
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
    block, what = listed[0].block, user_call("calc_gradient")
    starts: dict[int, int | None] = {}
    for target, seed in zip(listed, seeds, strict=True):
        if seed is not None and not target.spec.fits(seed.spec):
            raise DerivativeError(
                f"{what}: the gradient {seed} of the target {target} has another shape or dtype; "
                "give one like it"
            )
        number = None if seed is None else block.value_of(seed.name, what)
        starts[block.value_of(target.name, what)] = number
    wanted = [block.value_of(x.name, what) for x in given]
    found = _Backward(block, no_grad_set).run(starts, wanted)
    return [found.get(k) for k in wanted]


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


class _Backward:
    """The reverse walk over the operators of a block; ids are those of values."""

    def __init__(self, block: Block, no_grad: Iterable[Var | str]) -> None:
        self.block, self.values = block, block.program.values
        names = {each if isinstance(each, str) else each.name for each in no_grad}
        stopped = {v.name for v in block.program.list_vars() if v.stop_gradient} | names
        self.blocked = {value.id for value in self.values if value.name in stopped}
        self.given: dict[int, list[int]] = {}  # gradients of a value, one for each use
        self.final: dict[int, int] = {}  # the gradient of a value
        self.named: Counter[int] = Counter()  # uses of a value that have names

    def run(self, starts: Mapping[int, int | None], sources: Iterable[int]) -> dict[int, Var]:
        """Return the gradients of the sources that the starts depend on."""
        wanted, ops = set(sources), list(self.block.ops)
        self.needing = self._needing(ops, wanted)
        path = self._path(ops, set(starts))
        self.uses = Counter([k for op in path for k in op.reads] + list(starts))
        for k, seed in starts.items():
            if k in self.needing:
                if seed is None:
                    seed = self._one(k, "fill_any_like", (k,), {"value": 1.0})
                self.given.setdefault(k, []).append(seed)
        for op in reversed(path):
            self._differentiate(op)
        found = {k: self._gradient(k) for k in wanted}
        return {k: self.block.var(self.values[g].name) for k, g in found.items() if g is not None}

    def _needing(self, ops: Sequence[Operator], sources: set[int]) -> set[int]:
        """Return the values that depend on a source through operators with gradients."""
        found = set(sources)
        for op in ops:
            if not found.isdisjoint(op.reads) and op.info.differentiable:
                found |= {
                    k
                    for k in op.writes
                    if k not in self.blocked
                    and is_continuous(named_dtype(self.values[k].spec.dtype))
                }
        return found

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
        seeds = {name: ids for name, ids in seeds.items() if any(k is not None for k in ids)}
        if not seeds:
            return
        inputs: dict[str, Any] = dict(seeds)
        for slot in (*proto.inputs, *proto.outputs):
            # A given gradient takes what it names, and the outputs that zeros are made like.
            seed = slot.name + GRAD_OP
            is_zero = seed in takes and None in seeds.get(seed, [None])
            if is_zero or (slot.name in takes if takes else not slot.not_in_gradient):
                inputs[slot.name] = {**op.inputs, **op.outputs}[slot.name]
        read = {each.name + GRAD_OP: op.inputs[each.name] or () for each in proto.inputs}
        outputs = {
            name: [self._name(k) if k in self.needing else None for k in ids]
            for name, ids in read.items()
            if not self.needing.isdisjoint(ids)
        }
        given = {
            name: ids and [None if k is None or k == EMPTY else self.values[k] for k in ids]
            for name, ids in inputs.items()
        }
        made = self.block.append_op(op.type + GRAD_OP, given, outputs, op.attributes)
        for name, ids in read.items():
            found = made.outputs[name] or ()
            for k, gradient in zip(ids, found, strict=bool(found)):
                if gradient != EMPTY:
                    self.given.setdefault(k, []).append(gradient)

    def _gradient(self, number: int) -> int | None:
        """Return the gradient of a value, after all its uses: the sum of theirs, or None."""
        if number in self.given and number not in self.final:
            terms = tuple(self.given[number])
            is_used_once = self.uses[number] == 1
            self.final[number] = terms[0] if is_used_once else self._one(number, "sum", terms)
        return self.final.get(number)

    def _one(self, number: int, type: str, read: Sequence[int], attributes: Any = None) -> int:
        """Add an operator whose output Out is the gradient of a value; return its id."""
        name = self._free(f"{self.values[number].name}{GRAD}")
        inputs = {"X": [self.values[k] for k in read]}
        return self.block.append_op(type, inputs, {"Out": name}, attributes).writes[0]

    def _name(self, number: int) -> str:
        """Return the name of the gradient of a use of a value."""
        name = f"{self.values[number].name}{GRAD}"
        if self.uses[number] > 1:
            self.named[number] += 1
            name += f"@RENAME@{self.named[number] - 1}"
        return self._free(name)

    def _free(self, name: str) -> str:
        taken = self.block.find_var(name) is not None
        return self.block.program.unique_name(name) if taken else name
