"""Workloads, one after the other, by all contenders in turn."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from .processes import Lost, Process
from .worker import Digest
from .workloads import Workload

TURN = 0.08  # seconds of a contender's turn in a round
MOST = 5.0  # seconds that one contender may spend in all rounds of a workload
REST = 0.25  # seconds: threads of the one before (of OpenBLAS, OpenMP) spin on for a while


def differs(ours: Digest, theirs: Digest, rtol: float) -> str | None:
    """Where two lists of results part, or None where they agree."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for k, ((size, norm, shown), (their_size, their_norm, wanted)) in enumerate(
        zip(ours, theirs, strict=True)
    ):
        if size != their_size:
            return f"result {k} has {size} elements, not {their_size}"
        if not abs(norm - their_norm) <= rtol * their_norm:
            return f"result {k} has the norm {norm:.6g}, not {their_norm:.6g}"
        spread = np.sqrt(np.mean(wanted**2)) if wanted.size else 0.0
        off = np.abs(shown - wanted) - rtol * (np.abs(wanted) + spread)
        if wanted.size and not off.max() <= 0:
            at = int(off.argmax())
            return f"result {k} has {shown[at]:.6g}, not {wanted[at]:.6g}"
    return None


def agreeing(results: dict[str, Digest], rtol: float) -> tuple[set[str], dict[str, str]]:
    """The contenders that agree with one whom most agree with, and how the others differ."""
    best: dict[str, str | None] = {}
    for wanted in results.values():
        found = {name: differs(one, wanted, rtol) for name, one in results.items()}
        if not best or _agreed(found) > _agreed(best):
            best = found
    same = {name for name, how in best.items() if how is None}
    return same, {name: how for name, how in best.items() if how is not None}


def _agreed(found: dict[str, str | None]) -> int:
    return sum(how is None for how in found.values())


def compete(
    workload: Workload, processes: dict[str, Process], rounds: int, quick: bool
) -> dict[str, dict[str, Any]]:
    """Each contender's figures, or the reason why it has none."""
    outcome: dict[str, dict[str, Any]] = {}
    results: dict[str, Digest] = {}
    for name, process in processes.items():
        try:
            if workload.kind not in process.ask("kinds"):
                outcome[name] = {"reason": "not expressed"}
                continue
            made = process.ask("prepare", workload.name, quick)
            results[name] = made.pop("results")
            outcome[name] = made
        except Lost as lost:
            outcome[name] = {"reason": str(lost)}
    same, different = agreeing(results, workload.rtol)
    for name, how in different.items():
        outcome[name] = {"reason": f"disagrees: {how}"}
    playing = [name for name in processes if name in same]
    take_turns(playing, processes, outcome, rounds)
    for name in playing:
        try:
            outcome[name]["memory"] = processes[name].ask("memory")
        except Lost as lost:
            outcome[name]["memory"], outcome[name]["memory_reason"] = None, str(lost)
    for name in results:
        try:
            processes[name].ask("drop")
        except Lost:
            pass  # the next workload starts another process
    return outcome


def take_turns(
    playing: list[str],
    processes: dict[str, Process],
    outcome: dict[str, dict[str, Any]],
    rounds: int,
) -> None:
    """Put the median seconds of a call, and those of each round, into the outcome."""
    times: dict[str, list[list[float]]] = {name: [] for name in playing}
    spent = dict.fromkeys(playing, 0.0)
    for number in range(rounds):
        shift = number % max(1, len(playing))
        for name in playing[shift:] + playing[:shift]:
            if name not in times or (spent[name] > MOST and len(times[name]) > 1):
                continue
            time.sleep(REST)
            start = time.perf_counter()
            try:
                times[name].append(processes[name].ask("run", TURN))
            except Lost as lost:
                del times[name]
                outcome[name] = {"reason": str(lost)}
            spent[name] += time.perf_counter() - start
    for name, found in times.items():
        every = [t for one in found for t in one]
        outcome[name] |= {
            "median": statistics.median(statistics.median(one) for one in found),
            "best": min(every),
            "samples": len(every),
            "rounds": [statistics.median(one) for one in found],
        }
