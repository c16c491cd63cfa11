"""Workloads of ``benchmarks/peers`` on the native transformer, profiled kernel by kernel."""

from __future__ import annotations

import inspect
from typing import Any

import geon
from geon.transformers.native.reports.profile import Profile

from .peers import geon_work, workloads


def profiled(name: str, threads: int, repeats: int) -> tuple[geon.Computation, Any]:
    """A workload's last computation, and its profile of ``repeats`` calls."""
    made: list[geon.Computation] = []

    class Noting(geon.NativeTransformer):
        def computation(self, *args: Any, **keywords: Any) -> geon.Computation:
            made.append(super().computation(*args, **keywords))
            return made[-1]

    geon_work.transformer = lambda: Noting(threads=threads)
    workload = workloads.named(name)
    prepared = geon_work.BUILDERS[workload.kind](workload.sized(False), workload.inputs(False))
    held = (
        inspect.getclosurevars(prepared.call).nonlocals if inspect.isfunction(prepared.call) else {}
    )
    data = held.get("data", getattr(prepared.call, "args", ()))
    return made[-1], made[-1].profile(*data, repeats=repeats)


def profiles(name: str, threads: int, rounds: int, repeats: int) -> list[Profile]:
    """``rounds`` profiles of a workload, each of ``repeats`` calls."""
    return [profiled(name, threads, repeats)[1] for _ in range(rounds)]
