"""``associative_scan``: all prefixes of an associative operation; and linear recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError
from ..axes.axes import Axis
from ..building.constants import as_tensor, number
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows.concatenation import pad
from ..rows.elementwise import add, multiply
from ..rows.movement import broadcast, reorder
from ..rows.slicing import take, update
from ..values.tree import flat
from .carries import fit_to, match_axes_and_dtype, needs_function, strong
from .scan import along_axis, one_length, scan

if TYPE_CHECKING:
    from ..building.typing import AxisLike

Combine = Callable[[Any, Any], Any]


@public
def associative_scan(
    f: Combine, xs: Any, *, over: AxisLike | None = None, reverse: bool = False
) -> Any:
    """Return all prefix combinations of the elements of ``xs`` along the axis ``over``.

    ``f(a, b)`` combines two elements into one of the same structure, axes and dtypes. An element is
    ``xs`` without the axis. ``f`` must be associative; ``a`` comes before ``b``. The result has the
    structure of ``xs``: at index ``t`` it is the combination of elements 0 to ``t``, or with
    ``reverse`` of the last element down to ``t``. ``xs`` is a tensor or a dictionary, list, tuple
    or dataclass of tensors. The function is built on ``scan``: ``f`` runs once for each element,
    sequentially along ``over`` and in parallel over all other axes. ``over`` may be left out if
    ``xs`` is one tensor with one axis. Raises what ``scan`` raises.
    """
    what = user_call("associative_scan")
    needs_function(what, "f", f, "geon.maximum", "one part of xs", "another")
    stacks, structure = flat(xs, "xs")
    tensors = [strong(as_tensor(x)) for _, x in stacks]
    if not tensors:
        raise ArgumentError(f"{what}: xs has no tensor; give at least one")
    axis = one_length(what, along_axis(what, over, tensors, [name for name, _ in stacks]), tensors)
    shifted = [_shifted(x, axis, bool(reverse)) for x in tensors]

    def step(before: list[Tensor], element: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        result = f(structure.filled(iter(before)), structure.filled(iter(element)))
        leaves, returned = flat(result, "the result")
        if returned != structure:
            raise ArgumentError(
                f"{what}: xs is {structure}, and f returned {returned}; return what is like xs"
            )
        settled = [
            _settled(what, name, x, as_tensor(value, near=x))
            for (name, value), x in zip(leaves, before, strict=True)
        ]
        return settled, before

    firsts, following = [first for first, _ in shifted], [rest for _, rest in shifted]
    _, prefixes = scan(step, firsts, following, over=axis, reverse=reverse)
    ordered = [reorder(result, x.axes) for result, x in zip(prefixes, tensors, strict=True)]
    return structure.filled(iter(ordered))


def _shifted(x: Tensor, axis: Axis, reverse: bool) -> tuple[Tensor, Tensor]:
    """Return the first element, and ``x`` shifted by one element along ``axis``.

    With ``reverse`` both are from the other end. The shifted tensor holds the first element at its
    last index. The combination with it is never read, but ``f`` must accept the element, and it
    might not accept zeros. For an axis of length zero the first element is zeros.
    """
    length = axis.expression
    begin, end = (-1, 0) if reverse else (0, -1)
    longer = pad(x, {axis: (1, 0) if reverse else (0, 1)})
    turned = update(longer, take(longer, {axis: begin}), {axis: end})
    rest = slice(0, length) if reverse else slice(1, length + 1)
    return take(turned, {axis: begin}), take(turned, {axis: rest})


def _settled(what: str, where: str, x: Tensor, new: Tensor) -> Tensor:
    """Return ``new``, a result of ``f``, with the axis order of the element ``x``.

    Raises ``AxisError`` and ``DTypeError`` if axes or dtype differ.
    """
    new = fit_to(new, x)
    both = (
        f"{what}: an element is {x.axes} {x.dtype.name} and f returns {new} {new.dtype.name} (made "
        f"at {new.line_info}) as {where}; it combines two elements into one like them"
    )
    return match_axes_and_dtype(
        new, x, f"{both}: give it the axes {x.axes}", f"{both}: geon.cast it to {x.dtype.name}"
    )


def linear_recurrence(
    scale: Tensor, shift: Tensor, axis: Axis, *, exclusive: bool, reverse: bool
) -> Tensor:
    """Return y with y[k] = scale[k] y[k - 1] + shift[k] along ``axis``, where y[-1] = 0.

    The result has the axes of ``shift``. ``exclusive`` returns y[k - 1] at index k; ``reverse``
    goes from the last index to the first. Both operands have the same dtype, which must be wide
    enough for sums.
    """

    def step(before: Tensor, parts: list[Tensor]) -> tuple[Tensor, Tensor]:
        result = add.apply(multiply.apply(before, parts[0]), parts[1])
        return result, before if exclusive else result

    nothing = broadcast(number(0, shift.dtype), shift.axes.without([axis.name]))
    _, values = scan(step, nothing, [scale, shift], over=axis, reverse=reverse)
    return reorder(values, shift.axes)
