"""``Row``: an operator as one row of a table, from which its prototype is made.

A row states the slots. Attributes are the keyword-only parameters of its function: a default, or a
type such as ``INTS`` for one that is required. A function made of others by ``with_attributes`` has
theirs. ``ATTRIBUTES`` has their comments and checks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ....errors import ArgumentError
from ....op_graph.values.dtypes import ALL_DTYPES
from ...positional.values import Size
from ..registry import REQUIRED, Attribute, Check, at_least, in_range, one_of, register_operator

Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Needed:
    """The default of a required attribute: its type."""

    type: str


INT: Any = Needed("int")
FLOAT: Any = Needed("float")
INTS: Any = Needed("ints")
BLOCK: Any = Needed("block")
FLOATS: Any = Needed("floats")
STRING: Any = Needed("string")
TYPES = {int: "int", float: "float", bool: "bool", str: "string"}  # of attributes by default

SHARE = in_range(0, 1)
# Comment and check of attributes by name.
ATTRIBUTES: dict[str, tuple[str, Check | None]] = {
    name: (comment, check)
    for names, comment, check in [
        ("axis dim", "position; negative ones count from the end", None),
        ("axes perm", "positions; negative ones count from the end", None),
        ("keep_dim", "True to keep reduced positions with length 1", None),
        ("reduce_all", "True to reduce over all positions", None),
        ("exclusive", "True to leave out the element itself, or elements outside", None),
        ("reverse is_reverse", "True to begin at the end", None),
        ("sub_block true_block false_block", "block that it runs", None),
        ("condition", "position of the condition among what is carried", None),
        ("carried true_rows false_rows", "positions of inputs: what a block writes, or rows", None),
        ("max_steps capacity", "largest number of steps, or of tensors", None),
        ("shape", "lengths; -1 is derived from the data", at_least(-1)),
        ("dtype out_dtype", "name of the dtype of the result",
         Check(lambda v: v in ALL_DTYPES, "a dtype of geon, such as 'float32'")),
        ("value pad_value", "number of the new elements", None),
        ("seed", "of the draws; 0 takes one of the program", at_least(0)),
        ("epsilon eps", "number added against division by 0, or limit", at_least(0)),
        ("dropout_prob", "probability of 0", SHARE),
        ("is_test", "True for inference", None),
        ("strides", "steps between windows", at_least(1)),
        ("paddings", "elements before and after", at_least(0)),
        ("dilations", "steps inside of a window", at_least(1)),
        ("ksize", "lengths of windows", at_least(1)),
        ("groups group", "number of groups of channels", at_least(1)),
        ("depth num num_rows", "a count", at_least(0)),
        ("k", "a count, or what is added to sums of squares", at_least(0)),
        ("repeats num_segments", "a count", at_least(0)),
        ("decay_steps warmup_steps d_model", "number of steps, or width of a model", at_least(1)),
        ("n", "an order, or a number of channels", None),
        ("correction", "number by which the count of elements is less in a variance", None),
        ("q", "share of the elements below", SHARE),
        ("method", "interpolation of elements, such as linear, lower or nearest", None),
        ("order", "name of the norm", None),
        ("p", "exponent of the norm", at_least(0)),
        ("check", "True to raise an error for a matrix that has no result", None),
        ("wide", "True for more columns than rows, where lengths are open", None),
        ("normalization", "factor: of the inverse alone (backward), of both (ortho), or forward",
         one_of("backward", "ortho", "forward")),
        ("is_forward", "False for the inverse", None),
        ("last_dim_size", "length of the result along the last of axes; 0 for an even one",
         at_least(0)),
        ("window_length bins", "a count", at_least(1)),
        ("periodic", "False for a symmetric window", None),
        ("side", "left or right of equal elements", one_of("left", "right")),
        ("fill", "what stands behind the elements that are found", None),
        ("increasing", "False for descending powers", None),
        ("lower", "True for the lower triangle", None),
        ("unit", "True to take the diagonal to be 1", None),
        ("dx", "distance of neighbouring elements", None),
        ("rtol atol", "largest difference, relative or absolute", at_least(0)),
        ("momentum mu beta1 beta2 rho", "smoothing factor", SHARE),
        ("pooling_type", "reduction of a window", one_of("max", "avg")),
        ("pooltype", "reduction of a sequence",
         one_of("SUM", "AVERAGE", "SQRT", "MAX", "MIN", "FIRST", "LAST")),
        ("mode", "see the operator", None),
        ("gate_activation cell_activation candidate_activation activation", "function of elements",
         one_of("sigmoid", "tanh", "relu", "identity")),
        ("use_peepholes", "True if gates read the state", None),
        ("origin_mode", "True for the update gate as the share of the old state", None),
        ("reduction", "of the losses", one_of("none", "mean", "sum", "batchmean")),
        ("soft_label", "True for distributions as labels, instead of indices", None),
        ("ignore_index padding_idx", "index that counts as none; negative for no such", None),
        ("max_norm", "largest norm", at_least(0)),
        ("lazy_mode", "True to change only the rows that a gradient has", None),
        ("std sigma", "standard deviation, or scale", at_least(0)),
        ("input_dim_idx output_dim_idx", "position of the length of the batch", at_least(0)),
    ]
    for name in names.split()
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Row:
    """An operator: its type, its function, its slots as in ``register_operator``, and a comment.

    ``gradient`` is True to derive one, False for none, or a function. The default of ``comment`` is
    the docstring of ``f``. ``takes_rows`` is as in ``OpInfo``.
    """

    type: str
    f: Function
    comment: str = ""
    inputs: str = "X"
    outputs: str = "Out"
    gradient: bool | Function = True
    takes_rows: bool = False


def matched(count: Size, **lists: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Return the tuples of numbers of attributes, which have ``count`` each.

    Raises ``ArgumentError`` that names another one.
    """
    for name, values in lists.items():
        if len(values) != count:
            given = ", ".join(map(str, values))
            raise ArgumentError(f"{name}=[{given}] has {len(values)} numbers; give {count}")
    return zip(*lists.values(), strict=True)


def register(rows: Iterable[Row]) -> None:
    """Register operators by their rows."""
    for row in rows:
        register_operator(
            row.type,
            row.f,
            row.inputs.split(),
            row.outputs.split(),
            attributes(row.f),
            gradient=row.gradient if callable(row.gradient) else None,
            differentiable=row.gradient is not False,
            positional=True,
            takes_rows=row.takes_rows,
            comment=row.comment or inspect.getdoc(row.f) or "",
        )


def defaults_of(f: Function) -> dict[str, Any]:
    """Return the defaults of the attributes that a function has, by name."""
    own: dict[str, Any] | None = getattr(f, "attributes", None)
    kinds = inspect.Parameter
    listed = inspect.signature(f).parameters.values() if own is None else ()
    return own or {p.name: p.default for p in listed if p.kind is kinds.KEYWORD_ONLY}


def settings_of(f: Function) -> dict[str, Any]:
    """Return the parameters of a function of geon that are numbers, flags or texts by default."""
    own: dict[str, Any] | None = getattr(f, "attributes", None)
    listed = inspect.signature(f).parameters.values() if own is None else ()
    return own or {p.name: p.default for p in listed if type(p.default) in TYPES}


def with_attributes(build: Function, *sources: Function | Mapping[str, Any]) -> Function:
    """Return ``build``, whose attributes are those of functions, and defaults by name."""
    given = [defaults_of(each) if callable(each) else each for each in sources]
    build.attributes = {k: v for each in given for k, v in each.items()}  # type: ignore[attr-defined]  # of defaults_of
    return build


def attributes(f: Function) -> list[Attribute]:
    """Return the attributes of an operator from the defaults that its function has for them."""
    found = []
    for name, value in defaults_of(f).items():
        comment, check = ATTRIBUTES.get(name, ("as in the formula", None))
        if isinstance(value, Needed):
            kind, value = value.type, REQUIRED
        else:
            kind = "ints" if isinstance(value, tuple) else TYPES[type(value)]
        found.append(Attribute(name, kind, value, comment, check))
    return found
