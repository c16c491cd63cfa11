"""Measurement of a profile: whole calls and timed ones in turn, on copies of the variables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import AxisError, IndexRangeError, LinearAlgebraError, NonFiniteError, SizeError
from ...op_graph.op_graph import Op
from ..binding.complex_calls import program_values
from ..computation import Computation
from ..runtime.calls import CompiledCall
from .call_errors import about_ops
from .profile_table import Profile, checked_repeats, quiet


class ProfiledCalls:
    """A normal and a timed program with the same kernels, arena and copies of variables.

    A class of a target defines the methods that raise ``NotImplementedError`` here, ``functions``
    of the normal program as ``Transformer.link`` takes them, ``prints``, which is True if the
    computation prints, and the ``kind`` of its calls. After ``further_calls`` more, a call takes as
    long as all later ones.
    """

    kind: type[CompiledCall] = CompiledCall
    further_calls = 0
    functions: Sequence[Callable[..., Any]]
    prints: bool

    def __init__(self, computation: Computation, given: tuple[Op, ...]) -> None:
        self.transformer, self.stages = computation.transformer, computation.stages(given)

    def copied(self, value: Any) -> Any:
        """Return a copy of a variable's value."""
        raise NotImplementedError

    def bind_timed(self, *bound: Any) -> None:
        """Bind the timed program to an arena, offsets, copies of variables, constants, lengths."""
        raise NotImplementedError

    def run_timed(self, inputs: tuple[Any, ...]) -> bool:
        """Make a timed call; return True if a kernel failed, which every such call does."""
        raise NotImplementedError

    def end(self, inputs: tuple[Any, ...], repeats: int) -> None:
        """Measure what else a target needs, after all calls; by default nothing."""

    def result(self, calls: Sequence[float], repeats: int) -> Profile:
        """Return the profile, from the timed calls and the seconds of the whole ``calls``."""
        raise NotImplementedError

    def call(self) -> Callable[..., Any]:
        """Return a call as the computation makes it, but on copies of the variables."""
        bind, *others = self.functions

        def bind_both(
            arena: Any, offsets: Any, variables: Any, constants: Any, lengths: Any
        ) -> Any:
            bound = (arena, offsets, [*map(self.copied, variables)], constants, lengths)
            self.bind_timed(*bound)
            return bind(*bound)

        return self.transformer.link(
            (bind_both, *others), self.stages, writes=False, kind=self.kind
        )

    def inputs(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return these values as the arrays that a call reads."""

        def run(bound: None, *inputs: Any) -> tuple[Any, ...]:
            return inputs

        functions = (lambda *bound: None, run, self.functions[2])
        found: tuple[Any, ...] = self.transformer.link(functions, self.stages, writes=False)(
            *values
        )
        return found

    def profile(self, given: Sequence[Any], repeats: int) -> Profile:
        """Return the medians of ``repeats`` calls, in total and by kernel."""
        values, call = program_values(self.stages, given), self.call()
        calls: list[float] = []

        def whole() -> None:
            begin = time.perf_counter()
            call(*values)
            calls.append(time.perf_counter() - begin)

        def timed() -> None:
            if self.run_timed(inputs):
                call(*values)  # fails too, as variables are unchanged, and raises the error

        with quiet(self.prints):
            call(*values)
            inputs = self.inputs(values)
            for _ in range(self.further_calls):
                call(*values)
            for turn in range(repeats):
                # The order alternates, so that preemption does not hit one of the two alone.
                for run in (timed, whole) if turn % 2 else (whole, timed):
                    run()
            self.end(inputs, repeats)
        return self.result(calls, repeats)


def profile_calls(
    make: Callable[[Computation, tuple[Op, ...]], ProfiledCalls],
    computation: Computation,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    repeats: int,
) -> Profile:
    """Return the profile of a computation for these values of its placeholders.

    ``make`` returns the calls of a target. Raises what a call raises.
    """
    checked_repeats(repeats)
    values = (*computation.arranged(args, keywords), *computation.given.values())
    given = tuple(computation.given)
    try:
        return make(computation, given).profile(values, repeats)
    except (AxisError, IndexRangeError, LinearAlgebraError, NonFiniteError, SizeError) as error:
        raise about_ops(error, computation.stages(given), values) from None
