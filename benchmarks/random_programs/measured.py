"""One random program, measured: the seconds of each kernel and of a call beside their ceilings."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

import geon
from geon.op_graph.values.dtypes import kind
from geon.transformers.native.machine.measured_machine import machine
from geon.transformers.native.names.naming import place_of

from .ceiling import kernel_ceilings, program_ceiling
from .programs import Program
from .structure_text import structure_text, trait

ENOUGH = 0.4  # seconds that the calls of one program take together, about
FEWEST, MOST = 3, 1000  # calls of one round
ROUNDS = 5  # profiles, whose fastest median counts: other programs slow down some of them


def measured(program: Program, threads: int, repeats: int = 0) -> dict[str, Any]:
    """What a program takes, as plain values, in rounds of ``repeats`` calls or of enough ones."""
    with geon.make_transformer("native", threads=threads) as transformer:
        f = transformer.computation(program.results, *program.placeholders, lengths=program.unfed())
        began = time.perf_counter()
        values = f(*program.feeds)
        first = time.perf_counter() - began
        began = time.perf_counter()
        f(*program.feeds)
        once = time.perf_counter() - began
        calls = repeats or int(min(max(ENOUGH / max(once, 1e-6) / 2 / ROUNDS, FEWEST), MOST))
        profiles = [f.profile(*program.feeds, repeats=calls) for _ in range(ROUNDS)]
        fastest = [min(rows, key=lambda row: row.seconds) for rows in zip(*profiles, strict=True)]
        plan = f.stages().plan
        on = machine(threads, measure=True)
        lengths = program.lengths
        place = partial(place_of, plan)
        ceilings = kernel_ceilings(plan.schedule, lengths, on, threads, place)
        least = program_ceiling(list(f.stages().program.roots), lengths, on, threads)
        rows = [
            {
                "number": row.number,
                "computes": row.computes[0],
                "seconds": row.seconds,
                "least": ceiling.seconds,
                "by": ceiling.by,
                "alone": row.least,
                "predicted": row.predicted,
                "trait": trait(kernel.work, lengths),
                "structure": structure_text(kernel.work, lengths),
            }
            for kernel, row, ceiling in zip(plan.schedule.kernels, fastest, ceilings, strict=True)
        ]
    return {
        "shown": str(program),
        "finite": all(is_finite(value) for value in values),
        "first": first,
        "seconds": min(each.call_seconds for each in profiles),
        "kernel_seconds": sum(row.seconds for row in fastest),
        "least": least,
        "calls": calls,
        "kernels": rows,
    }


def is_finite(value: Any) -> bool:
    """Whether no element is infinite or not a number."""
    return kind(value.dtype) != "f" or bool(np.isfinite(value.astype(np.float64)).all())
