"""Sums and means that leave out NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from ..building.constants import as_tensor
from ..building.weak import exact, in_dtype, like
from ..op_graph import Tensor
from ..rows import reductions
from ..rows.accumulation import floating, widen
from ..rows.elementwise import cast, isnan, where
from ..rows.logic import logical_not
from ..rows.reductions import SUM, reduce
from ..values.dtypes import INT64, sum_dtype
from .composites import composite

if TYPE_CHECKING:
    from ..building.typing import AxesLike, Named, TensorLike


@composite
def nansum(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the sum of the elements that are not NaN, with the arguments of ``sum``."""
    x = as_tensor(x)
    kept = where.apply(isnan.apply(x), 0, x)
    result = reduce(SUM, kept, reduction_axes, out_axes, what="nansum")
    return in_dtype(result, sum_dtype(x.dtype))


@composite
def nanmean(
    x: TensorLike,
    reduction_axes: AxesLike | None = None,
    *,
    out_axes: AxesLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the mean of the elements that are not NaN, with the arguments of ``mean``.

    NaN if there is no such element.
    """
    x = floating(as_tensor(x))
    is_missing = isnan.apply(x)
    kept = widen(exact(where.apply(is_missing, 0, x)))
    total = reduce(SUM, kept, reduction_axes, out_axes, what="nanmean")
    valid = cast(logical_not.apply(is_missing), INT64)
    count = reductions.sum(valid, reduction_axes, out_axes=out_axes)
    return like(total / cast(count, total.dtype), x)
