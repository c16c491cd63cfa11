"""Gradient operators, derived from the forward operators; imported for training only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import geon

from ...errors import DerivativeError
from ...op_graph.core.traversal import deep_order
from ...op_graph.op_graph import Op, Tensor
from ...op_graph.regions.parameters import substitute_ops
from ...op_graph.values.dtypes import is_continuous
from .evaluation import Values, by_slot, compute, inference, single
from .registry import GRAD_OP, OpInfo, OpProto, Slot
from .values import ProgramValue, as_value, leaf_like, parts, rebuilt, zeros_like


def gradient_info(forward: OpInfo) -> OpInfo:
    """Return the gradient operator of ``forward``.

    Its inputs are the forward inputs and outputs and the gradients of the outputs, each of which
    may be left out; its outputs are the gradients of the inputs, such as ``X_grad``. It has a
    gradient operator of its own.
    """
    proto = forward.proto
    if not forward.differentiable:
        raise DerivativeError(f"operator {forward.type} was registered without a gradient")
    inputs = [_like(slot, slot.name) for slot in (*proto.inputs, *proto.outputs)]
    inputs += [_like(slot, slot.name + GRAD_OP) for slot in proto.outputs]
    outputs = [_like(slot, slot.name + GRAD_OP) for slot in proto.inputs]
    made = OpProto(
        forward.type + GRAD_OP,
        tuple(inputs),
        tuple(outputs),
        proto.attributes,
        f"The gradient of {forward.type}.",
    )

    def function(*values: Any, **attributes: Any) -> Any:
        given = by_slot(made.inputs, values)
        gradients = (_derived if forward.gradient is None else _by_rule)(forward, given, attributes)
        listed = [single(slot, gradients.get(slot.name)) for slot in proto.inputs]
        return listed[0] if len(listed) == 1 else tuple(listed)

    return OpInfo(made, function, positional=True, gradient_of=forward)


def _like(slot: Slot, name: str) -> Slot:
    return Slot(name, slot.comment, duplicable=slot.duplicable, dispensable=True)


def _by_rule(forward: OpInfo, given: Values, attributes: Mapping[str, Any]) -> Values:
    """Return the gradients by the function that was registered, with zeros for unused outputs."""
    assert forward.gradient is not None
    proto = forward.proto
    slots = {slot.name: slot for slot in (*proto.inputs, *proto.outputs)}
    seeds = {slot.name + GRAD_OP: slot for slot in proto.outputs}
    every = dict(attributes)
    for name, slot in {**slots, **seeds}.items():
        if name in forward.takes:
            values = given[name]
            if name in seeds:
                values = _with_zeros(values, given[slot.name])
            every[name] = single(slot, values, forward.positional)
    result = forward.gradient(**{name: every[name] for name in forward.takes})
    unknown = set(result) - {slot.name for slot in proto.inputs}
    if unknown:
        raise DerivativeError(
            f"the gradient of {forward.type} returned one for {min(unknown)!r}; its inputs are "
            f"{', '.join(slot.name for slot in proto.inputs)}"
        )
    return {
        name: [each if each is None else as_value(each) for each in listed]
        for name, listed in by_slot(
            proto.inputs, [result.get(s.name) for s in proto.inputs]
        ).items()
        if listed is not None
    }


def _with_zeros(seeds: Any, outputs: Any) -> list[Any] | None:
    if outputs is None:  # the gradient takes the seeds without the outputs
        found: list[Any] | None = seeds
        return found
    found = seeds or [None] * len(outputs)
    return [
        zeros_like(value) if seed is None else seed
        for seed, value in zip(found, outputs, strict=True)
    ]


def _derived(forward: OpInfo, given: Values, attributes: Mapping[str, Any]) -> Values:
    """Return the gradients of all continuous inputs, by ``geon.deriv`` of the forward function.

    Its inputs are replaced by leaves, so that an input computed from another one stays apart.
    """
    proto = forward.proto
    known: dict[Op, Op] = {}
    leaves = {
        slot.name: None if given[slot.name] is None else [_leaf(v, known) for v in given[slot.name]]
        for slot in proto.inputs
    }
    results = _outputs(forward, given, compute(forward, leaves, attributes), known)
    terms = []
    for slot in proto.outputs:
        seeds = given[slot.name + GRAD_OP] or ()
        for value, seed in zip(results[slot.name] or (), seeds, strict=bool(seeds)):
            if seed is not None:
                terms.append(_product(parts(value)[0], parts(seed)[0]))
    wanted = [
        (slot.name, k, value)
        for slot in proto.inputs
        for k, value in enumerate(leaves[slot.name] or ())
        if value is not None and is_continuous(value.dtype)
    ]
    if not terms or not wanted:
        return {}
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    targets = [parts(value)[0].tensor for _, _, value in wanted]
    derivatives = substitute_ops(geon.deriv(total, targets, unreached="zero"), known)
    gradients: Values = {name: [None] * len(given[name] or ()) for name, _, _ in wanted}
    for (name, k, leaf), found in zip(wanted, derivatives, strict=True):
        tensors = [found, *substitute_ops([p.tensor for p in parts(leaf)[1:]], known)]
        gradients[name][k] = rebuilt(leaf, tensors)
    return gradients


def _leaf(value: ProgramValue | None, known: dict[Op, Op]) -> ProgramValue | None:
    """Return placeholders for a value, and enter its tensors in ``known`` by placeholder."""
    if value is None:
        return None
    leaf = leaf_like(value)
    for made, part in zip(parts(leaf), parts(value), strict=True):
        known[made.tensor] = geon.cast(part.tensor, part.dtype)
    return leaf


def _product(value: Any, seed: Any) -> Tensor:
    """Return the sum of a result times its cotangent, whose dimensions it has."""
    names: dict[Any, Any] = {
        s.name: v.name for s, v in zip(seed.dims, value.dims, strict=True) if s and v
    }
    changed = {old: new for old, new in names.items() if old != new}
    tensor = seed.tensor.rename(changed) if changed else seed.tensor
    return geon.sum(value.tensor * tensor)


def _outputs(forward: OpInfo, given: Values, computed: Values, known: dict[Op, Op]) -> Values:
    """Return the outputs as functions of the leaves.

    If they have random draws, they are the outputs of the forward operator itself, whose draws they
    share, with its inputs replaced.
    """
    tensors = [p.tensor for vs in computed.values() for v in vs or () if v for p in parts(v)]
    if inference.is_running or not _has_draws(tensors):
        return computed
    inputs: dict[Op, Op] = {part: leaf for leaf, part in known.items()}
    found: Values = {}
    for slot in forward.proto.outputs:
        values = given[slot.name]
        if values is not None and not _has_draws([p.tensor for v in values for p in parts(v)]):
            raise DerivativeError(
                f"operator {forward.type} has random draws, and its result was computed apart "
                "from its gradient; compute both in one run, or register a gradient that takes "
                "the draws from an intermediate output"
            )
        found[slot.name] = values and [
            rebuilt(v, substitute_ops([p.tensor for p in parts(v)], inputs)) for v in values
        ]
    return found


def _has_draws(tensors: Sequence[Tensor]) -> bool:
    return any(op.primitive.name == "random_bits" for op in deep_order(tensors))
