"""The ``parameter`` and ``region_result`` primitives: inputs of bodies and results of regions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..axes.axes import Axes
from ..core.primitive import Inferred, Primitive, require
from ..core.region_body import Body
from ..core.source_info import Site
from ..op_graph import Guard, Op, RegionOp, Tensor, make, post_order
from ..transforms.functionalize import substitute
from ..values.attribute_types import Count, DTypeName
from ..values.dtypes import DType, named_dtype

NOTHING: dict[Op, Any] = {}  # no placeholders for values outside of a body


class ParameterAttributes(NamedTuple):
    """The position among the parameters of the body, axes and dtype."""

    number: Count
    axes: Axes
    dtype: DTypeName


class ResultAttributes(NamedTuple):
    """The position among the results of the region."""

    number: Count


def _parameter_infer(args: tuple[Any, ...], attrs: ParameterAttributes) -> Inferred:
    return attrs.axes, named_dtype(attrs.dtype), ()


def _result_infer(args: tuple[Any, ...], attrs: ResultAttributes) -> Inferred:
    require(isinstance(args[0], RegionOp), "a result of {}, which is no region", args[0])
    row = args[0].primitive
    assert row.outcomes is not None
    outcomes = row.outcomes(args[0].attrs)
    number = attrs.number
    require(number < len(outcomes), "result {} of a region that has {}", number, len(outcomes))
    return (*outcomes[number], ())


PARAMETER = Primitive(
    "parameter",
    "leaf",
    "A parameter of the body of a region, by its number, with axes and dtype.",
    attributes=ParameterAttributes,
    arity=0,
    infer=_parameter_infer,
)
REGION_RESULT = Primitive(
    "region_result",
    "part",
    "One of the results of a region, by its number.",
    attributes=ResultAttributes,
    arity=1,
    infer=_result_infer,
    takes_effects=True,
    dtype_operands=(),
    cost="kernel",
)


def parameter(number: int, axes: Axes, dtype: DType) -> Tensor:
    """Return parameter ``number`` of a body."""
    return make(PARAMETER, (), (number, axes, dtype.name))


def results_of(region: Op, site: Site | None = None) -> list[Tensor]:
    """Return all results of a region."""
    assert region.primitive.outcomes is not None
    count = len(region.primitive.outcomes(region.attrs))
    return [result_of(region, k, site) for k in range(count)]


def result_of(region: Op, number: int, site: Site | None = None) -> Tensor:
    """Return result ``number`` of a region."""
    return make(REGION_RESULT, (region,), (number,), site=site)


def require_same(what: str, op: Op, like: Op) -> None:
    """Raise ``ArgumentError`` unless ``op`` has the axes and dtype of ``like``."""
    require(op.axes is like.axes, "{} over {} for {}", what, op.axes, like.axes)
    require(op.dtype is like.dtype, "{} of {} for {}", what, op.dtype, like.dtype)


def outcome(op: Op, first: Sequence[Any] = ()) -> tuple[Axes, DType]:
    """Return the axes of a result, ``first`` before those of ``op``, and its dtype."""
    return Axes(*first, op.axes), op.dtype


def guards_of(body: Body) -> tuple[Guard, ...]:
    """Return the guards on lengths of all ops of a body."""
    return tuple([guard for op in post_order(body.results) for guard in op.guards])


def tensors(values: Iterable[object]) -> list[Tensor]:
    """Return the values as a list of tensors; assert that each is one."""
    results: list[Tensor] = []
    for value in values:
        assert isinstance(value, Tensor)
        results.append(value)
    return results


def substitute_ops(ops: Iterable[Op], known: dict[Op, Op]) -> list[Tensor]:
    """Return tensors with the ops in ``known`` replaced; ``known`` gains the ops rebuilt for it."""
    return tensors([substitute(op, known) for op in ops])
