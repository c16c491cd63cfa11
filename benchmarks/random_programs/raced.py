# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""One random program by geon and by JAX in turns: its results, and derivatives of their sum."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import geon
from geon.op_graph.op_graph import Op, post_order
from geon.op_graph.values.dtypes import kind

from .as_jax import UnsaidError, as_jax
from .measured import is_finite
from .programs import Program

ROUNDS = 5  # turns of each
TURN = 0.06  # seconds of a turn
MOST = 3.0  # seconds after which a race is over, with two turns of each at least
REST = 0.05  # seconds between turns: threads of the other one spin on for a while
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-3, "float64": 2e-3}
STRAYS = 1e-4  # the part of elements that rounding may have sent elsewhere
Array = np.ndarray[Any, Any]
Call = Callable[[], Any]


def raced(program: Program, threads: int) -> dict[str, Any]:
    """The seconds that both take for the results, and for the derivatives where there are any."""
    found: dict[str, Any] = {"shown": str(program), "forward": race(program, program.results,
                                                                    None, threads)}  # fmt: skip
    total = summed(program)
    if total is not None and float_leaves(program, total):
        leaves = float_leaves(program, total)
        found["gradient"] = race(program, [total], leaves, threads)
    return found


def float_leaves(program: Program, total: Any) -> list[Any]:
    """The inputs in which a sum has a derivative."""
    below = used([total])
    return [x for x in program.placeholders if kind(x.dtype) == "f" and x in below]


def derivatives(program: Program, total: Any) -> list[Any]:
    """The derivatives of a sum in all of them."""
    return list(geon.deriv(total, float_leaves(program, total), unreached="zero"))


def used(roots: Sequence[Op]) -> set[Op]:
    """All ops below some."""
    return set(post_order(roots))


def summed(program: Program) -> Any:
    """The sum of all results that have a derivative that can be compared; None without any."""
    total: Any = None
    for op in program.smooth:
        one = geon.cast(geon.sum(op), "float32")
        total = one if total is None else total + one
    return total


def race(
    program: Program, results: list[Any], leaves: list[Any] | None, threads: int
) -> dict[str, Any]:
    """One computation: ``results``, or with ``leaves`` the derivatives of their only one."""
    below = used(results)
    pairs = [(leaf, array) for leaf, array in zip(program.placeholders, program.feeds, strict=True)
             if leaf in below]  # fmt: skip
    placeholders, feeds = [leaf for leaf, _ in pairs], [array for _, array in pairs]
    made = results if leaves is None else derivatives(program, results[0])
    with geon.make_transformer("native", threads=threads) as transformer:
        unfed = program.unfed(made, placeholders)
        f = transformer.computation(list(made), *placeholders, lengths=unfed)
        began = time.perf_counter()
        ours = [np.asarray(value) for value in f(*feeds)]
        first = time.perf_counter() - began
        try:
            g = in_jax(program, results, placeholders, leaves)
        except UnsaidError as error:
            return {"reason": str(error)}
        args = jax.device_put(feeds)
        began = time.perf_counter()
        theirs = [np.asarray(value) for value in jax.block_until_ready(g(*args))]
        their_first = time.perf_counter() - began
        fault = differs(ours, theirs)
        if fault is not None:
            fault = differs(ours, rounded(g, args))
        if fault is not None:
            return {"differs": fault}
        if not all(is_finite(value) for value in ours):
            return {"reason": "values that are not finite, the same ones in JAX"}
        times = in_turns(lambda: f(*feeds), lambda: jax.block_until_ready(g(*args)))
    return {
        "geon": statistics.median(map(statistics.median, times[0])),
        "jax": statistics.median(map(statistics.median, times[1])),
        "geon_best": min(map(min, times[0])), "jax_best": min(map(min, times[1])),
        "first": first, "jax_first": their_first,
    }  # fmt: skip


def in_jax(
    program: Program, results: list[Any], placeholders: list[Any], leaves: list[Any] | None
) -> Any:
    """The compiled function of JAX."""
    function = as_jax(results, placeholders, program.lengths)
    if leaves is None:
        return jax.jit(function)
    place = {leaf: number for number, leaf in enumerate(placeholders)}
    numbers = tuple(place[leaf] for leaf in leaves)
    return jax.jit(jax.grad(lambda *arrays: function(*arrays)[0], numbers))


def rounded(function: Any, args: Any) -> list[Array]:
    """The results of JAX's function, its halves rounded where the program says so: by itself XLA
    leaves out what only rounds.
    """
    options = {"xla_allow_excess_precision": False}
    compiled = jax.jit(function).lower(*args).compile(compiler_options=options)
    return [np.asarray(value) for value in jax.block_until_ready(compiled(*args))]


def in_turns(first: Call, second: Call) -> tuple[list[list[float]], list[list[float]]]:
    """The seconds of the calls of each turn; who begins changes about."""
    calls = (first, second)
    times: tuple[list[list[float]], list[list[float]]] = ([], [])
    slow = [timed(call) > TURN for call in calls]
    began = time.perf_counter()
    for number in range(ROUNDS):
        if number > 1 and time.perf_counter() - began > MOST:
            break
        for which in (0, 1) if number % 2 else (1, 0):
            time.sleep(REST)
            if not slow[which]:
                calls[which]()  # warms up
            taken = []
            end = time.perf_counter() + TURN
            while not taken or time.perf_counter() < end:
                taken.append(timed(calls[which]))
            times[which].append(taken)
    return times


def timed(call: Call) -> float:
    """The seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def differs(ours: list[Array], theirs: list[Array]) -> str | None:
    """Where two lists of results part; None where they agree.

    An infinity or NaN agrees with itself alone.
    """
    for k, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if x.shape != y.shape:
            return f"result {k} has the shape {x.shape}, JAX {y.shape}"
        if not x.size:
            continue
        wrong = apart(x, y)
        if wrong.mean() > STRAYS:
            at = tuple(int(each) for each in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            return (
                f"result {k} is {x[at]} at {at}, JAX {y[at]}; "
                f"{int(wrong.sum())} of {wrong.size} elements differ"
            )
    return None


def apart(x: Array, y: Array) -> Any:
    """Which elements of two arrays differ by more than rounding."""
    if kind(x.dtype) != "f":
        return np.asarray(x != y)
    a, b = x.astype(np.float64), y.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    spread = float(np.sqrt(np.mean(b[finite] ** 2))) if finite.any() else 0.0
    with np.errstate(invalid="ignore"):
        far = np.abs(a - b) > TOLERANCE[x.dtype.name] * (np.abs(b) + spread) + 1e-6
    return np.where(finite, far, ~same)
