"""The table of a run: as text, and as the page ``benchmarks/RESULTS.md``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .processes import BASE, BY_HAND, CONTENDERS, OURS, REFERENCES

NONE = "–"
SLOWER = 0.97  # below this it is slower than before, and no tie
Row = dict[str, Any]


def summarize(row: Row) -> None:
    """Put the best peer, the ratio to it and the share of the ceiling into a workload's row.

    ``ratio`` is of medians; ``ratio_of_best`` of the fastest samples, which other work on the
    machine disturbs least.
    """
    for figure, ratio in (("median", "ratio"), ("best", "ratio_of_best")):
        times_of = {name: one[figure] for name, one in row["contenders"].items() if figure in one}
        peers = {n: t for n, t in times_of.items() if n != OURS and n not in REFERENCES}
        ours = times_of.get(OURS)
        row[ratio] = min(peers.values()) / ours if ours and peers else None
        if figure == "median":
            row["best_peer"] = min(peers, key=lambda name: peers[name]) if peers else None
            ceiling = row["ceiling_seconds"]
            row["share"] = ceiling / ours if ours and ceiling else None
            before = times_of.get(BASE)
            row["before"] = before / ours if ours and before else None
            written = times_of.get(BY_HAND)
            row["by_hand"] = written / ours if ours and written else None


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    """Over the ratios that there are."""
    known = [math.log(ratio) for ratio in ratios if ratio]
    return math.exp(sum(known) / len(known)) if known else None


def seconds(value: float | None) -> str:
    """A time with three digits."""
    if value is None:
        return NONE
    units = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
    unit = next((name for name, least in units.items() if value >= least), "µs")
    number = value / units[unit]
    return f"{number:.{max(0, 2 - int(math.log10(max(number, 1))))}f} {unit}"


def size(value: int | None) -> str:
    """A number of bytes with three digits."""
    if value is None:
        return NONE
    for unit, bytes_of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= bytes_of:
            return f"{value / bytes_of:.3g} {unit}"
    return f"{value} B"


def times(value: float | None) -> str:
    """A ratio."""
    return NONE if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    """A share."""
    return NONE if value is None else f"{100 * value:.0f} %"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a Markdown table whose columns are as wide as they must be."""
    widths = [max(len(line[k]) for line in (head, *rows)) for k in range(len(head))]

    def line(cells: list[str]) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = [f"{'-' * widths[0]}", *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    return [line(head), f"| {' | '.join(rule)} |", *map(line, rows)]


def work_table(run: Row) -> list[str]:
    """Median times of all, the ratio to the best peer, the share of the ceiling, memory."""
    names = run["contenders"]
    head = ["work, float32", *(CONTENDERS[n] for n in names)]
    both = BASE in names
    head += ["before / geon"] * both
    by_hand = any(row["by_hand"] for row in run["workloads"])
    head += ["best peer / geon", *["C / geon"] * by_hand]
    head += ["of ceiling", "memory geon", "memory XLA"]
    rows = []
    for row in run["workloads"]:
        found = row["contenders"]
        line = [row["title"], *(seconds(found[n].get("median")) for n in names)]
        line += [times(row["before"])] * both
        line += [times(row["ratio"]), *[times(row["by_hand"])] * by_hand, percent(row["share"])]
        line += [size(found.get(n, {}).get("memory")) for n in (OURS, "jax")]
        rows.append(line)
    return table(head, rows)


def compile_table(run: Row) -> list[str]:
    """Seconds to compile with an empty cache and with a filled one, and to import."""
    names = run["contenders"]
    rows = []
    for row in run["compile"]:
        for which in ("cold", "cached"):
            times_of = [seconds(row["contenders"][n].get(which)) for n in names]
            rows.append([f"compile, {which}: {row['title']}", *times_of])
    if run["import"]:
        rows.append(["import", *(seconds(run["import"][n].get("median")) for n in names)])
    return table(["", *(CONTENDERS[n] for n in names)], rows) if rows else []


def ceiling_lines(run: Row) -> list[str]:
    """What the machine reached in the program of ceilings."""
    found = run["ceilings"]
    if found is None:
        return [f"The ceilings were not measured: {run['ceilings_reason']}."]
    sizes = sorted(next(iter(found["bytes"].values())), key=int)
    speed = ", ".join(f"float{bits}: {rate / 1e9:.0f}" for bits, rate in found["fma"].items())
    rows = [
        [mix, *(f"{rates[size] / 1e9:.0f}" for size in sizes)]
        for mix, rates in found["bytes"].items()
    ]
    head = ["read:write", *(f"{int(size) >> 10:,} KiB" for size in sizes)]
    return [f"Fused multiply-adds, GFLOP/s: {speed}. Bytes read and written, GB/s, by the size of "
            "what is touched:", "", *table(head, rows)]  # fmt: skip


def reasons(run: Row) -> list[str]:
    """Why there is a dash, for each contender that has some other than work not expressed."""
    lines = []
    for row in (*run["workloads"], *run["compile"]):
        for name, found in row["contenders"].items():
            reason = found.get("reason")
            if reason and reason not in ("not expressed", "compiles nothing"):
                lines.append(f"- {CONTENDERS[name]}, {row['title']}: {reason}")
    lines += [f"- {CONTENDERS[name]}: {why}" for name, why in run["missing"].items()]
    return lines


def mean_line(run: Row) -> str:
    """The geometric mean, and over how many workloads."""
    count = sum(row["ratio"] is not None for row in run["workloads"])
    fastest = geometric_mean(row["ratio_of_best"] for row in run["workloads"])
    return (
        f"Geometric mean of best peer / geon over {count} workloads: "
        f"{times(run['geometric_mean'])}; of the fastest samples instead of medians: "
        f"{times(fastest)}."
    )


def before_line(run: Row) -> list[str]:
    """How the other revision compares, and what is slower than it was."""
    if BASE not in run["contenders"]:
        return []
    slower = [row["title"] for row in run["workloads"] if row["before"] and row["before"] < SLOWER]
    return [
        f"Geometric mean of geon before / geon: {times(run['before'])}; slower than before: "
        f"{', '.join(slower) or 'none'}."
    ]


def text(run: Row) -> str:
    """What is printed."""
    small = ["A trial run: sizes are smaller than the titles say."] if run["quick"] else []
    parts = [small, ceiling_lines(run), work_table(run), [mean_line(run)]]
    parts += [before_line(run), compile_table(run)]
    parts += [reasons(run), run["notes"]]
    return "\n\n".join("\n".join(part) for part in parts if part)


def page(run: Row, picture: str | None = None) -> str:
    """The page of a run, such as ``RESULTS.md``, with a picture where one lies beside it."""
    machine = run["machine"]
    versions = ", ".join(f"{CONTENDERS[n]} {v}" for n, v in run["versions"].items())
    lines = [
        "# geon beside its peers",
        "",
        f"Written by `make bench` on {run['date']}: {machine['processor']}, {run['threads']} "
        f"thread{'s' * (run['threads'] > 1)} of {machine['processors']} processors, "
        f"{machine['system']}, Python {machine['python']}, compiler {machine['compiler']}. "
        f"{versions}.",
        "",
        "Times are medians; contenders took turns, each in a process of its own, with the same "
        "number of threads on the same processors. Their results were compared before anything was "
        "timed. A dash is work that a contender does not express, or the reason is below. NumPy "
        "and C by hand are references and no peers: nothing is derived there. The share of the "
        "ceiling is the least time that operations, or bytes read and written, take on this "
        "machine over the time measured. Memory is what a call needs beside inputs and state: "
        "geon's `peak_bytes`, and XLA's own analysis of temporaries and results.",
        "",
        *work_table(run),
        "",
        mean_line(run),
        "",
        *([f"![Time of each peer over geon's]({picture})", ""] if picture else []),
        "## Compiling and importing",
        "",
        "In fresh processes: from the first op written to the first result, without the time of a "
        "call; with an empty cache on disk (cold), and with the one that this left (cached). What "
        "all products of geon share was compiled when it was installed.",
        "",
        *compile_table(run),
        "",
        "## What the machine can do",
        "",
        *ceiling_lines(run),
        "",
        "## Not here",
        "",
        *reasons(run),
        *(f"- {note}" for note in run["notes"]),
        "",
    ]
    return "\n".join(lines)
