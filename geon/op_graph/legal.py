"""What a legal op is: its row takes these arguments and attributes, and gives these axes and dtype.

``check`` holds an op that geon's functions did not build, such as one read from a dump, against
what they would have built. Lengths that only data can compare pass: they are left to guards.
"""

from __future__ import annotations

from typing import Any

from ..errors import DumpError
from .axes import Axes, axes_may_equal
from .dtypes import DType
from .op_graph import Op, Tensor
from .registry import Primitive


def check(
    row: Primitive,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...],
    axes: Axes,
    dtype: DType,
    weak: bool,
) -> None:
    """Raise where this row, applied to these, is no op over ``axes`` of ``dtype``.

    Raises ``DumpError``, or the error that building the op would have raised. Rows without
    inference are checked for the number of attributes only.
    """
    what = row.name
    if len(attrs) != len(row.attributes):
        raise DumpError(f"{what} has {len(row.attributes)} attributes, not {len(attrs)}")
    if not row.orderly and not all(isinstance(arg, Tensor) for arg in args):
        raise DumpError(f"an argument of {what} has no value")
    if what == "custom":
        raise DumpError("a derivative rule of the user's, which no text holds")
    if row.infer is None:
        return
    if row.arity is None and not args and what != "doall":
        raise DumpError(f"{what} needs arguments")
    if row.arity is not None and len(args) != row.arity:
        raise DumpError(f"{what} takes {row.arity} arguments, not {len(args)}")
    for name, attribute, fits in zip(row.attributes, attrs, row.fits, strict=True):
        if not fits(attribute):
            raise DumpError(f"{attribute!r} is no {name} of {what}")
    if "weak" in row.attributes or what == "length":
        if weak is not (what == "length" or attrs[row.attributes.index("weak")]):
            raise DumpError(f"{what} that is {'weak' if weak else 'not weak'}")
    given, gives, _ = row.infer(args, attrs)
    if gives is not dtype:
        raise DumpError(f"{what} gives {gives.name}, not {dtype.name}")
    # Rewrites keep the axes of an elementwise op where its arguments give them in another order.
    arranged = row.kind == "elementwise" and axes_may_equal(given, axes)
    if given is not axes and not arranged:
        raise DumpError(f"{what} gives {given}, not {axes}")
