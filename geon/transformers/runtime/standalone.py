"""Functions, initial values and embedded arrays of modules made by ``Transformer.write``."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import IndexRangeError, LinearAlgebraError, NonFiniteError
from ...op_graph.values.tree import Structure
from .arguments import arrange
from .calls import CompiledCall, explain_error
from .state import Slot, State


class Function:
    """A computation's function in a written module.

    ``names`` are those of the placeholders. ``values`` has for each result whether it is a value
    (an effect gives None). ``single`` is True if the result is returned alone rather than in a
    tuple. ``kernels`` describes those that can raise. ``layout`` is the structure of the results if
    that is no tuple.
    """

    def __init__(
        self,
        call: CompiledCall,
        names: Sequence[str | None],
        values: Sequence[bool],
        single: bool,
        kernels: Mapping[int, str],
        layout: Structure | None = None,
    ) -> None:
        self.call, self.names, self.values, self.single = call, names, values, single
        self.kernels, self.layout = kernels, layout

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Return the results for these values of the placeholders."""
        arranged = arrange(self.names, len(self.names), args, keywords)
        try:
            computed = iter(self.call(*arranged))
        except (IndexRangeError, LinearAlgebraError, NonFiniteError) as error:
            raise explain_error(error, self.kernels.get) from None
        results = tuple([next(computed) if is_value else None for is_value in self.values])
        if self.layout is not None:
            return self.layout.filled(iter(results))
        return results[0] if self.single else results


def starter(
    state: State, slot: Slot, value: Any, call: Callable[[], Any] | None
) -> Callable[[], None]:
    """Return a function that sets a variable's initial value, from an array and a call.

    Either may be None.
    """

    def start() -> None:
        if value is not None:
            state.put(slot, value)
        if call is not None:
            call()

    return start


def decoded(dtype: Any, shape: tuple[int, ...], text: str) -> Any:
    """Return a read-only array from its bytes in base 64."""
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)
