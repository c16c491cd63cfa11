"""Rejection: candidates for all elements at once until each has accepted one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..op_graph import Tensor
from ..regions.while_loop import while_loop
from ..rows.elementwise import cast, not_equal, where
from ..rows.logic import logical_not, logical_or
from ..rows.reductions import any as any_of


def until_all(
    attempt: Callable[[], tuple[Tensor, Tensor]], init: Tensor, done: Tensor | None = None
) -> Tensor:
    """Return for each element the first candidate that ``attempt`` accepts.

    ``attempt`` builds draws, which differ from step to step, and returns truth values and
    candidates over the axes of ``init``. Elements that are ``done`` at first keep ``init``.
    """

    def step(carries: Any) -> Any:
        was_done, kept = carries
        accepted, candidate = attempt()
        return logical_or(was_done, accepted), where(was_done, kept, candidate)

    first = cast(not_equal(init, init), "bool") if done is None else done
    last: tuple[Tensor, Tensor] = while_loop(
        lambda carries: any_of(logical_not(carries[0])), step, (first, init)
    )
    return last[1]
