"""``checkpoint`` and ``remat``: recompute values in the backward sweep instead of storing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from ...errors import ArgumentError
from ..building.constants import as_tensor
from ..building.rebuild import with_args
from ..building.tree import mapped
from ..building.unused_effects import take
from ..core.argument_hints import explained
from ..core.source_info import describe, user_site
from ..core.traversal import is_bound
from ..nodes import carry_lines, carry_notes
from ..op_graph import Op, Tensor, annotate, post_order
from ..rows.effects import ASSIGN, assignment, storage_of
from ..rows.leaves import stand_in
from ..rows.remat_annotations import marked
from ..syntax.operators import is_function

if TYPE_CHECKING:
    from ..building.typing import Follows, Tags, TensorLike

P = ParamSpec("P")
R = TypeVar("R")

POLICIES: dict[str, Callable[[Op], bool]] = {
    "nothing": lambda op: False,
    "products": lambda op: op.primitive.kind == "contraction",
    "all": lambda op: True,
}


class Checkpointed(Generic[P, R]):
    """A function of tensors whose inner values are computed again; see ``checkpoint``."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return (
            f"<{getattr(self.function, '__qualname__', None) or repr(self.function)} checkpointed>"
        )

    def __call__(self, *args: P.args, **keywords: P.kwargs) -> R:
        """What the function returns, each tensor in it marked down to the arguments.

        Raises ``ArgumentError`` for arguments or results that contain themselves.
        """
        stands: dict[Op, Op] = {}

        def stand(op: Op) -> Op:
            if not isinstance(op, Tensor) or op.weak:
                return op
            if op not in stands:
                stands[op] = annotate(stand_in(op), op.name, (), ())
            return stands[op]

        given = mapped((args, keywords), stand, "the arguments of a checkpoint")
        returned: Any = self.function(*given[0], **given[1])
        return _closed(returned, {leaf: op for op, leaf in stands.items()})  # type: ignore[no-any-return]


@explained
def checkpoint(function: Callable[P, R]) -> Checkpointed[P, R]:
    """A function like ``function``, which keeps no values inside for what uses them later.

    Such uses are those of derivatives above all: the reverse sweep computes the values inside once
    more, from the arguments, when it comes to them. Memory is then taken by the arguments and
    results of such functions, and by the values inside one of them at a time; time, by computing
    these twice. Values are the same. Arguments and results are tensors and structures of them, and
    anything else; the function is called once, with placeholders for the tensors. Tensors that it
    reads beside its arguments are kept as these are, but random draws, which give the same numbers
    again. What prints or checks is done once, and effects are as they were. Checkpoints nest.
    Raises ``ArgumentError`` for what is no function.
    """
    if not is_function(function):
        raise ArgumentError(
            f"checkpoint at {describe(user_site())}: {function!r} is no function; give one, and "
            "call what is returned: geon.checkpoint(f)(x)"
        )
    return Checkpointed(function)


def _closed(returned: Any, arguments: dict[Op, Op]) -> Any:
    """What a function returned for stand-ins, of the real ``arguments``, its values marked."""
    roots: list[Op] = []
    mapped(returned, roots.append, "the results of a checkpoint")
    order = post_order(roots)
    take(order)  # an assignment is run as the one that it becomes
    inside = set(arguments)
    for op in order:
        if any(arg in inside for arg in op.args):
            inside.add(op)
    made = {**{op: op for op in order if op not in inside}, **arguments}
    for op in order:
        if op not in made:
            made[op] = _substituted(op, [made[arg] for arg in op.args])
    kept = [*arguments.values(), *_captures(order, inside)]

    def close(op: Op) -> Op:
        new = made[op]
        if op in arguments or op not in inside or not isinstance(new, Tensor):
            return new
        result = marked(new, kept, False)
        return annotate(result, op.name, op.tags, ())

    return mapped(returned, close, "the results of a checkpoint")


def _substituted(op: Op, args: list[Any]) -> Op:
    """``op`` of other arguments, with its names and lines."""
    if op.primitive is ASSIGN and storage_of(args[0]) is None:
        return assignment(*args)  # which says what is wrong with the target
    new = with_args(op, tuple(args))
    carry_lines(op, new)
    carry_notes(op, new)
    return new


def _captures(order: Iterable[Op], inside: set[Op]) -> list[Op]:
    """The computed ops outside that ops ``inside`` read; below what is made of draws, its own."""
    drawn: set[Op] = set()
    found: dict[Op, None] = {}
    stack = [arg for op in order if op in inside for arg in op.args if arg not in inside]
    for op in order:
        simple = op.primitive.kind in ("elementwise", "movement")
        if op.primitive.name == "random_bits" or simple and any(arg in drawn for arg in op.args):
            drawn.add(op)
    seen = set(stack)
    while stack:
        op = stack.pop()
        if op in drawn:
            stack += [arg for arg in op.args if arg not in seen]
            seen.update(op.args)
        elif isinstance(op, Tensor) and not is_bound(op):
            found[op] = None
    return list(found)


@explained
def remat(
    op: TensorLike,
    policy: str | Callable[[Op], bool] = "products",
    *,
    name: str | None = None,
    tags: Tags = (),
    follows: Follows = (),
) -> Tensor:
    """``op`` itself, of what lies below it only what ``policy`` says is kept for later uses.

    All else between variables, placeholders and ``op`` is computed again where it is used after
    ``op`` was computed, as derivatives do. ``policy`` is "nothing", "products" (results of
    contractions are kept), "all", or a function that says of an op below, when this is called,
    whether it is kept. Raises ``ArgumentError`` for another policy.
    """
    made = as_tensor(op)
    keep = POLICIES.get(policy) if isinstance(policy, str) else policy
    if not is_function(keep):
        raise ArgumentError(
            f"remat of {made} (made at {made.line_info}): policy={policy!r} is none of "
            f"{', '.join(map(repr, POLICIES))}, and no function of an op; give one of these"
        )
    if keep is POLICIES["all"]:
        return annotate(made, name, tags, follows)
    order = post_order([made])
    kept = [below for below in order if isinstance(below, Tensor) and not is_bound(below)]
    found = marked(made, [below for below in kept if keep(below)], True)
    return annotate(found, name, tags, follows)
