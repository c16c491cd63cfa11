"""What only written modules use: functions of theirs, first values, and arrays in the text."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import IndexRangeError, NonFiniteError
from .arguments import arrange
from .calls import Call, explained
from .result_structure import Layout
from .state import Slot, State


class Function:
    """A call as a written module has it: arguments by name, errors that name ops, one result.

    ``names`` are those of the placeholders, ``values`` says for each result whether it is a value
    (an effect gives None), ``single`` whether it is given as it is rather than in a tuple;
    ``kernels`` describes those that can raise; ``layout`` is the structure of the results where
    that is no tuple.
    """

    def __init__(
        self,
        call: Call,
        names: Sequence[str | None],
        values: Sequence[bool],
        single: bool,
        kernels: Mapping[int, str],
        layout: Layout | None = None,
    ) -> None:
        self.call, self.names, self.values, self.single = call, names, values, single
        self.kernels, self.layout = kernels, layout

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The results for these values of the placeholders."""
        arranged = arrange(self.names, len(self.names), args, keywords)
        try:
            computed = iter(self.call(*arranged))
        except (IndexRangeError, NonFiniteError) as error:
            raise explained(error, self.kernels.get) from None
        results = tuple([next(computed) if is_value else None for is_value in self.values])
        if self.layout is not None:
            return self.layout.filled(iter(results))
        return results[0] if self.single else results


def starter(
    state: State, slot: Slot, value: Any, call: Callable[[], Any] | None
) -> Callable[[], None]:
    """What gives a variable its first value: an array or None, then a call or None."""

    def start() -> None:
        if value is not None:
            state.put(slot, value)
        if call is not None:
            call()

    return start


def decoded(dtype: Any, shape: tuple[int, ...], text: str) -> Any:
    """The read-only array whose bytes ``text`` holds in base 64."""
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)
