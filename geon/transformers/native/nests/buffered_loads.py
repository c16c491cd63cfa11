"""Emit buffered loads: arrays that are filled ahead of a loop for some of its iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....op_graph.axes.affine import Size
from ...loops.values_ahead import MAX_BUFFERED_TURNS
from ...printing.nests.buffered_loads import PrintedStage
from ...printing.nests.loop_lines import for_loop, indent
from ..names.dialect import SIMD

UNROLLED = "#pragma GCC unroll 16"  # by itself a compiler unrolls only shorter loops


def with_stages(
    stages: Sequence[PrintedStage],
    variable: str,
    bounds: tuple[str, str],
    extent: Size,
    loop: Callable[[str, str], list[str]],
) -> list[str]:
    """Return the innermost loop of a pass between ``bounds``, with the buffers that it reads.

    ``loop`` returns its text for given bounds. ``extent`` is its maximum number of iterations; a
    longer loop is cut into parts of ``MAX_BUFFERED_TURNS``.
    """
    low, high = bounds
    if not stages:
        return loop(low, high)
    if isinstance(extent, int) and extent <= MAX_BUFFERED_TURNS:
        return ["{", *indent([*_filled(stages, low, high, extent), *loop(low, high)]), "}"]
    first, stop = f"{variable}_ahead", f"{variable}_ahead_stop"  # differ from those of random bits
    lines = [
        f"{stop} = {high} - {first} < {MAX_BUFFERED_TURNS} ? {high} : {first} + "
        f"{MAX_BUFFERED_TURNS};",
        *_filled(stages, first, stop, MAX_BUFFERED_TURNS),
        *loop(first, stop),
    ]
    head = f"for (int64_t {first} = {low}, {stop}; {first} < {high}; {first} = {stop}) {{"
    return [head, *indent(lines), "}"]


def _filled(stages: Sequence[PrintedStage], low: str, high: str, turns: int) -> list[str]:
    """Return the statements that fill buffers for iterations ``low`` to before ``high``."""
    lines = []
    for stage in stages:
        name, period = stage.name, stage.period
        size = turns + 2 * period if period > 1 else turns
        start = low if period == 1 else f"({low}) / {period} * {period}"
        lines += [f"{stage.ctype} {name}[{size}];", f"const int64_t {name}_from = {start};"]
        if stage.every:
            lines += _sparse(stage, low, high)
            continue
        if period == 1:
            body = [*stage.before, f"{name}[{stage.first} - {low}] = {stage.source};"]
            lines += [SIMD, *for_loop(stage.first, low, high, body)]
            continue
        head = f"for (int64_t {stage.first} = {name}_from / {period}; "
        head += f"{stage.first} * {period} < {high}; {stage.first}++) {{"
        lines += [head, *indent(_period(stage)), "}"]
    return lines


def _sparse(stage: PrintedStage, low: str, high: str) -> list[str]:
    """Return the statements that fill a buffer of which few elements are nonzero."""
    name, every = stage.name, stage.every
    rest = f"(({low}) + ({stage.shift})) % {every}"
    begin = f"{low} + ({every} - ({rest})) % {every}"
    body = [*stage.before, f"{name}[{stage.first} - {name}_from] = {stage.source};"]
    head = f"for (int64_t {stage.first} = {begin}; {stage.first} < {high}; "
    return [
        f"memset({name}, 0, sizeof {name});",
        f"{head}{stage.first} += {every}) {{",
        *indent(body),
        "}",
    ]


def _period(stage: PrintedStage) -> list[str]:
    """Return the statements that fill one period of a buffer."""
    digits = list(stage.digits)
    places = []
    step = stage.period
    for digit, length in digits:
        step //= length
        places.append(f"{digit} * {step}" if step != 1 else digit)
    base = f"{stage.first} * {stage.period} - {stage.name}_from"
    if stage.run is not None:
        digits, (_, length) = digits[:-1], digits[-1]
        place = " + ".join([stage.name, base, *places[:-1]])
        body = [f"memcpy({place}, {stage.run}, {length} * sizeof *{stage.name});"]
    else:
        place = " + ".join([base, *places])
        body = [*stage.before, f"{stage.name}[{place}] = {stage.source};"]
    for digit, length in reversed(digits):
        body = [UNROLLED, *for_loop(digit, "0", str(length), body)]
    return body
