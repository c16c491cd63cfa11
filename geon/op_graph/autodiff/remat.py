"""``checkpoint`` and ``remat``: recompute values in the backward sweep instead of storing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from ...errors import ArgumentError
from ..building.constants import as_tensor
from ..building.rebuild import rebuild
from ..building.unused_effects import take
from ..core.argument_hints import Dispatch, public
from ..core.source_info import user_call
from ..core.traversal import is_bound
from ..op_graph import Op, Tensor, post_order
from ..rows.effects import ASSIGN, assignment, storage_of
from ..rows.leaves import stand_in
from ..rows.remat_annotations import mark_remat
from ..syntax.operators import is_function
from ..values.tree import flat

if TYPE_CHECKING:
    from ..building.typing import OpKeywords, TensorLike

P = ParamSpec("P")
R = TypeVar("R")

POLICIES: dict[str, Callable[[Op], bool]] = {
    "nothing": lambda op: False,
    "products": lambda op: op.primitive.kind == "contraction",
    "all": lambda op: True,
}


class Checkpointed(Generic[P, R]):
    """A function of tensors whose intermediate values are recomputed; see ``checkpoint``."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return (
            f"<{getattr(self.function, '__qualname__', None) or repr(self.function)} checkpointed>"
        )

    def __call__(self, *args: P.args, **keywords: P.kwargs) -> R:
        """Return the result of the function, with its tensors marked for recomputation.

        Raises ``ArgumentError`` for arguments or results that contain themselves.
        """
        if Dispatch.hook is not None:
            result = Dispatch.hook(self, args, keywords)
            if result is not NotImplemented:
                return result  # type: ignore[no-any-return]  # of the same structure
        placeholders: dict[Op, Op] = {}

        def placeholder_of(op: Op) -> Op:
            if not isinstance(op, Tensor) or op.weak:
                return op
            if op not in placeholders:
                placeholders[op] = stand_in(op)._annotate(op.name)
            return placeholders[op]

        given = _map_ops((args, keywords), placeholder_of, "the arguments of a checkpoint")
        returned: Any = self.function(*given[0], **given[1])
        return _closed(returned, {leaf: op for op, leaf in placeholders.items()})  # type: ignore[no-any-return]


@public
def checkpoint(function: Callable[P, R]) -> Checkpointed[P, R]:
    """Return a function like ``function`` whose intermediate values are recomputed, not stored.

    Derivatives are the main use: the reverse sweep recomputes the intermediate values from the
    arguments when it needs them. Memory then holds the arguments and results of such functions, and
    the intermediate values of one of them at a time; these are computed twice. The values are the
    same. Arguments and results are tensors, structures of tensors, and any other values; the
    function is called once, with placeholders for the tensors. Other tensors that it reads are
    stored like arguments, except random draws, which are drawn again with the same numbers. Prints
    and checks run once, and effects are unchanged. Checkpoints nest. Raises ``ArgumentError`` if
    ``function`` is no function.
    """
    if not is_function(function):
        raise ArgumentError(
            f"{user_call('checkpoint')}: {function!r} is no function; give one, and call what is "
            "returned: geon.checkpoint(f)(x)"
        )
    return Checkpointed(function)


def _closed(returned: Any, arguments: dict[Op, Op]) -> Any:
    """Return a function's result with stand-ins replaced by ``arguments``, and values marked."""
    roots: list[Op] = []
    _map_ops(returned, roots.append, "the results of a checkpoint")
    order = post_order(roots)
    take(order)  # assignments are replaced below; the originals need no warning
    inside = set(arguments)
    for op in order:
        if any(arg in inside for arg in op.args):
            inside.add(op)
    made = {**{op: op for op in order if op not in inside}, **arguments}
    rebuild(roots, _assigned, made)
    kept = [*arguments.values(), *_captures(order, inside)]

    def close(op: Op) -> Op:
        new = made[op]
        if op in arguments or op not in inside or not isinstance(new, Tensor):
            return new
        result = mark_remat(new, kept, False)
        return result._annotate(op.name, op.tags)

    return _map_ops(returned, close, "the results of a checkpoint")


def _map_ops(value: Any, change: Callable[[Op], Any], what: str) -> Any:
    """Return the same structure with ``change`` applied to each op; other values are unchanged.

    Raises ``ArgumentError``, with ``what`` as the value's name, for a structure that contains
    itself.
    """
    named, structure = flat(value, what)
    return structure.filled(change(v) if isinstance(v, Op) else v for _, v in named)


def _assigned(op: Op, args: tuple[Any, ...]) -> Op | None:
    """Raise an error about the target of an assignment that is no storage any more."""
    if op.primitive is ASSIGN and storage_of(args[0]) is None:
        return assignment(*args)
    return None


def _captures(order: Iterable[Op], inside: set[Op]) -> list[Op]:
    """Return the computed ops outside that ops ``inside`` read.

    A value computed from random draws is replaced by the ops below it.
    """
    drawn: set[Op] = set()
    reached: dict[Op, None] = {}
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
            reached[op] = None
    return list(reached)


@public
def remat(
    op: TensorLike, policy: str | Callable[[Op], bool] = "products", **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return ``op``, with only the values below it stored for later uses that ``policy`` selects.

    All other values between variables, placeholders and ``op`` are recomputed if they are used
    after ``op`` was computed, as derivatives do. ``policy`` is "nothing", "products" (results of
    contractions are stored), "all", or a function that is called with each op below and returns
    True to store it. Raises ``ArgumentError`` for another policy.
    """
    result = as_tensor(op)
    keep = POLICIES.get(policy) if isinstance(policy, str) else policy
    if not is_function(keep):
        raise ArgumentError(
            f"remat of {result} (made at {result.line_info}): policy={policy!r} is none of "
            f"{', '.join(map(repr, POLICIES))}, and no function of an op; give one of these"
        )
    if keep is POLICIES["all"]:
        return result
    order = post_order([result])
    kept = [below for below in order if isinstance(below, Tensor) and not is_bound(below)]
    return mark_remat(result, [below for below in kept if keep(below)], True)
