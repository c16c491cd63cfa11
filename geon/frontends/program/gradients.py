"""Gradient operators, derived from the forward operators; imported for training only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import geon

from ...errors import DerivativeError
from ...op_graph.op_graph import Op, Tensor
from ...op_graph.random.graph_draws import has_draws
from ...op_graph.regions.parameters import substitute_ops
from ...op_graph.values.dtypes import is_continuous
from .evaluation import Values, by_slot, compute, inference, single
from .registry import GRAD_OP, OpInfo, OpProto, Slot
from .row_reads import AnyReads, row_reads, table_gradients
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

    def slots(given: Sequence[Slot], suffix: str) -> tuple[Slot, ...]:
        return tuple([Slot(s.name + suffix, s.comment, s.duplicable, True) for s in given])

    made = OpProto(
        forward.type + GRAD_OP,
        (*slots((*proto.inputs, *proto.outputs), ""), *slots(proto.outputs, GRAD_OP)),
        slots(proto.inputs, GRAD_OP),
        proto.attributes,
        f"The gradient of {forward.type}.",
    )

    def function(*values: Any, **attributes: Any) -> Any:
        given = by_slot(made.inputs, values)
        if forward.gradient is None:
            gradients = _derived(forward, given, attributes, row_reads(forward, given, attributes))
        else:
            gradients = by_rule(forward, given, attributes)
        listed = [single(slot, gradients.get(slot.name)) for slot in proto.inputs]
        return listed[0] if len(listed) == 1 else tuple(listed)

    return OpInfo(made, function, positional=True, gradient_of=forward, takes_rows=True)


def by_rule(forward: OpInfo, given: Values, attributes: Mapping[str, Any]) -> Values:
    """Return the gradients by the function that was registered, with zeros for unused outputs."""
    assert forward.gradient is not None
    proto, every = forward.proto, dict(attributes)
    for slot in (*proto.inputs, *proto.outputs):
        values, seeds = given[slot.name], given.get(slot.name + GRAD_OP)
        if values is not None:
            seeds = seeds or [None] * len(values)
            pairs = zip(seeds, values, strict=True)
            seeds = [zeros_like(value) if seed is None else seed for seed, value in pairs]
        for name, listed in ((slot.name, values), (slot.name + GRAD_OP, seeds)):
            if name in forward.takes:
                every[name] = single(slot, listed, forward.positional)
    result = forward.gradient(**{name: every[name] for name in forward.takes})
    unknown = set(result) - {slot.name for slot in proto.inputs}
    if unknown:
        raise DerivativeError(
            f"the gradient of {forward.type} returned one for {min(unknown)!r}; its inputs are "
            f"{', '.join(slot.name for slot in proto.inputs)}"
        )
    found = by_slot(proto.inputs, [result.get(slot.name) for slot in proto.inputs])
    return {
        name: [each if each is None else as_value(each) for each in listed]
        for name, listed in found.items()
        if listed is not None
    }


def _derived(
    forward: OpInfo, given: Values, attributes: Mapping[str, Any], reads: AnyReads | None
) -> Values:
    """Return the gradients of all continuous inputs, by ``geon.deriv`` of the forward function.

    Its inputs are replaced by leaves, so that an input computed from another one stays apart. Those
    of the tables of ``reads`` are selected rows.
    """
    proto, own = forward.proto, given
    given = own if reads is None else reads.extended(own)
    inputs = {slot.name: given[slot.name] or () for slot in proto.inputs}
    leaves = {n: [v if v is None else leaf_like(v) for v in vs] for n, vs in inputs.items()}
    known: dict[Op, Op] = {
        leaf.tensor: geon.cast(part.tensor, part.dtype)
        for name, values in inputs.items()
        for leaf_value, value in zip(leaves[name], values, strict=True)
        for leaf, part in zip(_parts([leaf_value]), _parts([value]), strict=True)
    }
    requested = {name: None if given[name] is None else leaves[name] for name in inputs}
    indices: list[Any] = []
    if reads is None:
        results = _outputs(forward, given, compute(forward, requested, attributes), known)
    else:
        results, indices = reads.computed(forward, requested, attributes)
        if not reads.repeats_draws(results):
            return _derived(forward, own, attributes, None)
    terms = []
    for slot in proto.outputs:
        seeds = given[slot.name + GRAD_OP] or ()
        for value, seed in zip(results[slot.name] or (), seeds, strict=bool(seeds)):
            if seed is not None:
                terms.append(_product(parts(value)[0], parts(seed)[0]))
    wanted = [
        (name, k, value)
        for name, values in leaves.items()
        for k, value in enumerate(values)
        if value is not None and is_continuous(value.dtype)
        if not (reads and (name, k) in reads.tables)
    ]
    if not terms or not wanted:
        return {}
    targets = [parts(value)[0].tensor for _, _, value in wanted]
    total = sum(terms[1:], terms[0])
    derivatives = substitute_ops(geon.deriv(total, targets, unreached="zero"), known)
    gradients: Values = {name: [None] * len(leaves[name]) for name, _, _ in wanted}
    for (name, k, leaf), found in zip(wanted, derivatives, strict=True):
        rest = substitute_ops([part.tensor for part in parts(leaf)[1:]], known)
        gradients[name][k] = rebuilt(leaf, [found, *rest])
    if reads is not None:
        read = [_substituted(each, known) for each in indices]
        table_gradients(reads, given, gradients, read)
    return gradients


def _substituted(value: ProgramValue, known: dict[Op, Op]) -> ProgramValue:
    return rebuilt(value, substitute_ops([part.tensor for part in parts(value)], known))


def _parts(values: Sequence[ProgramValue | None] | None) -> list[Any]:
    return [part for value in values or () if value is not None for part in parts(value)]


def _product(value: Any, seed: Any) -> Tensor:
    """Return the sum of a result times its cotangent, whose dimensions it has.

    That of complex numbers is the real part, as in ``geon.deriv``.
    """
    pairs = zip(seed.dims, value.dims, strict=True)
    names: dict[Any, Any] = {s.name: v.name for s, v in pairs if s and v and s.name != v.name}
    found = geon.sum(value.tensor * (seed.tensor.rename(names) if names else seed.tensor))
    return geon.real(found) if value.dtype.kind == "c" else found


def _outputs(forward: OpInfo, given: Values, computed: Values, known: dict[Op, Op]) -> Values:
    """Return the outputs as functions of the leaves.

    If they have random draws, they are the outputs of the forward operator itself, whose draws they
    share, with its inputs replaced.
    """
    if inference.is_running or not _has_draws([v for vs in computed.values() for v in vs or ()]):
        return computed
    inputs: dict[Op, Op] = {part: leaf for leaf, part in known.items()}
    found: Values = {}
    for slot in forward.proto.outputs:
        values = given[slot.name]
        if values is not None and _has_draws(computed[slot.name]) and not _has_draws(values):
            raise DerivativeError(
                f"operator {forward.type} has random draws, and its result was computed apart "
                "from its gradient; compute both in one run, or register a gradient that takes "
                "the draws from an intermediate output"
            )
        found[slot.name] = values and [_substituted(v, inputs) for v in values]
    return found


def _has_draws(values: Sequence[ProgramValue | None]) -> bool:
    return has_draws([part.tensor for part in _parts(values)])
