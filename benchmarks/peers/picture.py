# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""The picture of a run: each peer's time over geon's, one line for each workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .processes import CONTENDERS, OURS

MARKS = "osD^vP*Xdh<>"


def draw(run: dict[str, Any], path: Path) -> None:
    """Write a PNG; ``ImportError`` where there is no matplotlib."""
    from matplotlib.figure import Figure

    rows = [row for row in run["workloads"] if "median" in row["contenders"].get(OURS, {})]
    figure = Figure(figsize=(9, 1.5 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for name, mark in zip(run["contenders"], MARKS, strict=False):
        points = [
            (row["contenders"][name]["median"] / row["contenders"][OURS]["median"], at)
            for at, row in enumerate(rows)
            if name != OURS and "median" in row["contenders"][name]
        ]
        if points:
            axes.scatter(*zip(*points, strict=True), marker=mark, label=CONTENDERS[name], zorder=2)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [row["title"] for row in rows])
    axes.invert_yaxis()
    axes.grid(axis="x", which="both", alpha=0.3)
    axes.set_xlabel("time over geon's; right of 1 geon is faster")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside upper center", ncols=4)
    figure.savefig(path, dpi=110)
